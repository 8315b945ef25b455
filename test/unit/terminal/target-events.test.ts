import { describe, expect, it } from 'vitest';
import type { TargetState } from '../../../src/limiter/read-target.ts';
import { eventText, TargetEvents } from '../../../src/terminal/target-events.ts';
import { target } from './target-states.ts';

/** What is told of a target that changes like this, a look each `everyMs`; of each step the time it is seen at. */
function told(steps: Partial<TargetState>[], refreshes: number[] = [], everyMs = 1_000): [number, string][] {
  const events = new TargetEvents();
  const { at } = target();
  return steps.flatMap((changes, i) =>
    events
      .see([target({ at: at + i * everyMs, ...changes })], refreshes[i] ?? 0, i * everyMs)
      .map((event): [number, string] => [i, eventText(event)]),
  );
}

const hold = (leftMs: number) => ({ hold: { reason: 'the server answered 429 and sent Retry-After 30', leftMs } });
const outage = { outage: { reason: 'the API answers 503 to everything', since: target().at + 1_000 } };
const times = <T>(n: number, value: T): T[] => Array.from({ length: n }, () => value);

describe('what is told of a target', () => {
  it('is nothing as long as nothing changes', () => {
    expect(told(times(100, {}))).toEqual([]);
  });

  it('is the first limit, once it is sure', () => {
    const steps = [...times(3, { limitMet: 0 }), { limitMet: 372 }, { limitMet: 0 }, ...times(90, { limitMet: 303 })];
    expect(told(steps)).toEqual([[9, 'limit met: the server refuses more than about 303/s']]);
  });

  it('is an outage and its end', () => {
    expect(told([{}, outage, outage, outage, {}, {}])).toEqual([
      [1, 'outage: the API answers 503 to everything'],
      [4, 'the outage is over: it lasted 3 s'],
    ]);
  });

  it('is an outage that was there before', () => {
    expect(told([outage])).toHaveLength(1);
  });

  it('is a longer wait and its end, once a minute', () => {
    const waits = times(10, [hold(5_000), hold(4_000), {}]).flat();
    expect(told(waits)).toEqual([
      [0, 'waiting: the server answered 429 and sent Retry-After 30; no id uses up an attempt'],
      [2, 'going on: after waiting for 2 s'],
    ]);
    expect(told(times(40, [hold(5_000), {}]).flat())).toHaveLength(4);
    expect(told([hold(1_000), {}])).toEqual([]);
  });

  it('is a new token, once a minute', () => {
    const refreshes = Array.from({ length: 70 }, (_, i) => i);
    expect(told(times(70, {}), refreshes)).toEqual([
      [1, 'token refreshed: 1 × so far'],
      [61, 'token refreshed: 61 × so far'],
    ]);
  });
});
