import { targetInPlanId } from '../ledger/kept-plans.ts';
import { readRun } from '../ledger/run.ts';
import { isWithin, type Reach } from '../model/target.ts';
import { noPlan } from './plans.ts';
import { Problem } from './problem.ts';
import type { About, Call, Route } from './route.ts';
import { noRun } from './run-view.ts';
import { noTarget } from './targets.ts';

// A token that is bound to targets cannot reach anything of other targets. Only this file checks what a request names.

type Asked = Pick<Call, 'caller' | 'deps' | 'params' | 'query' | 'body'>;

type Bound = NonNullable<Reach>;

/** Throws not_found if a request is about a thing of a target beyond the reach of its caller, and `forbidden` if it is about everything. */
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
  async plan(reach, { params }) {
    const id = params.plan!;
    const fp = targetInPlanId(id);
    if (fp === null || !hasTarget(reach, fp)) throw noPlan(id);
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

/** A text that is the same for equal reaches. */
export function reachKey(reach: Reach): string {
  return reach === null
    ? ''
    : reach
        .map(({ fp }) => fp)
        .sort()
        .join(' ');
}
