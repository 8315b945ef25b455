import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { openLedger } from '../../../src/ledger/ledger.ts';
import { openPaceCalls } from '../../../src/limiter/run-pace.ts';
import { readClock } from '../../../src/redis/client.ts';
import { keys } from '../../../src/redis/keys.ts';
import { redisDuringTests } from '../../support/redis.ts';
import { claimChunk, forgetRun, writeTestRun } from './lone-run.ts';

// Redis had a clock that was ahead by a day, and has the right one now: what it wrote lies in the future.

const dayMs = 86_400_000;
let id: string;
let now: number;
const redis = await redisDuringTests();
const ledger = openLedger(redis);
beforeEach(async () => {
  id = await writeTestRun(redis, [2, 2]);
  now = Math.floor(await readClock(redis, keys.run(id)));
  await steer('start');
});

const steer = (action: 'start' | 'pause' | 'cancel') =>
  ledger.steer(id, Date.now(), { action, reason: '', by: 'operator', who: 'test' });

/** Writes what Redis would have written a day ahead. */
async function setAhead(fields: Record<string, string | number>): Promise<void> {
  onTestFinished(() => forgetRun(redis, id));
  await redis.hset(keys.run(id), fields);
}

describe('a run of which Redis wrote times with a clock that was ahead', () => {
  test('is enqueued although its window seems closed for a day', async () => {
    await setAhead({ activeUntil: now + dayMs, changedAt: now + dayMs, closedUntil: now + dayMs });
    expect(await ledger.enqueue(id)).toEqual([0, 1]);
  });

  test('is enqueued where only the look at its window was ahead', async () => {
    onTestFinished(() => forgetRun(redis, id));
    const keysOfRun = {
      run: keys.run(id),
      members: keys.paceMembers(id),
      quotas: keys.paceQuotas(id),
      refusals: keys.refusals(id),
    };
    const ask = openPaceCalls(redis, () => String(now + dayMs));
    const closed = { window: '', until: now + 2 * dayMs };
    await ask(keysOfRun, { process: 'p', wants: false, till: '0', unused: 0, unusedSince: 0, closed });
    expect(await ledger.enqueue(id)).toEqual([0, 1]);
  });

  test('is not enqueued outside its window with a clock that was right all the time', async () => {
    await setAhead({ closedUntil: now + dayMs });
    expect(await ledger.enqueue(id)).toEqual([]);
  });

  test('has its deferred chunks due when they were to be, not a day later', async () => {
    await setAhead({ activeUntil: now + dayMs });
    await redis.hset(keys.run(id), 'next', 2);
    await redis.zadd(keys.deferred(id), now + dayMs - 1_000, '0', now + dayMs + 3_600_000, '1');
    expect(await ledger.enqueue(id)).toEqual([0]);
    const due = Number(await redis.zscore(keys.deferred(id), '1'));
    expect(Math.abs(due - now - 3_600_000)).toBeLessThan(60_000);
  });

  test('is enqueued once it is resumed', async () => {
    await ledger.enqueue(id);
    await redis.del(keys.open(id));
    await steer('pause');
    await setAhead({ changedAt: now + dayMs, closedUntil: now + dayMs });
    await redis.zadd(keys.deferred(id), now + dayMs, '0', now + dayMs, '1');
    await steer('start');
    expect(await ledger.enqueue(id)).toEqual([0, 1]);
  });

  test('is cancelled although a holder of a chunk of it died', async () => {
    await ledger.enqueue(id);
    await claimChunk(ledger, id, 0);
    await steer('cancel');
    await setAhead({ changedAt: now + dayMs });
    await redis.zadd(keys.holders(id), now + dayMs, 'dead 100');
    expect(await ledger.reclaim(id)).toBe('cancelling');
    await redis.hincrby(keys.run(id), 'changedAt', -60_000); // the holder's time is over
    expect(await ledger.reclaim(id)).toBe('cancelled');
  });

  test('may use its quota again when a day has passed, not two', async () => {
    onTestFinished(() => forgetRun(redis, id));
    await redis.hset(keys.run(id), 'rate', `100/1000,10/${dayMs}`);
    const keysOfRun = {
      run: keys.run(id),
      members: keys.paceMembers(id),
      quotas: keys.paceQuotas(id),
      refusals: keys.refusals(id),
    };
    const call = { process: 'p', wants: true, till: '0', unused: 0, unusedSince: 0 };
    const at = (ms: number) => openPaceCalls(redis, () => String(ms))(keysOfRun, call);
    for (let n = 0; n < 20; n++) await at(now + dayMs + n * 100);
    expect((await at(now)).count, 'used up').toBe(0);
    expect((await at(now + 1.1 * dayMs)).count).toBeGreaterThan(0);
  });
});
