import { readRun } from '../ledger/run.ts';
import { isWithin, type Reach } from '../model/target.ts';
import { noPlan, PlanStore } from './plan-store.ts';
import { Problem } from './problem.ts';
import type { About, Call, Route } from './route.ts';
import { noRun } from './run-view.ts';
import { noTarget } from './targets.ts';

// A token that is bound to targets reaches nothing of any other one. This is the one place that looks at what a request names.

type Asked = Pick<Call, 'caller' | 'deps' | 'params' | 'query' | 'body'>;

type Bound = NonNullable<Reach>;

/**
 * Throws what is said of a thing that is not there, where a request is about one of a target beyond the reach of its caller; `forbidden` where
 * it is about everything.
 */
export async function refuseBeyondReach({ about, summary }: Pick<Route, 'about' | 'summary'>, asked: Asked) {
  const { reach } = asked.caller;
  if (reach === null || about === 'within reach') return;
  if (about === 'everything')
    throw new Problem('forbidden', `"${summary}" is not for a token that is bound to targets`, 'use one that is not');
  await refuse[about](reach, asked);
}

const refuse: Record<Exclude<About, 'within reach' | 'everything'>, (reach: Bound, asked: Asked) => Promise<void>> = {
  async run(reach, { deps, params }) {
    const id = params.run!;
    const run = await readRun(deps.session.redis, id);
    if (run === null || !isWithin(reach, run)) throw noRun(id);
  },
  async plan(reach, { deps, params }) {
    const id = params.plan!;
    const plan = await new PlanStore(deps.config.stateDir).find(id).catch(() => null); // one that was applied may be so again, with its key
    if (plan !== null && !hasTarget(reach, plan.fp)) throw noPlan(id);
  },
  async target(reach, { params, query, body }) {
    const fp = String(params.fp ?? query.target ?? body.target);
    if (!hasTarget(reach, fp)) throw noTarget(fp);
  },
};

/** Whether a target with this fingerprint is within reach. */
export function hasTarget(reach: Reach, fp: string): boolean {
  return reach === null || reach.some((target) => target.fp === fp);
}

/** The same text for the same reach. */
export function reachKey(reach: Reach): string {
  return reach === null
    ? ''
    : reach
        .map(({ fp }) => fp)
        .sort()
        .join(' ');
}
