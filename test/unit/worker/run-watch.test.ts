import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { PaceCall } from '../../../src/limiter/run-pace.ts';
import { near } from '../../../src/redis/distance.ts';
import { RunWatch } from '../../../src/worker/run-watch.ts';

let watch: RunWatch;
let stored: Promise<void>;
let requests: number;
let state: string;
let asked: PaceCall[];
let count: number;
let window: string;
const keepalives: string[] = [];
const halted: string[] = [];
const overdue: string[] = [];

beforeEach(() => {
  vi.useFakeTimers();
  state = 'running';
  keepalives.length = 0;
  halted.length = 0;
  overdue.length = 0;
  asked = [];
  count = 0;
  window = '';
  const reply = {
    now: 0,
    first: 0,
    gap: 1,
    quotaUntil: 0,
    nextAt: 0,
    window: '',
    expected: { absent: false, mayBeGone: 0, statuses: [] },
    others: [],
  };
  watch = new RunWatch({
    ask: async (_run, call) => {
      asked.push(call);
      const rate = window === '' ? '1/3600000' : '';
      return { state, ...reply, now: Date.now(), window, rate, count };
    },
    clock: () => Date.now(),
    distance: near,
    isAlone: true,
    overdue: (run) => void overdue.push(run),
    halted: (run) => void halted.push(run),
    saw: () => {},
    waits: () => {},
    onChange: () => {},
    conditions: () => ({ isHeld: false, limit: null, refreshes: 0 }),
    shareForm: async (_run, _name, form) => form,
    keepalive: async (run) => void keepalives.push(run),
    store: async (_run, { changes }) => {
      requests += changes.get('requests') ?? 0;
      return stored;
    },
  });
  stored = Promise.resolve();
  requests = 0;
  watch.start();
});
afterEach(async () => {
  await watch.stop();
  vi.useRealTimers();
});

/** How often it says in three seconds that it holds chunks. */
async function saidInThreeSeconds(): Promise<number> {
  keepalives.length = 0;
  await vi.advanceTimersByTimeAsync(3_000);
  return keepalives.length;
}

test('says that it holds chunks of a run that was stopped, until they are returned', async () => {
  const { gate } = watch.enter('r');
  expect(await saidInThreeSeconds()).toBe(0);
  state = 'cancelling';
  expect(await saidInThreeSeconds()).toBeGreaterThanOrEqual(2);
  watch.leave('r', gate);
  expect(await saidInThreeSeconds()).toBe(0);
});

test('keeps what the first answers of a run said between its chunks, until the run is halted', async () => {
  const first = watch.enter('r');
  watch.leave('r', first.gate);
  const next = watch.enter('r');
  expect(next.firstAnswers).toBe(first.firstAnswers);
  state = 'halted';
  await vi.advanceTimersByTimeAsync(500);
  watch.leave('r', next.gate);
  expect(watch.enter('r').firstAnswers).not.toBe(first.firstAnswers);
});

test('says so also where the run went on meanwhile and was stopped again', async () => {
  watch.enter('r'); // its requests hang
  state = 'paused';
  await vi.advanceTimersByTimeAsync(500);
  const { gate } = watch.enter('r');
  state = 'cancelling';
  await vi.advanceTimersByTimeAsync(500);
  watch.leave('r', gate);
  expect(await saidInThreeSeconds()).toBeGreaterThanOrEqual(2);
});

test('tells of a halt once, and neither of one that was known before nor of one that this process brought about', async () => {
  watch.enter('r');
  await vi.advanceTimersByTimeAsync(200);
  state = 'halted';
  await vi.advanceTimersByTimeAsync(1_000);
  expect(halted).toEqual(['r']);
  watch.enter('found halted');
  await vi.advanceTimersByTimeAsync(200);
  state = 'running';
  watch.enter('brought about');
  await vi.advanceTimersByTimeAsync(200);
  watch.close('brought about');
  state = 'halted';
  await vi.advanceTimersByTimeAsync(200);
  expect(halted).toEqual(['r']);
});

test('sends nothing of a run whose time is up, and says so until it is paused', async () => {
  const { gate } = watch.enter('r');
  await vi.advanceTimersByTimeAsync(200);
  expect([gate.isOpen, overdue]).toEqual([true, []]);
  state = 'overdue';
  await vi.advanceTimersByTimeAsync(100);
  expect([gate.isOpen, overdue]).toEqual([false, ['r']]);
  watch.leave('r', gate);
  watch.enter('r');
  await vi.advanceTimersByTimeAsync(100);
  expect(overdue.length).toBeGreaterThan(1);
  expect(halted).toEqual([]);
});

test('gives back a permit that comes after the last chunk of its run has gone', async () => {
  count = 1;
  const { gate } = watch.enter('r');
  watch.leave('r', gate);
  await vi.advanceTimersByTimeAsync(200);
  expect(asked.map(({ wants, unused }) => [wants, unused])).toEqual([
    [true, 0],
    [false, 1],
  ]);
});

test('lets one chunk in from time to time to find out whether a window has opened, and puts the others off', async () => {
  vi.setSystemTime('2026-11-30T20:00Z');
  watch.stop();
  watch.start();
  window = '22:00-06:00';
  const { gate, requestQueue } = watch.enter('r');
  await vi.advanceTimersByTimeAsync(200);
  expect([gate.isOpen, requestQueue.isOpen, watch.isFull('r')]).toEqual([true, false, true]);
  watch.leave('r', gate);
  await vi.advanceTimersByTimeAsync(200);
  const opens = Date.parse('2026-11-30T22:00Z');
  expect(asked.at(-1)).toMatchObject({ wants: false, closed: { window, until: opens } });
  expect([watch.waits('r'), watch.isFull('r'), watch.postponesMs('r')]).toEqual([true, true, 5_000]);
  await vi.advanceTimersByTimeAsync(10_000);
  expect(watch.isFull('r')).toBe(false);
});

test('takes chunks again at the moment the window opens', async () => {
  vi.setSystemTime('2026-11-30T21:59:52Z');
  watch.stop();
  watch.start();
  window = '22:00-06:00';
  const { gate } = watch.enter('r');
  await vi.advanceTimersByTimeAsync(1_000);
  watch.leave('r', gate);
  expect(watch.postponesMs('r')).toBe(5_000);
  await vi.advanceTimersByTimeAsync(5_000);
  expect([watch.isFull('r'), watch.postponesMs('r')]).toEqual([true, 2_000]);
  await vi.advanceTimersByTimeAsync(2_001);
  expect(watch.isFull('r')).toBe(false);
  expect(watch.enter('r').requestQueue.isOpen).toBe(true);
});

test('ends when the measures of the last chunk are stored: nothing of a short run is missing', async () => {
  let end = () => {};
  stored = new Promise((resolve) => {
    end = resolve;
  });
  const { gate } = watch.enter('r');
  watch.leave('r', gate);
  let hasEnded = false;
  const stopped = watch.stop().then(() => {
    hasEnded = true;
  });
  await vi.advanceTimersByTimeAsync(100);
  expect(hasEnded).toBe(false);
  end();
  await stopped;
});

test('stores what was answered after the run was stopped and another chunk of it had come and gone', async () => {
  const { gate, meter } = watch.enter('r');
  gate.close();
  watch.leave('r', watch.enter('r').gate);
  meter.recordAnswer({ kind: 'maybe-sent', code: 'timeout', why: '' }, 300, 90, false);
  watch.leave('r', gate);
  await watch.stop();
  expect(requests).toBe(1);
});
