import { perOutcome } from '../../../src/model/outcome.ts';
import type { Snapshot } from '../../../src/terminal/snapshot.ts';

export const noCounts = perOutcome(() => 0);

/** A run in its middle. */
export function snapshot(changes: Partial<Snapshot> = {}): Snapshot {
  return {
    at: Date.UTC(2026, 10, 20, 16, 6, 7),
    runId: '20261120-1602-m4tz',
    resumeCommand: 'expunge resume 20261120-1602-m4tz',
    startCommand: 'expunge start-all --base-url https://api.example.com',
    host: 'api.example.com',
    state: 'running',
    conclusion: null,
    reason: '',
    by: '',
    who: '',
    isAbandoned: false,
    rows: 250_000,
    ids: 249_981,
    counts: { ...noCounts, deleted: 94_021, absent: 958, failed: 14, rejected: 7, duplicate: 12 },
    pending: 154_988,
    inFlight: 64,
    perSecond: 398,
    idleMs: 0,
    nextTryAt: null,
    secondsLeft: 389,
    stop: null,
    waiting: null,
    targets: [],
    rate: null,
    quotaUntil: 0,
    elapsedMs: 245_000,
    events: [],
    ...changes,
  };
}
