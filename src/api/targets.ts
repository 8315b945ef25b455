import { openRunIndex } from '../lookup/run-index.ts';
import type { Reach, Target } from '../model/target.ts';
import type { Session } from '../operations/session.ts';
import { Problem } from './problem.ts';

/** The targets within reach that this Redis knows. */
async function listTargets({ redis }: Pick<Session, 'redis'>, reach: Reach): Promise<Target[]> {
  return (await openRunIndex(redis).read(reach)).targets;
}

/** The target with this fingerprint. Throws not_found: the API steers only targets that have been used by a worker, run or schedule. */
export async function findKnownTarget(session: Pick<Session, 'redis'>, fp: string): Promise<Target> {
  const target = (await listTargets(session, null)).find((known) => known.fp === fp);
  if (target !== undefined) return target;
  throw noTarget(fp);
}

/** The problem for a target that is not known. */
export function noTarget(fp: string): Problem {
  return new Problem(
    'not_found',
    `this Redis knows no target with the fingerprint "${fp}"`,
    'GET /api/v1/targets lists them',
  );
}
