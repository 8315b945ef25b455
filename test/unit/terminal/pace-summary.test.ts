import { describe, expect, it } from 'vitest';
import { measuresOf, nothingMeasured } from '../../../src/ledger/measures.ts';
import { paceFacts, paceLines, paceSummary } from '../../../src/terminal/pace-summary.ts';

/** Two processes side by side for 100 s, of which each waited 21 s, under a limit of 412/s. */
const measures = measuresOf({
  ...{ requests: '39812', refused: '12', refreshes: '3', workMs: '200000', heldMs: '42000' },
  ...{ allowed: '82400', limitedMs: '200000', l56: '90', l70: '6', l82: '4' },
});

describe('the summary of the pace', () => {
  it('says in two lines how fast a run was and what held it back', () => {
    expect(paceLines(paceSummary(measures, 100_000))).toEqual([
      'Pace: 398/s of 412/s allowed · waited 21 s · 12 × 429 · token refreshed 3 ×',
      'Latency: p50 13 ms, p95 43 ms, p99 122 ms',
    ]);
  });

  it('leaves out what there is nothing to say of', () => {
    const calm = measuresOf({ requests: '500', workMs: '1000', heldMs: '100' });
    expect(paceLines(paceSummary(calm, 1_000))).toEqual(['Pace: 500/s']);
    expect(paceLines(paceSummary(nothingMeasured, 1_000))).toEqual([]);
    expect(paceLines(paceSummary(measures, 0))).toEqual([]);
  });

  it('never says that more was waited than the run took', () => {
    const odd = measuresOf({ requests: '1', workMs: '1000', heldMs: '5000' });
    expect(paceSummary(odd, 9_000).waitedMs).toBe(9_000);
  });

  it('has the same for programs', () => {
    expect(paceFacts(paceSummary(measures, 100_000))).toEqual({
      ...{ rate_achieved: 398, rate_allowed: 412, waited_seconds: 21, refused_429: 12, token_refreshes: 3 },
      latency_ms: { p50: 12.8, p95: 43.1, p99: 121.8 },
    });
    expect(paceFacts(paceSummary(nothingMeasured, 1_000))).toMatchObject({ rate_achieved: null, latency_ms: null });
  });
});
