import { parseRun, type Run } from '../../../src/ledger/run.ts';
import { findStandings, type Reading } from '../../../src/ledger/standing.ts';
import { perOutcome } from '../../../src/model/outcome.ts';
import { toTypeAnywhere } from '../../../src/model/to-type.ts';
import { paceAdvice } from '../../../src/terminal/pace.ts';
import type { Snapshot } from '../../../src/terminal/snapshot.ts';

export const noCounts = perOutcome(() => 0);

/** A run in its middle. */
export function snapshot(changes: Partial<Snapshot> = {}): Snapshot {
  return {
    at: Date.UTC(2026, 10, 20, 16, 6, 7),
    runId: '20261120-1602-m4tz',
    host: 'api.example.com',
    rehearsalOf: '',
    state: 'running',
    conclusion: null,
    reason: '',
    who: '',
    standings: [],
    advice: '',
    rows: 250_000,
    ids: 249_981,
    counts: { ...noCounts, deleted: 94_021, absent: 958, failed: 14, rejected: 7, duplicate: 12 },
    pending: 154_988,
    inFlight: 64,
    perSecond: 398,
    idleMs: 0,
    silentMs: 0,
    redisMs: 0,
    secondsLeft: 389,
    limiter: null,
    rate: null,
    elapsedMs: 245_000,
    events: [],
    ...changes,
  };
}

/** A running run that nothing holds, as another process sees it. */
export function reading({
  run = {},
  ...changes
}: Partial<Omit<Reading, 'run'>> & { run?: Partial<Run> } = {}): Reading {
  return {
    now: snapshot().at,
    target: { baseUrl: 'https://api.example.com', account: '' },
    limiter: null,
    stops: { target: null, processes: [], tokenless: [], alive: 1 },
    run: { ...parseRun(snapshot().runId, { state: 'running', detached: '1' }), ...run },
    isAbandoned: false,
    nextTryAt: null,
    away: '',
    refused: '',
    here: null,
    ...changes,
  };
}

/** A snapshot of what was read. */
export function snapshotOf(seen: Reading, changes: Partial<Snapshot> = {}): Snapshot {
  const standings = findStandings(seen);
  const { limiter } = seen;
  const advice = paceAdvice({ standings, limiter }, seen.target, toTypeAnywhere);
  const { state, reason, who, rate } = seen.run as Run;
  return snapshot({ state, reason, who, rate, standings, advice, limiter, at: seen.now, ...changes });
}
