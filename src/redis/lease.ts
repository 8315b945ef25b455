import { randomUUID } from 'node:crypto';
import type { RedisClient } from './client.ts';

/** A right that one process at a time holds. */
export type Lease = {
  /** The value of the key while the lease is ours. */
  token: string;
  /** Aborted when the lease is lost, because it was not renewed in time, or when `stop` is aborted. From then on, nothing new must begin. */
  signal: AbortSignal;
  /** Whether it is ours now, by the clock of this process, even if the process was suspended and `signal` does not know yet. */
  isHeld(): boolean;
  /** Releases the lease. Never throws: if that fails, the lease expires after 15 s. */
  release(): Promise<void>;
};

const leaseMs = 15_000;
const renewEveryMs = 4_000;

/** Acquires the lease with this key and renews it until it is released; null if another process holds it. */
export async function acquireLease(redis: RedisClient, key: string, stop: AbortSignal): Promise<Lease | null> {
  const token = randomUUID();
  const askedAt = performance.now();
  if ((await redis.set(key, token, 'PX', leaseMs, 'NX')) !== 'OK') return null;
  const lost = new AbortController();
  let leasedUntil = askedAt + leaseMs;
  const renew = async () => {
    const at = performance.now();
    const isOurs = await redis.eval(renewLua, 1, key, token, leaseMs).catch(() => null);
    if (isOurs === 1) leasedUntil = at + leaseMs;
    if (isOurs === 0 || performance.now() > leasedUntil - renewEveryMs) lost.abort();
  };
  const timer = setInterval(() => void renew(), renewEveryMs);
  const signal = AbortSignal.any([stop, lost.signal]);
  return {
    token,
    signal,
    isHeld: () => !signal.aborted && performance.now() < leasedUntil,
    release: async () => {
      clearInterval(timer);
      await redis.eval(releaseLua, 1, key, token).catch(() => {});
    },
  };
}

// KEYS 1 lease  ARGV 1 token  2 ms; returns 1 if the lease is still ours, otherwise 0
const renewLua = `
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('PEXPIRE', KEYS[1], ARGV[2])
`;

// KEYS 1 lease  ARGV 1 token
const releaseLua = `if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end return 0`;
