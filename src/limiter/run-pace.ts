import type { RedisClient } from '../redis/client.ts';
import { runPaceLua } from './run-pace.lua.ts';

export type PaceKeys = { run: string; members: string; quotas: string };

/** What Redis says about a run; see run-pace.lua.ts. `rate`: as stored, '' = none. Times are ms of the Redis clock. */
export type PaceReply = {
  state: string;
  rate: string;
  now: number;
  first: number;
  gap: number;
  count: number;
  quotaUntil: number;
  /** As stored, '' = none. */
  priority: string;
  /** When the next permit is due that nobody has yet; 0 without a rate. */
  nextAt: number;
};

export type PaceCall = { process: string; wants: boolean; till: string; unused: number };

/** Asks for the state and the priority of a run, and for permits of its own rate, if it has one. `now` is for tests in a time of their own. */
export function openPaceCalls(redis: RedisClient, now: () => string = () => '') {
  redis.defineCommand('expungeRunPace', { numberOfKeys: 3, lua: runPaceLua });
  const scripts = redis as unknown as { expungeRunPace(...args: (string | number)[]): Promise<(string | number)[]> };
  return async (keys: PaceKeys, { process, wants, till, unused }: PaceCall): Promise<PaceReply> => {
    const args = [process, wants ? 1 : 0, till, unused, now()];
    const reply = await scripts.expungeRunPace(keys.run, keys.members, keys.quotas, ...args);
    const [state, rate, at, first, gap, count, quotaUntil, priority, nextAt] = reply.map(String);
    return {
      ...{ state: state!, rate: rate!, now: Number(at), first: Number(first), gap: Number(gap), count: Number(count) },
      ...{ quotaUntil: Number(quotaUntil), priority: priority!, nextAt: Number(nextAt) },
    };
  };
}
