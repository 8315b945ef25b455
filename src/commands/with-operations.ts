import type { ApiClient } from '../api/client.ts';
import type { Log } from '../logger.ts';
import type { Operations } from '../operations/operations.ts';
import type { SchedulePlace } from '../operations/schedule-work.ts';
import { type EarlySession, withRedis } from '../operations/session.ts';
import type { Invocation } from './command.ts';
import { lineWriter, sayUnlessJson } from './session.ts';

type Family = keyof Operations;

/** The operations in Redis, and those through the API of a server. Loaded on demand: an action on a target has to work within a second. */
const local: { [F in Family]: () => Promise<(session: EarlySession, invocation: Invocation) => Operations[F]> } = {
  runs: async () => (await import('../operations/local.ts')).localRuns,
  records: async () => (await import('../operations/local-records.ts')).localRecords,
  schedules: async () => {
    const { localSchedules } = await import('../operations/local-schedules.ts');
    const { logFor } = await import('../logger.ts');
    return (session, invocation) =>
      localSchedules(session, placeOf(invocation, logFor(invocation, lineWriter(invocation.stderr))));
  },
  plans: async () => (await import('../operations/local-plans.ts')).localPlans,
  targets: async () => {
    const { localTargets } = await import('../operations/local-targets.ts');
    return localTargets;
  },
};

const remote: { [F in Family]: () => Promise<(api: ApiClient, invocation: Invocation) => Operations[F]> } = {
  runs: async () => (await import('../api/remote-runs.ts')).remoteRuns,
  records: async () => (await import('../api/remote-records.ts')).remoteRecords,
  schedules: async () => (await import('../api/remote-schedules.ts')).remoteSchedules,
  plans: async () => (await import('../api/remote-lists.ts')).remotePlans,
  targets: async () => (await import('../api/remote-targets.ts')).remoteTargets,
};

/**
 * Calls `body` with the operations of a family: those in Redis, or those of the server that the settings name. Throws UNREACHABLE and USAGE if
 * neither can be used; by then nothing was done. `mayBegin`: whether the state folder may get its first private Redis.
 */
export async function withOperations<F extends Family, T>(
  invocation: Invocation,
  family: F,
  body: (operations: Operations[F]) => Promise<T>,
  mayBegin = false,
): Promise<T> {
  const say = sayUnlessJson(invocation);
  if (invocation.config.server === undefined) {
    const open = await local[family]();
    return withRedis(invocation, say, (session) => body(open(session, invocation)), mayBegin);
  }
  const [open, { withServer }] = await Promise.all([remote[family](), import('../api/client.ts')]);
  return withServer(invocation, say, (api) => body(open(api, invocation)));
}

function placeOf({ config, env }: Invocation, log: Log): SchedulePlace {
  return { config, env, log };
}
