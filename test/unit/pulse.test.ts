import { expect, onTestFinished, test, vi } from 'vitest';
import { Pulse, steadyPulse } from '../../src/pulse.ts';
import { fakeSleep } from '../support/fake-sleep.ts';

/** A pulse in a time that only the test moves. */
function openPulse() {
  vi.useFakeTimers({ now: 0 });
  onTestFinished(() => void vi.useRealTimers());
  return { pulse: new Pulse({ sleep: fakeSleep }), pass: (ms: number) => vi.advanceTimersByTimeAsync(ms) };
}

/** A part that looks every second, and the times at which it looked. */
function look(pulse: Pulse, dueMs?: number) {
  const stop = new AbortController();
  const at: number[] = [];
  const loop = async () => {
    while (!stop.signal.aborted) {
      at.push(performance.now());
      await pulse.sleep(1_000, stop.signal, dueMs);
    }
  };
  void loop();
  onTestFinished(() => stop.abort());
  return { at, stop };
}

test('a part looks as often as it wants for a minute without work, and then every 30 s', async () => {
  const { pulse, pass } = openPulse();
  const { at } = look(pulse);
  await pass(60_500);
  expect([pulse.isIdle, at.length]).toEqual([true, 61]);
  await pass(60_000);
  expect(at.slice(61)).toEqual([90_000, 120_000]);
});

test('work wakes an idle process at once, and keeps it awake for a minute', async () => {
  const { pulse, pass } = openPulse();
  const { at } = look(pulse);
  const wakers = vi.fn();
  const forget = pulse.onWake(wakers);
  await pass(70_000);
  pulse.wake();
  await pass(0);
  expect([pulse.isIdle, at.at(-1), wakers.mock.calls.length]).toEqual([false, 70_000, 1]);
  await pass(1_000);
  expect(at.at(-1)).toBe(71_000);
  pulse.wake();
  expect(wakers).toHaveBeenCalledTimes(1);
  forget();
  await pass(60_000);
  pulse.wake();
  expect(wakers).toHaveBeenCalledTimes(1);
});

test('an idle process looks when a task says that it is due, but no more often than while there is work', async () => {
  const { pulse, pass } = openPulse();
  const [soon, overdue] = [look(pulse, 5_000), look(pulse, 0)];
  await pass(60_000);
  expect(pulse.isIdle).toBe(true);
  for (const { at } of [soon, overdue]) at.splice(0);
  await pass(10_000);
  expect(soon.at).toEqual([65_000, 70_000]);
  expect(overdue.at).toHaveLength(10);
});

test('a part that is told to stop sleeps no longer', async () => {
  const { pulse, pass } = openPulse();
  await pass(60_000);
  const stop = new AbortController();
  const slept = vi.fn();
  void pulse.sleep(1_000, stop.signal).then(slept);
  await pass(100);
  expect(slept).not.toHaveBeenCalled();
  stop.abort();
  await pass(0);
  expect(slept).toHaveBeenCalled();
  await pulse.sleep(1_000, stop.signal);
});

test('a process that always has work is never idle', async () => {
  const { pass } = openPulse();
  const steady = steadyPulse();
  await pass(86_400_000);
  expect([steady.isIdle, steady.everyMs(100)]).toEqual([false, 100]);
});
