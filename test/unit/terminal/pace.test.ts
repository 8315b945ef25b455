import { describe, expect, it } from 'vitest';
import { nothingMeasured, parseMeasures } from '../../../src/ledger/measures.ts';
import type { Run } from '../../../src/ledger/run.ts';
import type { Reading } from '../../../src/ledger/standing.ts';
import type { TargetState } from '../../../src/limiter/read-target.ts';
import { parseRate } from '../../../src/model/rate.ts';
import { describePace, paceFacts, paceLines, paceSummary } from '../../../src/terminal/pace.ts';
import type { Snapshot } from '../../../src/terminal/snapshot.ts';
import { reading, snapshot, snapshotOf } from './snapshots.ts';
import { target } from './target-states.ts';

const { at } = snapshot();
type Seen = Partial<Omit<Reading, 'run'>> & { run?: Partial<Run>; idleMs?: number };
const words = (changes: Partial<TargetState>, { idleMs = 0, ...seen }: Seen = {}) =>
  describePace(snapshotOf(reading({ limiter: target(changes), ...seen }), { idleMs }));
const clock = (ms: number) => new Date(ms).toTimeString();
const hold = {
  kind: 'retry_after' as const,
  reason: 'the server answered 429 and sent Retry-After 30',
  leftMs: 21_000,
  since: at - 9_000,
};
const release = 'To send before the server wants it: expunge target release --base-url https://api.example.com';
const trouble = {
  kind: 'trouble' as const,
  reason: 'the API answers 503 to everything',
  since: at - 300_000,
  countsTries: false,
};

describe('the sentence about a running run', () => {
  it.each<[string, Partial<TargetState>, string]>([
    [
      'waits as the server asked',
      { hold },
      `Waiting 21 s: the server answered 429 and sent Retry-After 30. ${release}`,
    ],
    [
      'waits also where all processes are silent',
      { hold, silentMs: 60_000, processes: 0 },
      `Waiting 21 s: the server answered 429 and sent Retry-After 30. ${release}`,
    ],
    ['is near the limit', { rate: 420 }, 'Deleting at 420/s; the limit is about 430/s.'],
    ['has just passed it', { rate: 433 }, 'Deleting at 433/s; the limit is about 430/s.'],
    ['comes from far below', { rate: 380 }, 'Increasing: 380/s, last limit at 430/s.'],
    [
      'has met only a guess of it',
      { rate: 40, limitMet: 80, limitFound: 0 },
      'Looking for the limit: 40/s now, 80/s was refused.',
    ],
    [
      'is far below what was accepted before',
      { rate: 12, limitMet: 13, limitFound: 12, lowAfter: { refused: 2, answers: 583, agoMs: 40_000 } },
      'Deleting at 12/s; 2 of 583 requests were refused, the last 40 s ago: looking for more. ' +
        'Forget it: expunge target forget-rate --base-url https://api.example.com',
    ],
    [
      'is far below that, but the server asks for a wait',
      { hold, lowAfter: { refused: 1, answers: 583, agoMs: 40_000 } },
      `Waiting 21 s: the server answered 429 and sent Retry-After 30. ${release}`,
    ],
    ['does not use what it has met', { use: 0.3, limitFound: 0 }, 'Deleting; looking for the limit.'],
    ['climbs above', { rate: 470 }, 'Increasing: 470/s, last limit at 430/s.'],
    [
      'knows none',
      { phase: 'seek', rate: 1_280, limitMet: 0, limitFound: 0 },
      'Probing for the limit: 1,280/s so far.',
    ],
    [
      'has met it now',
      { phase: 'measure', rate: 480 },
      'Measuring the limit: the server throttles some requests at 480/s.',
    ],
    ['goes at the limit of its target', { ceiling: 200 }, 'Deleting at 200/s, as the limit of the target allows.'],
    ['is slower than that', { ceiling: 500 }, 'Deleting at 412/s; the limit is about 430/s.'],
    [
      'heeds the headers of the server',
      { advised: 50 },
      'Deleting at 50/s: the server reports that its limit is almost used up.',
    ],
    [
      'is bounded by its requests in flight',
      { phase: 'seek', rate: 5_000, limitMet: 0, limitFound: 0, use: 0.3, isStarved: true },
      'Deleting as fast as 64 requests at once allow.',
    ],
    [
      'is bounded by something else',
      { phase: 'seek', rate: 5_000, limitMet: 0, limitFound: 0, use: 0.3 },
      'Deleting; no limit reached yet.',
    ],
    ['does not use its limit', { use: 0.3 }, 'Deleting; the limit is about 430/s.'],
    ['does not use what it may', { use: 0.3, ceiling: 200 }, 'Deleting; the limit of the target allows 200/s.'],
  ])('that %s', (_, changes, sentence) => {
    expect(words(changes)).toBe(sentence);
  });

  it('says first that nothing was accepted for a quarter of an hour, whatever it waits for', () => {
    const stalled = { since: at - 1_200_000, ms: 1_200_000 };
    expect(words({ hold, stalled })).toBe(`Nothing was accepted for 20 min: waiting 21 s: ${hold.reason}. ${release}`);
    expect(words({ outage: trouble, stalled })).toMatch(/^Nothing was accepted for 20 min: the API answers 503 to /);
    expect(words({ stalled }, { idleMs: 1_200_000 })).toMatch(/^Nothing was accepted for 20 min: retrying: no id was /);
    expect(words({ stalled }, { nextTryAt: at + 9_000 })).toBe(
      'Waiting 9 s: the ids left failed before and are retried then.',
    );
  });

  it('tells since when nothing gets through, and what it costs', () => {
    expect(words({ outage: trouble })).toBe(
      `The API answers 503 to everything since ${clock(trouble.since).slice(0, 5)}; ` +
        'probing with one id from time to time, no id fails because of it. ' +
        'Try again at once: expunge target release --base-url https://api.example.com',
    );
    expect(words({ outage: { ...trouble, countsTries: true } })).toContain('each try now counts as an attempt.');
    expect(words({ outage: { ...trouble, since: at - 30_000 } })).toContain(clock(at - 30_000).slice(0, 8));
  });

  it('goes by the rate of the run where that is the lower one', () => {
    expect(words({}, { run: { rate: parseRate('200/s') } })).toBe('Deleting at 200/s, as --rate allows.');
    expect(words({ ceiling: 100 }, { run: { rate: parseRate('200/s') } })).toBe(
      'Deleting at 100/s, as the limit of the target allows.',
    );
    expect(words({ rate: 420 }, { run: { rate: parseRate('600/s') } })).toBe(
      'Deleting at 420/s; the limit is about 430/s.',
    );
  });

  it('says until when a spent quota lets nothing leave', () => {
    const rate = parseRate('200/s,100000/day');
    const soon = at + 3_600_000;
    expect(words({}, { run: { rate, quotaUntil: soon } })).toContain(
      `Waiting until ${clock(soon).slice(0, 5)} (1 h): --rate allows no more (100,000 a day). Allow more: expunge rate `,
    );
    const far = new Date(at + 86_400_000);
    expect(words({}, { run: { rate, quotaUntil: far.getTime() } })).toContain(` until ${far.getDate()} Nov `);
    expect(words({ hold }, { run: { rate, quotaUntil: soon } })).toContain('Retry-After');
  });

  it('says what we ourselves wait for before anything else', () => {
    const reason = 'the token endpoint answers 503; trying again in 4 s';
    const here = { stop: null, tokenWait: reason };
    expect(words({ hold }, { here })).toContain(`Waiting: no token: ${reason}. Check the token: expunge check `);
    expect(words({ outage: trouble }, { here, away: 'Redis does not answer' })).toBe('Waiting: Redis does not answer.');
  });

  it('says when ids in trouble are tried again, where nothing else is left', () => {
    const nextTryAt = at + 28_000;
    const sentence = 'Waiting 28 s: the ids left failed before and are retried then.';
    expect(words({}, { nextTryAt, idleMs: 9_000 })).toBe(sentence);
    expect(words({ processes: 0 }, { nextTryAt })).toBe(sentence);
    expect(words({ hold }, { nextTryAt })).toContain('Retry-After');
    const slow = { run: { rate: parseRate('6/min') }, idleMs: 9_000 };
    expect(words({}, { ...slow, nextTryAt })).toBe(sentence);
    expect(words({}, { ...slow, nextTryAt: at + 4_000 })).toBe('Deleting at 6/min, as --rate allows.');
    expect(words({ rate: 420 }, { nextTryAt: at - 1 })).toContain('Deleting');
  });

  it('says that nothing gets done, where no wait explains it', () => {
    expect(words({}, { idleMs: 9_000 })).toBe('Retrying: no id was settled for 9 s.');
    expect(words({ rate: 0.2 }, { idleMs: 9_000 })).not.toContain('Retrying');
    expect(words({ hold }, { idleMs: 9_000 })).toContain('Retry-After');
    expect(words({ outage: trouble }, { idleMs: 9_000 })).toContain('503');
    expect(describePace(snapshot({ idleMs: 9_000 }))).toContain('Retrying');
  });

  it('never says that something is retried where nothing was answered, but what is waited for', () => {
    const silent = { idleMs: 70_000, silentMs: 71_000, inFlight: 0 };
    const said = (changes: Partial<TargetState>, odd: Partial<Snapshot> = {}) =>
      describePace(snapshotOf(reading({ limiter: target(changes) }), { ...silent, ...odd }));
    expect(said({})).toBe('Waiting for permits from Redis: nothing was sent for 1 min 11 s.');
    expect(said({ processes: 0 })).toBe('Waiting for a process to take its ids: nothing was sent for 1 min 11 s.');
    expect(said({}, { redisMs: 1_500 })).toBe(
      'Waiting for Redis, which is 1.5 s away: nothing was sent for 1 min 11 s.',
    );
    expect(said({}, { inFlight: 64 })).toBe('Waiting for the answers to 64 requests: none came for 1 min 11 s.');
    expect(said({}, { silentMs: null })).toBe('Deleting: no id was settled for 1 min 10 s.');
    expect(said({}, { silentMs: 2_000 })).toBe('Retrying: no id was settled for 1 min 10 s.');
  });

  it('says that nobody works on a run that is seen from outside', () => {
    const nobody = { target: null, processes: [], tokenless: [], alive: 0 };
    const start = 'Start one: expunge worker --base-url https://api.example.com';
    const sentence = `No worker of this target is alive. ${start}`;
    const silent = { silentMs: 3_600_000, processes: 0 };
    expect(words({ ...silent, outage: trouble }, { stops: nobody })).toBe(sentence);
    expect(describePace(snapshotOf(reading({ stops: nobody })))).toBe(sentence);
    expect(words({ rate: 420 }, { stops: nobody })).toBe('Deleting at 420/s; the limit is about 430/s.');
  });

  it('leaves out a limiter that nobody uses', () => {
    expect(describePace(snapshot({ limiter: target({ silentMs: 3_600_000, processes: 0 }) }))).toBe('Deleting.');
    expect(describePace(snapshot())).toBe('Deleting.');
  });
});

describe('pace summary', () => {
  /** Two processes side by side for 100 s, of which each waited 21 s, under a limit of 412/s. */
  const measures = parseMeasures({
    requests: '39812',
    refused: '12',
    refreshes: '3',
    workMs: '200000',
    heldMs: '42000',
    allowed: '82400',
    limitedMs: '200000',
    l56: '90',
    l70: '6',
    l82: '4',
  });

  describe('the summary of the pace', () => {
    it('says in two lines how fast a run was and what held it back', () => {
      expect(paceLines(paceSummary(measures, 100_000))).toEqual([
        'Pace: 398/s of 412/s allowed · waited 21 s · 12 × 429 · token refreshed 3 ×',
        'Latency: p50 13 ms, p95 43 ms, p99 122 ms',
      ]);
    });

    it('compares no averages of different times, as of a rate that was lifted in the middle', () => {
      const lifted = parseMeasures({ requests: '3180', workMs: '10000', allowed: '1000', limitedMs: '5000' });
      expect(paceLines(paceSummary(lifted, 10_000))).toEqual(['Pace: 318/s']);
      expect(paceFacts(paceSummary(lifted, 10_000))).toMatchObject({ rate_achieved: 318, rate_allowed: null });
      const late = parseMeasures({ requests: '3180', workMs: '10000', allowed: '910', limitedMs: '9100' });
      expect(paceLines(paceSummary(late, 10_000))).toEqual(['Pace: 318/s']);
      const learned = parseMeasures({ requests: '3180', workMs: '10000', allowed: '2910', limitedMs: '9000' });
      expect(paceLines(paceSummary(learned, 10_000))).toEqual(['Pace: 318/s of 323/s allowed']);
    });

    it('leaves out what there is nothing to say of', () => {
      const calm = parseMeasures({ requests: '500', workMs: '1000', heldMs: '100' });
      expect(paceLines(paceSummary(calm, 1_000))).toEqual(['Pace: 500/s']);
      expect(paceLines(paceSummary(nothingMeasured, 1_000))).toEqual([]);
      expect(paceLines(paceSummary(measures, 0))).toEqual([]);
    });

    it('never says that more was waited than the run took', () => {
      const odd = parseMeasures({ requests: '1', workMs: '1000', heldMs: '5000' });
      expect(paceSummary(odd, 9_000).waitedMs).toBe(9_000);
    });

    it('has the same for programs', () => {
      expect(paceFacts(paceSummary(measures, 100_000))).toEqual({
        rate_achieved: 398,
        rate_allowed: 412,
        waited_seconds: 21,
        throttled: 12,
        token_refreshes: 3,
        latency_ms: { p50: 12.8, p95: 43.1, p99: 121.8 },
      });
      expect(paceFacts(paceSummary(nothingMeasured, 1_000))).toMatchObject({ rate_achieved: null, latency_ms: null });
    });
  });
});
