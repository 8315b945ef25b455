import { describe, expect, test, vi } from 'vitest';
import { singleFlight } from '../../../../src/worker/http/single-flight.ts';

describe('ask once', () => {
  function open(ask: () => Promise<number>, timeoutMs = 60_000) {
    let now = 0;
    const answer = singleFlight(ask, { freshMs: 100, timeoutMs, clock: () => now });
    return {
      answer,
      pass: (ms: number) => {
        now += ms;
      },
    };
  }

  test('asks once for all who ask at the same time, and again when the answer is old', async () => {
    const ask = vi.fn(async () => ask.mock.calls.length);
    const { answer, pass } = open(ask);
    expect(await Promise.all([answer(), answer()])).toEqual([1, 1]);
    pass(99);
    expect(await answer()).toBe(1);
    pass(1);
    expect(await answer()).toBe(2);
  });

  test('gives null for what fails, and asks again the next time', async () => {
    const ask = vi.fn(async () => {
      if (ask.mock.calls.length === 1) throw new Error('away');
      return 7;
    });
    const { answer } = open(ask);
    expect(await answer()).toBeNull();
    expect(await answer()).toBe(7);
  });

  test('gives null for what hangs, and does not ask a second time while it does', async () => {
    let resolve = (_: number) => {};
    const hanging = new Promise<number>((done) => {
      resolve = done;
    });
    const ask = vi.fn(() => hanging);
    const { answer } = open(ask, 5);
    expect(await answer()).toBeNull();
    expect(await answer()).toBeNull();
    expect(ask).toHaveBeenCalledTimes(1);
    resolve(3);
    expect(await answer()).toBe(3);
  });
});
