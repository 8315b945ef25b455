import { z } from 'zod';
import { ExpungeError, messageOf } from '../errors.ts';
import { openRunIndex } from '../lookup/run-index.ts';
import { parseRate, type Rate } from '../model/rate.ts';
import type { SeenTargetAction, TargetAction } from '../operations/action.ts';
import { localTargets } from '../operations/local-targets.ts';
import type { TargetChange, TargetOperations } from '../operations/operations.ts';
import { statusFacts } from './overview.ts';
import { type Call, type Route, route } from './route.ts';
import { reason } from './run-routes.ts';
import * as shapes from './shapes.ts';
import { findKnownTarget } from './targets.ts';

type Work = (targets: TargetOperations, action: TargetAction) => Promise<TargetChange>;

const changed = shapes.target.extend({ changed: z.boolean() });

/** Routes that steer a target as a whole. */
export const targetRoutes: readonly Route[] = [
  simple('stop', 'send nothing to a target any more', (targets, action) => targets.stop(action)),
  seeing('start', 'end the stop of a target', (targets, action) => targets.start(action)),
  simple('release', 'end a wait that the server asked for, or an outage', (targets, action) => targets.release(action)),
  seeing('acknowledge', 'say that you have seen what Redis has lost of a target', (targets, action) =>
    targets.acknowledge(action),
  ),
  simple('forget-rate', 'learn the rate again', (targets, action) => targets.forgetRate(action)),
  route({
    method: 'post',
    path: '/targets/{fp}/limit',
    role: 'operate',
    summary: 'limit all that is sent to a target',
    body: z.strictObject({
      reason,
      seen: shapes.seenTarget,
      limit: z.string().min(1).max(200).nullable().describe('200/s,100000/day; null = none any more'),
    }),
    answer: changed,
    handle: (call) => {
      const { seen } = call.body;
      const limit = readLimit(call.body.limit);
      return change(call, (targets, action) => targets.setLimit({ ...action, seen, limit }));
    },
  }),
  route({
    method: 'post',
    path: '/targets/{fp}/grace',
    role: 'operate',
    summary: 'set the shortest grace period of later runs of a target',
    body: z.strictObject({
      reason,
      seen: shapes.seenTarget,
      grace_seconds: z.number().min(0).max(31_536_000).describe('600; 0 = none any more'),
    }),
    answer: changed,
    handle: (call) => {
      const { seen, grace_seconds: seconds } = call.body;
      const graceMs = Math.ceil(1_000 * seconds);
      return change(call, (targets, action) => targets.setMinGrace({ ...action, seen, graceMs }));
    },
  }),
];

function simple(action: string, summary: string, work: Work): Route {
  return route({
    method: 'post',
    path: `/targets/{fp}/${action}`,
    role: 'operate',
    summary,
    body: z.strictObject({ reason }),
    answer: changed,
    handle: (call) => change(call, work),
  });
}

/** An action that loosens something, and so names the revision that the person saw. */
function seeing(
  action: string,
  summary: string,
  work: (targets: TargetOperations, action: SeenTargetAction) => Promise<TargetChange>,
): Route {
  return route({
    method: 'post',
    path: `/targets/{fp}/${action}`,
    role: 'operate',
    summary,
    body: z.strictObject({ reason, seen: shapes.seenTarget }),
    answer: changed,
    handle: (call) => change(call, (targets, action) => work(targets, { ...action, seen: call.body.seen })),
  });
}

/** Does an action on the target of the path, in the name of the caller. */
async function change({ deps, params, body, caller }: Call<unknown, { reason: string }>, work: Work) {
  const { session } = deps;
  const target = await findKnownTarget(session, params.fp!);
  const action = { target, by: { who: caller.name, reason: body.reason } };
  const { status, isChanged } = await work(localTargets(session), action);
  const { active } = await openRunIndex(session.redis).read();
  return { ...statusFacts(status, active), changed: isChanged };
}

/** Reads a limit. Throws USAGE for anything else. */
function readLimit(text: string | null): Rate | null {
  try {
    return text === null ? null : parseRate(text);
  } catch (error) {
    throw new ExpungeError('USAGE', messageOf(error));
  }
}
