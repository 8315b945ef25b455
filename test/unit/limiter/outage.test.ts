import { describe, expect, it } from 'vitest';
import { OutageDetector, type Signal } from '../../../src/limiter/outage.ts';

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
    ['after 64 refusals in a row', ['refused'], 64],
    ['when three quarters of the last 64 are trouble', ['trouble', 'trouble', 'trouble', 'trouble', 'accepted'], 59],
    ['after 20 lost answers among refusals only', [...Array(19).fill('refused'), 'lost'] as Signal[], 400],
    ['not while half of the answers are fine', ['trouble', 'accepted'], null],
    ['not where a third is refused', ['refused', 'accepted', 'accepted'], null],
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
