import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { replyNumbers, replyTexts } from '../../../src/limiter/script-fields.ts';
import type { TargetCall, TargetReply } from '../../../src/limiter/target-call.ts';
import { TargetLimiter } from '../../../src/limiter/target-limiter.ts';

type Odd = {
  closed?: string;
  isPaced?: boolean;
  permits?: number[];
  redisMs?: number;
  isBusy?: () => boolean;
  calls?: TargetCall[];
};

/**
 * A limiter that got one permit for this moment from a Redis of the test's own, and passes its time there. `redisMs`: how long a call takes;
 * `calls`: gets all of them.
 */
async function openLimiter({
  isPaced = false,
  permits = [1],
  redisMs = 0,
  isBusy = () => false,
  calls = [],
  closed = '',
}: Odd) {
  vi.useFakeTimers({ now: 1_000 });
  const nothing = [...replyNumbers.map((name) => [name, 0]), ...replyTexts.map((name) => [name, ''])];
  const left = [...permits];
  const call = async (asked: TargetCall) => {
    calls.push(asked);
    const lease = { first: Date.now(), gap: 1, count: left.shift() ?? 0 };
    if (redisMs > 0) await new Promise((resolve) => setTimeout(resolve, redisMs));
    return { ...Object.fromEntries(nothing), now: Date.now(), closed, epoch: '7', ...lease } as TargetReply;
  };
  const limiter = new TargetLimiter({
    calls: { call, store: async () => false },
    process: 'p',
    run: '',
    connections: 1,
    clock: () => Date.now(),
    isBusy,
    stopHere: () => null,
    onChange: () => {},
  });
  limiter.start({ takeStarved: () => false, isPaced });
  onTestFinished(() => {
    vi.useRealTimers();
    return limiter.stop();
  });
  limiter.enter();
  await vi.advanceTimersByTimeAsync(0);
  return limiter;
}

describe('the permits of a target', () => {
  test.for([
    [false, 40],
    [true, 200],
  ] as const)('beside rates of runs: %s: may be used for %i ms', async ([isPaced, ms]) => {
    const limiter = await openLimiter({ isPaced });
    await vi.advanceTimersByTimeAsync(ms);
    expect(limiter.permits.isDue(Date.now())).toBe(true);
    await vi.advanceTimersByTimeAsync(1);
    expect(limiter.permits.isDue(Date.now())).toBe(false);
  });

  test('that were asked for before an outage was seen are not used after it', async () => {
    const limiter = await openLimiter({ permits: [1, 10], redisMs: 10 });
    await vi.advanceTimersByTimeAsync(10);
    expect(limiter.permits.isDue(Date.now())).toBe(true);
    await vi.advanceTimersByTimeAsync(95); // the next call is on its way
    for (let n = 0; n < 5; n++) limiter.observe(0, 'unreachable', 1, 'no route to host');
    await vi.advanceTimersByTimeAsync(6);
    expect(limiter.permits.inHand(Date.now())).toBe(0);
  });
});

test('a call that follows another at once says of the load of its process what that said', async () => {
  const [calls, load] = [[] as TargetCall[], [true, false]];
  const limiter = await openLimiter({ calls, isBusy: () => load.shift() ?? true });
  await vi.advanceTimersByTimeAsync(2);
  for (let n = 0; n < 5; n++) limiter.observe(0, 'unreachable', 1, 'no route to host');
  await vi.advanceTimersByTimeAsync(98);
  expect(calls.map(({ busy }) => busy)).toEqual([true, true, false]);
});

test.for([
  ['unreachable', [7, 1, 0, 0]],
  ['trouble', []],
  ['', []],
] as const)('a 401 ends the outage "%s" only where the API could not be reached', async ([closed, counted]) => {
  const calls: TargetCall[] = [];
  const limiter = await openLimiter({ calls, closed });
  limiter.observe(7, 'nothing', 1, '');
  await vi.advanceTimersByTimeAsync(100);
  expect(calls.at(-1)!.tally.flat()).toEqual(counted);
});

test('a call says how many permits its process has got, and when it last heard of Redis, but for an hour of silence', async () => {
  const calls: TargetCall[] = [];
  await openLimiter({ calls, permits: [3, 4] });
  await vi.advanceTimersByTimeAsync(200);
  const said = calls.map(({ granted, heardAt }) => [granted, heardAt]);
  expect(said).toEqual([
    [0, 0],
    [3, 1_000],
    [7, 1_100],
  ]);
  vi.setSystemTime(1_200 + 3_600_000);
  await vi.advanceTimersByTimeAsync(100);
  expect(calls.at(-1)).toMatchObject({ granted: 0, heardAt: 0, limitId: '' });
});
