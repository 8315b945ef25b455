import { setTimeout as sleep } from 'node:timers/promises';
import type { Context } from 'hono';
import { ExpungeError } from '../errors.ts';
import { readRun } from '../ledger/run.ts';
import type { RedisClient } from '../redis/client.ts';
import { keys } from '../redis/keys.ts';
import { acquireLease, type Lease } from '../redis/lease.ts';
import type { Caller } from './access.ts';
import { Problem } from './problem.ts';
import { hashSecret } from './token-store.ts';

/** What is known of a request: its content, the run that it makes ('' = none yet), and its answer; null = none yet. */
type Noted = { request: string; run: string; answer: unknown };

type Answer = { answer: unknown; isRepeated: boolean };

export type Work = {
  /** Carries the request out; calls `onRun` with the id of the run that it makes, before that run is written. */
  handle(onRun: (run: string) => Promise<void>): Promise<unknown>;
  /** The answer once the run has been made. */
  made(run: string): unknown;
};

/** 1 to 100 visible ASCII characters. */
export const keyPattern = /^[!-~]{1,100}$/;

const keptMs = 86_400_000;
const repeatAfterSeconds = 5;
const waitMs = 20_000; // longer than the lease of a server that died
const pollMs = 250;

/**
 * Does `work` once for each Idempotency-Key of a caller, and gives a repetition within a day the same answer. Throws `unprocessable` if the key came
 * with another request. A repetition that comes while the first request is being carried out, by any server, waits for its answer; after 20 s it
 * throws `conflict`. A failed request can be repeated: if it, or a server that died, had begun to make a run, the repetition completes that run or
 * reports it, and makes no second one.
 */
export async function doOnce(
  { req }: Context,
  redis: RedisClient,
  caller: Caller,
  facts: unknown,
  work: Work,
): Promise<Answer> {
  const given = req.header('idempotency-key');
  if (given === undefined) return { answer: await work.handle(async () => {}), isRepeated: false };
  if (!keyPattern.test(given)) throw new Problem('invalid', 'Idempotency-Key: expected 1 to 100 visible characters');
  const hash = hashSecret([caller.name, req.method, req.path, given].join('\n'));
  const request = hashSecret(JSON.stringify(facts));
  const key = keys.apiRequest(hash);
  const lease = await waitForLease(redis, keys.apiRequest(`${hash}:lease`), () => readNoted(redis, key, request));
  if (lease === null) return repeated(await readNoted(redis, key, request));
  try {
    const noted = await readNoted(redis, key, request);
    if (noted !== null && noted.answer !== null) return repeated(noted);
    return await runIdempotently(redis, { key, lease }, noted ?? { request, run: '', answer: null }, work);
  } finally {
    await lease.release();
  }
}

/** Waits for the lease of a request; null once another request with its key is answered, or after too long a wait. */
async function waitForLease(redis: RedisClient, key: string, read: () => Promise<Noted | null>): Promise<Lease | null> {
  const until = performance.now() + waitMs;
  for (;;) {
    const lease = await acquireLease(redis, key, new AbortController().signal);
    const isAnswered = lease === null && ((await read())?.answer ?? null) !== null;
    if (lease !== null || isAnswered || performance.now() > until) return lease;
    await sleep(pollMs);
  }
}

/** Throws `unprocessable` for another request. */
async function readNoted(redis: RedisClient, key: string, request: string): Promise<Noted | null> {
  const text = await redis.get(key);
  const noted = text === null ? null : (JSON.parse(text) as Noted);
  if (noted === null || noted.request === request) return noted;
  throw new Problem('unprocessable', 'this Idempotency-Key came with another request before', 'use a new one');
}

function repeated(noted: Noted | null): Answer {
  if (noted !== null && noted.answer !== null) return { answer: noted.answer, isRepeated: true };
  const what = noted === null || noted.run === '' ? '' : `; it makes run ${noted.run}`;
  throw new Problem('conflict', `a request with this Idempotency-Key is being done${what}`, 'repeat it in a while', {
    seconds: repeatAfterSeconds,
    ...(what !== '' && { run: noted?.run }),
  });
}

/** Does the work, or completes what was begun. The work makes the same run again as long as that run was not started. */
async function runIdempotently(
  redis: RedisClient,
  { key, lease }: { key: string; lease: Lease },
  before: Noted,
  work: Work,
): Promise<Answer> {
  const noted = { ...before };
  const save = async () => {
    if (lease.isHeld()) await redis.set(key, JSON.stringify(noted), 'PX', keptMs); // otherwise a repetition at another server does it now
  };
  const isRepeated = await isStarted(redis, noted.run);
  try {
    await save();
    noted.answer = isRepeated
      ? work.made(noted.run)
      : await work.handle(async (run) => {
          noted.run = run;
          await save();
        });
  } catch (error) {
    // The key is free again if no run was made, or if the existing run belongs to another action.
    const isFree = lease.isHeld() && (noted.run === '' || isRefusal(error));
    if (isFree) await redis.del(key).catch(() => {});
    throw error;
  }
  await save().catch(() => {}); // the work is done, and a repetition finds the run
  return { answer: noted.answer, isRepeated };
}

function isRefusal(error: unknown): boolean {
  return (
    error instanceof Problem || (error instanceof ExpungeError && ['GUARD', 'USAGE', 'INPUT'].includes(error.code))
  );
}

async function isStarted(redis: RedisClient, id: string): Promise<boolean> {
  const run = id === '' ? null : await readRun(redis, id);
  return run !== null && run.state !== 'preparing' && run.state !== 'planned';
}
