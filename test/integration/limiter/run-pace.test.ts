import { randomUUID } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { RunRequestQueue } from '../../../src/delete/run-request-queue.ts';
import { openPaceCalls, type PaceReply, type RefusalReport } from '../../../src/limiter/run-pace.ts';
import { redisDuringTests } from '../../support/redis.ts';

// The script of a run's own rate on a real Redis, in a time of our own.

const redis = await redisDuringTests();

const startMs = 1_800_000_000_000;

async function openRun(atEnd: (task: () => Promise<void>) => void, fields: Record<string, string>) {
  const name = `test-${randomUUID()}`;
  const keys = { run: `{${name}}`, members: `{${name}}m`, quotas: `{${name}}q`, refusals: `{${name}}a` };
  let now = startMs;
  const ask = openPaceCalls(redis, () => String(now));
  const tills = new Map<string, string>();
  atEnd(async () => void (await redis.unlink(keys.run, keys.members, keys.quotas, keys.refusals)));
  await redis.hset(keys.run, { state: 'running', ...fields });
  const leasedAt = new Map<string, number>();
  const unusedOf = (process: string, unused: number) => ({ unused, unusedSince: leasedAt.get(process) ?? 0 });
  const at = async (ms: number, process: string, unused = 0): Promise<PaceReply> => {
    now = startMs + ms;
    const till = tills.get(process) ?? '0';
    const reply = await ask(keys, { process, wants: true, till, ...unusedOf(process, unused) });
    leasedAt.set(process, reply.now);
    if (reply.count > 0) tills.set(process, String(reply.first + reply.gap * reply.count));
    return reply;
  };
  const leave = async (ms: number, process: string, unused: number) => {
    now = startMs + ms;
    await ask(keys, { process, wants: false, till: '0', ...unusedOf(process, unused) });
  };
  const sees = (ms: number, process: string, reports: RefusalReport[]) => {
    now = startMs + ms;
    return ask(keys, { process, wants: false, till: '0', unused: 0, unusedSince: 0, reports });
  };
  return { at, leave, sees, set: (more: Record<string, string>) => redis.hset(keys.run, more) };
}

/** How many permits two processes get in so many seconds, from the given moment on. */
async function permitsOf(
  at: Awaited<ReturnType<typeof openRun>>['at'],
  fromMs: number,
  seconds: number,
): Promise<number> {
  let permits = 0;
  for (let ms = fromMs; ms < fromMs + 1_000 * seconds; ms += 50) permits += (await at(ms, `p${(ms / 50) % 2}`)).count;
  return permits;
}

describe("a run's own rate", () => {
  test('is shared by the processes that work on it', async ({ onTestFinished }) => {
    const { at } = await openRun(onTestFinished, { rate: '200/1000' });
    expect(await permitsOf(at, 0, 10)).toBeGreaterThan(1_950);
    expect(await permitsOf(at, 10_000, 10)).toBeLessThanOrEqual(2_010);
  });

  test('holds from the next question on when it is changed, up or down', async ({ onTestFinished }) => {
    const { at, set } = await openRun(onTestFinished, { rate: '200/1000' });
    await permitsOf(at, 0, 2);
    await set({ rate: '20/1000' });
    expect(await permitsOf(at, 2_000, 5)).toBeLessThanOrEqual(105);
    await set({ rate: '2000/1000' });
    expect(await permitsOf(at, 7_000, 5)).toBeGreaterThan(9_500);
    await set({ rate: '' });
    expect(await at(12_000, 'p0')).toMatchObject({ rate: '', count: 0 });
  });

  test('gives no permits while the run is not running', async ({ onTestFinished }) => {
    const { at } = await openRun(onTestFinished, { rate: '200/1000', state: 'paused' });
    expect(await at(0, 'p0')).toMatchObject({ state: 'paused', count: 0 });
  });

  test('gives no permits, and is no missing rate, where another version wrote it', async ({ onTestFinished }) => {
    const { at } = await openRun(onTestFinished, { rate: '200' });
    const reply = await at(0, 'p0');
    expect(reply).toMatchObject({ state: 'running', rate: '200', count: 0 });
    const line = new RunRequestQueue(() => 0);
    expect(() => line.receive(reply, 0)).toThrow('expected a stored rate');
    expect(line.perSecond).toBeNull();
  });

  test('takes back permits that went unused before it says that a quota is spent', async ({ onTestFinished }) => {
    const { at, leave } = await openRun(onTestFinished, { rate: '100/1000,10/86400000' });
    expect((await at(0, 'p0')).count).toBe(10);
    expect(await at(100, 'p0', 10)).toMatchObject({ count: 10, quotaUntil: 0 });
    await leave(200, 'p0', 10);
    expect((await at(300, 'p1')).count).toBe(10);
  });

  test.for([
    ['half a second later', 500, 1_010],
    ['long after they were leased', 0, 30_000],
  ] as const)('never exceeds a quota by permits that come back %s', async ([, leased, back], { onTestFinished }) => {
    const { at, leave } = await openRun(onTestFinished, { rate: '50/1000,12/60000' });
    expect((await at(leased, 'p0')).count).toBe(6);
    expect((await at(back, 'p1')).count).toBe(6);
    await leave(back + 10, 'p0', 6);
    expect((await at(back + 500, 'p2')).count).toBe(6);
    // What came back was leased first, and has left the window; the twelve that were used have not.
    expect((await at(61_000, 'p3')).count).toBe(0);
    expect((await at(back + 61_000, 'p3')).count).toBe(6);
  });

  test('says when the next permit is due that nobody has yet', async ({ onTestFinished }) => {
    const { at } = await openRun(onTestFinished, { rate: '6/60000' });
    expect(await at(0, 'p0')).toMatchObject({ count: 1 });
    expect((await at(100, 'p1')).nextAt - startMs).toBeCloseTo(10_000, -2);
  });

  test('says until when a spent quota holds it back', async ({ onTestFinished }) => {
    const { at } = await openRun(onTestFinished, { rate: '100/1000,50/60000' });
    expect(await permitsOf(at, 0, 3)).toBe(50);
    const { quotaUntil } = await at(3_000, 'p0');
    expect(quotaUntil - startMs).toBeGreaterThan(55_000);
    expect(quotaUntil - startMs).toBeLessThanOrEqual(62_000);
    expect(await permitsOf(at, 62_000, 2)).toBeGreaterThan(0);
  });
});

describe('refusals', () => {
  const seven = { status: 404, longest: 7, lasting: 2 };
  const three = { status: 403, longest: 3, lasting: 3 };
  test.for(['', '10'])(
    'are told to the other processes of the run for three seconds, with the rate "%s"',
    async (rate, { expect, onTestFinished }) => {
      const { sees, set } = await openRun(onTestFinished, { rate });
      const first = await sees(0, 'a', [{ resource: 'views', acceptedAgoMs: 40, streaks: [seven, three] }]);
      expect(first).toMatchObject({ others: [], expected: { absent: false, mayBeGone: 0, statuses: [] } });
      const second = await sees(100, 'b', [
        { resource: 'views', acceptedAgoMs: 1, streaks: [] },
        { resource: 'annotations', acceptedAgoMs: 2, streaks: [three] },
      ]);
      expect(second.others).toEqual([{ resource: 'views', acceptedAgoMs: 140, streaks: [seven, three] }]);
      const third = await sees(200, 'a', []);
      expect(third.others).toEqual([
        { resource: 'views', acceptedAgoMs: 101, streaks: [] },
        { resource: 'annotations', acceptedAgoMs: 102, streaks: [three] },
      ]);
      await set({ expectAbsent: '1', expect: '403,409', mayBeGone: '7' });
      expect(await sees(3_200, 'c', [])).toMatchObject({
        others: [],
        expected: { absent: true, mayBeGone: 7, statuses: [403, 409] },
      });
    },
  );
});
