import { expect, test, vi } from 'vitest';
import { type Part, Parts } from '../../../src/worker/parts.ts';

const log = { debug() {}, info() {}, warn() {}, error() {} };
const never = () => new Promise<void>(() => {});
const running = new AbortController().signal;

/** Parts that note what happens to them. */
function noting(names: string[], odd: Record<string, Partial<Part>> = {}) {
  const noted: string[] = [];
  const parts = names.map((name): Part => {
    const { start = () => {}, drain = () => {} } = odd[name] ?? {};
    const note = (what: string, task: () => void | Promise<void>) => () => {
      noted.push(`${what} ${name}`);
      return task();
    };
    return { name, start: note('start', start), drain: note('drain', drain) };
  });
  return { noted, parts: new Parts(parts, log) };
}

/** @invariant drain-order: Parts drain in reverse order, and a part that hangs is left behind. */
test('start in their order and drain in the opposite one', async () => {
  const { noted, parts } = noting(['a', 'b', 'c']);
  await parts.start(running);
  expect(parts.state).toBe('up');
  await parts.drain();
  expect(noted).toEqual(['start a', 'start b', 'start c', 'drain c', 'drain b', 'drain a']);
  expect(parts.state).toBe('drained');
});

test('wait for each other, coming and going', async () => {
  let [isUp, isGone] = [false, false];
  const later = (task: () => void) => () => new Promise<void>((resolve) => setImmediate(() => resolve(task())));
  const slow = { start: later(() => (isUp = true)), drain: later(() => (isGone = true)) };
  const { parts } = noting(['first', 'second', 'third'], {
    first: { drain: () => expect(isGone).toBe(true) },
    second: slow,
    third: { start: () => expect(isUp).toBe(true) },
  });
  await parts.start(running);
  await parts.drain();
  expect(isGone).toBe(true);
});

test('drain those before one that does not come up', async () => {
  const fails = () => {
    throw new Error('no such thing');
  };
  const { noted, parts } = noting(['a', 'b', 'c'], { b: { start: fails } });
  await expect(parts.start(running)).rejects.toThrow('no such thing');
  await parts.drain();
  expect(noted).toEqual(['start a', 'start b', 'drain b', 'drain a']);
});

test('drain at once when told to while one of them hangs coming up', async () => {
  const stop = new AbortController();
  const { noted, parts } = noting(['a', 'hangs', 'c'], { hangs: { start: never } });
  const started = parts.start(stop.signal);
  await vi.waitFor(() => expect(noted).toContain('start hangs'));
  stop.abort();
  await started;
  expect(noted).toEqual(['start a', 'start hangs', 'drain hangs', 'drain a']);
  expect(parts.state).toBe('drained');
});

test('drain once, and past one that fails', async () => {
  const { noted, parts } = noting(['a', 'b'], { b: { drain: () => Promise.reject(new Error('broken')) } });
  await parts.start(running);
  await Promise.all([parts.drain(), parts.drain()]);
  expect(noted.slice(2)).toEqual(['drain b', 'drain a']);
});

/** @invariant drain-order */
test('leave one behind that hangs when their time is over', async ({ onTestFinished }) => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const { noted, parts } = noting(['a', 'hangs'], { hangs: { drain: never } });
  await parts.start(running);
  const drained = parts.drain();
  await vi.advanceTimersByTimeAsync(11_199);
  expect(parts.state).toBe('draining');
  await vi.advanceTimersByTimeAsync(2);
  await drained;
  expect(noted.slice(2)).toEqual(['drain hangs', 'drain a']);
});
