import { randomUUID } from 'node:crypto';
import type { RedisClient } from '../redis/client.ts';
import { keys } from '../redis/keys.ts';

/** A schedule is attended to by one process at a time: by whoever has it in hand. */
export type Hand = {
  fp: string;
  name: string;
  token: string;
  /** Aborted when it was lost: Redis did not hear of us in time, or `stop` was aborted. Nothing more should be begun then. */
  signal: AbortSignal;
  /** Lets go of it. If that fails, it is free again after 15 s. */
  release(): Promise<void>;
};

const heldMs = 15_000;
const renewEveryMs = 4_000;

/** Takes the schedule in hand, or null if somebody else has it. */
export async function takeInHand(
  redis: RedisClient,
  fp: string,
  name: string,
  stop: AbortSignal,
): Promise<Hand | null> {
  const [key, token] = [keys.scheduleHand(fp, name), randomUUID()];
  if ((await redis.set(key, token, 'PX', heldMs, 'NX')) !== 'OK') return null;
  const lost = new AbortController();
  let heldUntil = performance.now() + heldMs;
  const renew = async () => {
    const at = performance.now();
    const isOurs = await redis.eval(renewLua, 1, key, token, heldMs).catch(() => null);
    if (isOurs === 1) heldUntil = at + heldMs;
    if (isOurs === 0 || performance.now() > heldUntil - renewEveryMs) lost.abort();
  };
  const timer = setInterval(() => void renew(), renewEveryMs);
  return {
    ...{ fp, name, token, signal: AbortSignal.any([stop, lost.signal]) },
    release: async () => {
      clearInterval(timer);
      await redis.eval(releaseLua, 1, key, token).catch(() => {});
    },
  };
}

// KEYS 1 hand  ARGV 1 token  2 ms; 1 if it is still ours, else 0
const renewLua = `
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('PEXPIRE', KEYS[1], ARGV[2])
`;

// KEYS 1 hand  ARGV 1 token
const releaseLua = `if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end return 0`;
