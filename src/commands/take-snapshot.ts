import { readNextAttempt } from '../ledger/backlog.ts';
import { activeMsOf, pendingOf, type Run } from '../ledger/run.ts';
import { readTargetState } from '../limiter/read-target.ts';
import { readStops, type Stop, type TargetStops } from '../limiter/stop.ts';
import type { RedisClient } from '../redis/client.ts';
import { probeWrites } from '../redis/writes.ts';
import { RateMeter } from '../terminal/panel.ts';
import { type Snapshot, type Waiting, waitingOf } from '../terminal/snapshot.ts';
import type { Token } from '../token/token.ts';

/** What of a deleting process can be seen from inside. */
export type LocalView = {
  senders: { inFlight: number; stop: Stop | null };
  token: Pick<Token, 'waiting' | 'refreshes'>;
  writeRejection: string;
};

/** What explains the pace of a run. */
export type RunContext = Pick<Snapshot, 'targets' | 'nextTryAt'> & {
  stops: TargetStops;
  refused: string;
  isAbandoned?: boolean;
};

/** Reads it for a run of this target, and tries whether Redis takes writes. */
export async function readRunContext(redis: RedisClient, { id, fp }: Pick<Run, 'id' | 'fp'>): Promise<RunContext> {
  const reads = [
    readTargetState(redis, fp),
    readNextAttempt(redis, id),
    readStops(redis, fp),
    probeWrites(redis, id),
  ] as const;
  const [targets, nextTryAt, stops, words] = await Promise.all(reads);
  const refused = words.includes('NOPERM') ? '' : words; // a login that may only look says nothing about those who write
  return { targets, nextTryAt, stops, refused };
}

const eventsKept = 5;

/** Turns what Redis says about a run, and what this process knows itself, into snapshots for the panel. */
export class SnapshotTaker {
  readonly #meter = new RateMeter();
  readonly #inside: LocalView | null;
  #run: Run;
  #around: RunContext = { targets: [], nextTryAt: null, stops: { target: null, processes: [], alive: 0 }, refused: '' };
  #changedAt: number | null = null;
  #idleMs = 0;
  #isAway = false;
  #events: string[] = [];

  /** `inside` is null for a run that other processes delete. */
  constructor(run: Run, inside: LocalView | null) {
    this.#run = run;
    this.#inside = inside;
  }

  /** The run as it is now; undefined if Redis did not answer, null if it no longer knows the run. */
  observe(run: Run | null | undefined): void {
    this.#isAway = run === undefined;
    if (!run) return;
    if (run.state !== this.#run.state) this.addEvent(`${run.state}${run.reason ? `: ${run.reason}` : ''}`);
    const at = performance.now();
    if (run.settled !== this.#run.settled || run.state !== 'running' || this.#changedAt === null) this.#changedAt = at;
    this.#idleMs = at - this.#changedAt;
    this.#run = run;
    this.#meter.observe(Date.now(), run.settled);
  }

  /** What explains its pace; undefined if Redis did not answer. */
  observeContext(around: RunContext | undefined): void {
    this.#around = around ?? this.#around;
  }

  take(): Snapshot {
    const run = this.#run;
    const at = Date.now();
    const perSecond = this.#meter.perSecond;
    const left = run.ids - run.settled;
    const { stops, refused: _, isAbandoned = false, ...around } = this.#around;
    return {
      at,
      runId: run.id,
      host: new URL(run.baseUrl).host,
      state: run.state,
      reason: run.reason,
      by: run.by,
      who: run.state === 'running' ? '' : run.who,
      isAbandoned,
      rows: run.rows,
      ids: run.ids,
      counts: run.counts,
      pending: pendingOf(run),
      inFlight: this.#inside?.senders.inFlight ?? null,
      perSecond,
      idleMs: this.#idleMs,
      secondsLeft: run.state === 'running' && perSecond !== null && perSecond > 0 ? left / perSecond : null,
      stop: this.#inside === null ? stopFromOutside(stops, around.targets) : this.#inside.senders.stop,
      waiting: this.#waiting(),
      ...around,
      rate: run.rate,
      quotaUntil: run.rate !== null && run.rate.length > 1 && run.quotaUntil > at ? run.quotaUntil : 0,
      elapsedMs: activeMsOf(run, at),
      events: this.#events,
    };
  }

  /** The same for `--json`. */
  facts(): Record<string, unknown> {
    const snapshot = this.take();
    const { runId, state, reason, rows, pending, counts, perSecond } = snapshot;
    const waiting = waitingOf(snapshot);
    const waits = waiting && { reason: waiting.reason, seconds: waiting.leftMs / 1_000 };
    return {
      run: runId,
      state,
      reason,
      rows,
      pending,
      ...counts,
      per_second: Math.round(perSecond ?? 0),
      waiting: waits,
    };
  }

  #waiting(): Waiting | null {
    if (this.#isAway) return { reason: 'Redis does not answer; nothing is sent without it', leftMs: 0 };
    const refused = this.#inside?.writeRejection || this.#around.refused;
    if (refused !== '') return { reason: refusalText(refused), leftMs: 0 };
    if (this.#run.unreadRate !== '') return { reason: unreadRateText(this.#run), leftMs: 0 };
    const reason = this.#inside?.token.waiting ?? '';
    return reason !== '' ? { for: 'a token', reason, leftMs: 0 } : null;
  }

  /** Something people should see under the panel. */
  addEvent(event: string): void {
    const time = new Date().toTimeString().slice(0, 8);
    this.#events = [...this.#events, `${time}  ${event}`].slice(-eventsKept);
  }
}

/** Seen from outside, a process that a file stops matters only where no other one goes on. */
function stopFromOutside({ target, processes }: TargetStops, targets: RunContext['targets']): Stop | null {
  return target ?? (targets.every((limiter) => limiter.processes === 0) ? (processes[0] ?? null) : null);
}

/** What people read while Redis answers and takes nothing. */
function refusalText(refused: string): string {
  return `Redis rejects writes: ${refused}; nothing is sent; goes on by itself once it accepts writes`;
}

function unreadRateText({ id, unreadRate }: Run): string {
  return `its rate "${unreadRate}" is in a form that this release can't read; give it another: expunge rate ${id} 200/s`;
}
