import { readNextAttempt } from '../ledger/backlog.ts';
import { judgeRun } from '../ledger/conclusion.ts';
import { activeMsOf, pendingOf, type Run } from '../ledger/run.ts';
import { readTargetState } from '../limiter/read-target.ts';
import { readStops, type Stop, type TargetStops } from '../limiter/stop.ts';
import type { ToType } from '../model/to-type.ts';
import type { RedisClient } from '../redis/client.ts';
import { probeWrites } from '../redis/writes.ts';
import { RateMeter } from '../terminal/panel.ts';
import { type Snapshot, type Waiting, waitForWindow, waitingOf } from '../terminal/snapshot.ts';
import { commandFor } from '../terminal/stop-text.ts';
import type { Token } from '../token/token.ts';

/** What a deleting process knows of itself. */
export type LocalView = {
  senders: { inFlight: number; stop: Stop | null };
  token: Pick<Token, 'waiting' | 'refreshes'>;
  writeRejection: string;
};

/** What explains the pace of a run. */
type RunContext = Pick<Snapshot, 'targets' | 'nextTryAt'> & {
  stops: TargetStops;
  refused: string;
  isAbandoned?: boolean;
};

/** Reads what explains the pace of a run, and probes whether Redis accepts writes. */
export async function readRunContext(redis: RedisClient, { id, fp }: Pick<Run, 'id' | 'fp'>): Promise<RunContext> {
  const reads = [
    readTargetState(redis, fp),
    readNextAttempt(redis, id),
    readStops(redis, fp),
    probeWrites(redis, id),
  ] as const;
  const [targets, nextTryAt, stops, words] = await Promise.all(reads);
  const refused = words.includes('NOPERM') ? '' : words; // a read-only login says nothing about processes that write
  return { targets, nextTryAt, stops, refused };
}

const eventsKept = 5;
const redisAway = 'Redis does not answer; nothing is sent without it';

/** Turns what Redis says about a run, and what this process knows itself, into snapshots for the panel. */
export class SnapshotTaker {
  readonly #meter = new RateMeter();
  readonly #local: LocalView | null;
  readonly #toType: ToType;
  #run: Run;
  #context: RunContext = {
    targets: [],
    nextTryAt: null,
    stops: { target: null, processes: [], alive: 0 },
    refused: '',
  };
  #changedAt: number | null = null;
  #idleMs = 0;
  #away = '';
  #events: string[] = [];

  /** `local` is null for a run that other processes delete. */
  constructor(run: Run, local: LocalView | null, toType: ToType) {
    this.#run = run;
    this.#local = local;
    this.#toType = toType;
  }

  /** The run as it is now; undefined if who is asked did not answer, as `away` says; null if the run is no longer known. */
  observe(run: Run | null | undefined, away = redisAway): void {
    this.#away = run === undefined ? away : '';
    if (!run) return;
    if (run.state !== this.#run.state) this.addEvent(`${run.state}${run.reason ? `: ${run.reason}` : ''}`);
    const at = performance.now();
    if (run.settled !== this.#run.settled || run.state !== 'running' || this.#changedAt === null) this.#changedAt = at;
    this.#idleMs = at - this.#changedAt;
    this.#run = run;
    this.#meter.observe(Date.now(), run.settled);
  }

  /** What explains its pace; undefined if Redis did not answer. */
  observeContext(context: RunContext | undefined): void {
    this.#context = context ?? this.#context;
  }

  take(): Snapshot {
    const run = this.#run;
    const at = Date.now();
    const perSecond = this.#meter.perSecond;
    const left = run.ids - run.settled;
    const { stops, refused: _, isAbandoned = false, ...context } = this.#context;
    return {
      resumeCommand: this.#toType('resume', run.id),
      startCommand: commandFor(this.#toType, 'start-all', run),
      at,
      runId: run.id,
      host: new URL(run.baseUrl).host,
      state: run.state,
      conclusion: judgeRun(run),
      reason: run.reason,
      by: run.by,
      who: run.state === 'running' ? '' : run.who,
      isAbandoned,
      rows: run.rows,
      ids: run.ids,
      counts: run.counts,
      pending: pendingOf(run),
      inFlight: this.#local?.senders.inFlight ?? null,
      perSecond,
      idleMs: this.#idleMs,
      secondsLeft: run.state === 'running' && perSecond !== null && perSecond > 0 ? left / perSecond : null,
      stop: this.#local === null ? stopFromOutside(stops, context.targets) : this.#local.senders.stop,
      waiting: this.#waiting(),
      ...context,
      rate: run.rate,
      quotaUntil: run.rate !== null && run.rate.length > 1 && run.quotaUntil > at ? run.quotaUntil : 0,
      elapsedMs: activeMsOf(run, at),
      events: this.#events,
    };
  }

  /** The snapshot for `--json`. */
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

  /** Adds a line below the panel, which shows the last five. */
  addEvent(event: string): void {
    const time = new Date().toTimeString().slice(0, 8);
    this.#events = [...this.#events, `${time}  ${event}`].slice(-eventsKept);
  }

  #waiting(): Waiting | null {
    if (this.#away !== '') return { reason: this.#away, leftMs: 0 };
    const refused = this.#local?.writeRejection || this.#context.refused;
    if (refused !== '') return { reason: describeRejectedWrites(refused), leftMs: 0 };
    if (this.#run.unreadRate !== '') return { reason: describeUnreadRate(this.#run, this.#toType), leftMs: 0 };
    const reason = this.#local?.token.waiting ?? '';
    return reason !== '' ? { for: 'a token', reason, leftMs: 0 } : waitForWindow(this.#run, Date.now());
  }
}

/** The stop of a run that other processes delete: a process that a stop file stops counts only if no other process is deleting. */
function stopFromOutside({ target, processes }: TargetStops, targets: RunContext['targets']): Stop | null {
  return target ?? (targets.every((limiter) => limiter.processes === 0) ? (processes[0] ?? null) : null);
}

/** What the panel shows while Redis answers but rejects writes. */
function describeRejectedWrites(refused: string): string {
  return `Redis rejects writes: ${refused}; nothing is sent until it accepts them again`;
}

function describeUnreadRate({ id, unreadRate }: Run, toType: ToType): string {
  return `its rate "${unreadRate}" is in a form that this release can't read; give it another: ${toType('rate', id, '200/s')}`;
}
