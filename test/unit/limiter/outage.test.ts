import { describe, expect, it, test } from 'vitest';
import { AnswerTally, OutageDetector, type Signal } from '../../../src/limiter/outage.ts';

/** After how many of these answers, repeated, the breaker opens; null = not within 1,000. */
function opensAfter(...signals: Signal[]): number | null {
  const watch = new OutageDetector();
  for (let n = 1; n <= 1_000; n++) if (watch.observe(signals[(n - 1) % signals.length]!)) return n;
  return null;
}

describe('an outage is noticed', () => {
  it.each<[string, Signal[], number | null]>([
    ['after 20 answers of trouble in a row', ['trouble'], 20],
    ['after 20 answers that never came', ['lost'], 20],
    ['after 5 connections that failed', ['unreachable'], 5],
    ['when three quarters of the last 64 are trouble', ['trouble', 'trouble', 'trouble', 'trouble', 'accepted'], 59],
    ['after 20 lost answers among refusals only', [...Array(19).fill('refused'), 'lost'] as Signal[], 400],
    ['not while half of the answers are fine', ['trouble', 'accepted'], null],
    ['not where a third is refused', ['refused', 'accepted', 'accepted'], null],
    ['not by refusals, however many: closed.ts decides for all processes', ['refused'], null],
    ['not by answers that say when to go on', ['throttled'], null],
    ['not by refused tokens', ['nothing'], null],
    ['not while all is well', ['accepted'], null],
  ])('%s', (_name, signals, expected) => {
    expect(opensAfter(...signals)).toBe(expected);
  });

  it('anew after a reset only', () => {
    const watch = new OutageDetector();
    for (let n = 0; n < 19; n++) watch.observe('trouble');
    watch.reset();
    expect(watch.observe('trouble')).toBe(false);
  });
});

describe('tally', () => {
  test.each<[Signal, counts: number[]]>([
    ['accepted', [1, 0, 0]],
    ['refused', [0, 1, 0]],
    ['throttled', [0, 1, 0]],
    ['unavailable', [0, 1, 0]],
    ['trouble', [0, 0, 1]],
    ['lost', [0, 0, 1]],
    ['unreachable', [0, 0, 1]],
    ['nothing', [0, 0, 0]],
  ])('an answer that says %s counts as %j', (signal, counts) => {
    const tally = new AnswerTally();
    tally.add(0, signal, 5);
    expect(tally.flat()).toEqual(signal === 'nothing' ? [] : [0, ...counts]);
    expect(tally.lost).toBe(signal === 'lost' ? 1 : 0);
    expect(tally.latencies).toBe(signal === 'accepted' ? 1 : 0);
  });

  test('answers are counted by the epoch of the permits they were sent with', () => {
    const tally = new AnswerTally();
    for (const epoch of [0, 3, 3, 0, 4]) tally.add(epoch, 'accepted', 1);
    expect(tally.flat()).toEqual([0, 2, 0, 0, 3, 2, 0, 0, 4, 1, 0, 0]);
  });

  test('latencies of accepted answers are counted and summed', () => {
    const tally = new AnswerTally();
    tally.add(0, 'accepted', 3);
    tally.add(0, 'accepted', 5);
    tally.add(0, 'refused', 100);
    expect([tally.latencies, tally.latencySum]).toEqual([2, 8]);
  });
});
