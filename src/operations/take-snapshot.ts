import { readNextAttempt } from '../ledger/backlog.ts';
import { judgeRun } from '../ledger/conclusion.ts';
import { countPending, type Run, sumActiveMs } from '../ledger/run.ts';
import { findStandings, type Reading, type Standing, standingFacts } from '../ledger/standing.ts';
import { toExitCode, toSummary } from '../ledger/summary.ts';
import { type QuotaUse, toBound } from '../limiter/quotas.ts';
import { readLimit, readTargetState } from '../limiter/read-target.ts';
import { farthestMs, readStops, type Stop, stopsFor } from '../limiter/stop.ts';
import { rehearsalFacts } from '../model/rehearsal.ts';
import type { ToType } from '../model/to-type.ts';
import type { RedisClient } from '../redis/client.ts';
import { keys } from '../redis/keys.ts';
import { probeWritesOfOthers } from '../redis/writes.ts';
import { paceAdvice } from '../terminal/pace.ts';
import { RateMeter } from '../terminal/panel.ts';
import type { Snapshot } from '../terminal/snapshot.ts';
import type { Token } from '../token/token.ts';
import { estimateSecondsLeft } from './time-left.ts';

/** What a deleting process knows about itself. */
export type LocalView = {
  sender: { inFlight: number; stop: Stop | null };
  token: Pick<Token, 'waiting' | 'refreshes'>;
  writeRejection: string;
};

/** What explains the pace of a run, as Redis has it; a server sends it to a command as JSON. */
export type RunContext = Pick<Reading, 'limiter' | 'nextTryAt' | 'stops' | 'refused'> & {
  quotas?: readonly QuotaUse[]; // quotas of the target
  requests?: number; // requests that were answered
  isAbandoned?: boolean;
};

/** Reads what explains the pace of a run, and probes whether Redis accepts writes. */
export async function readRunContext(redis: RedisClient, { id, fp }: Pick<Run, 'id' | 'fp'>): Promise<RunContext> {
  const reads = [
    readTargetState(redis, fp),
    readNextAttempt(redis, id),
    readStops(redis, fp),
    probeWritesOfOthers(redis, id),
    readLimit(redis, fp),
    redis.hget(keys.measures(id), 'requests'),
  ] as const;
  const [limiter, nextTryAt, stops, refused, { quotas }, requests] = await Promise.all(reads);
  return { limiter, nextTryAt, stops, refused, quotas, requests: Number(requests ?? 0) };
}

/** The facts about a run now. `seen`: what a process knows in addition if it deletes the run, or gets no answer. */
function readingOf(
  run: Run,
  { isAbandoned = false, quotas: _, requests: _n, ...context }: RunContext,
  seen: Partial<Pick<Reading, 'away' | 'refused' | 'here'>> = {},
): Reading {
  return { away: '', here: null, ...context, ...seen, now: Date.now(), target: run, run, isAbandoned };
}

/** The causes that hold a run back, as seen from outside. */
export function standingsOfRun(run: Run, context: RunContext): Standing[] {
  return findStandings(readingOf(run, context));
}

/** The summary of a run for `--json`, and what holds it back; `context` is null if it was not read. */
export function standingSummary(
  run: Run,
  context: RunContext | null,
  { toType, exit = toExitCode(run) }: { toType: ToType; exit?: number | null },
) {
  const standings = standingsOfRun(run, context ?? unknownContext);
  return {
    ...toSummary(withStanding(run, standings), exit, Date.now()),
    standing: standingFacts(standings, toType),
  };
}

/** The context of a run before its surroundings were read: it implies nothing about workers. */
const unknownContext: RunContext = {
  limiter: null,
  nextTryAt: null,
  stops: { target: null, processes: [], tokenless: [], alive: 1 },
  refused: '',
};

/** A `running` run that is held back gets the cause as its reason; any other run is returned unchanged. */
export function withStanding(run: Run, [standing]: readonly Standing[]): Run {
  return run.state !== 'running' || standing === undefined ? run : { ...run, reason: standing.text };
}

const eventsKept = 5;
const redisAway = 'Redis does not answer; nothing is sent without it';

/** Turns what Redis says about a run, and what this process knows itself, into snapshots for the panel. */
export class SnapshotTaker {
  readonly #meter = new RateMeter();
  readonly #local: LocalView | null;
  readonly #toType: ToType;
  #run: Run;
  #context = unknownContext;
  #changedAt: number | null = null;
  #idleMs = 0;
  #answered: { requests: number; at: number } | null = null;
  #away = '';
  #events: string[] = [];

  /** `local` is null for a run that other processes delete. */
  constructor(run: Run, local: LocalView | null, toType: ToType) {
    this.#run = run;
    this.#local = local;
    this.#toType = toType;
  }

  /** Takes the run as it is now; undefined if there was no answer, as `away` says; null if the run is no longer known. */
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

  /** Takes what explains its pace; undefined if Redis did not answer. */
  observeContext(context: RunContext | undefined): void {
    this.#context = context ?? this.#context;
    const { requests } = this.#context;
    if (requests !== undefined && requests !== this.#answered?.requests)
      this.#answered = { requests, at: performance.now() };
  }

  take(): Snapshot {
    const run = this.#run;
    const at = Date.now();
    const perSecond = this.#meter.perSecond;
    const standings = findStandings(this.#reading());
    const { limiter, quotas = [] } = this.#context;
    return {
      at,
      runId: run.id,
      host: new URL(run.rehearsalOf || run.baseUrl).host,
      rehearsalOf: run.rehearsalOf,
      state: run.state,
      conclusion: judgeRun(run),
      reason: run.reason,
      who: run.state === 'running' ? '' : run.who,
      standings,
      advice: paceAdvice({ standings, limiter }, run, this.#toType),
      rows: run.rows,
      ids: run.ids,
      counts: run.counts,
      pending: countPending(run),
      inFlight: this.#local?.sender.inFlight ?? null,
      perSecond,
      idleMs: this.#idleMs,
      silentMs: this.#answered && performance.now() - this.#answered.at,
      redisMs: farthestMs(stopsFor(run, this.#context.stops)),
      secondsLeft: estimateSecondsLeft(run, { perSecond, limiter, quotas: quotas.map(toBound) }, at),
      limiter,
      rate: run.rate,
      elapsedMs: sumActiveMs(run, at),
      events: this.#events,
    };
  }

  /** The snapshot for `--json`. */
  facts(): Record<string, unknown> {
    const { runId, state, reason, rows, pending, counts, perSecond, standings, redisMs } = this.take();
    return {
      ...rehearsalFacts(this.#run),
      run: runId,
      state,
      reason,
      rows,
      pending,
      ...counts,
      per_second: Math.round(perSecond ?? 0),
      standing: standingFacts(standings, this.#toType),
      redis_round_trip_ms: redisMs || null,
    };
  }

  /** Adds a line below the panel, which shows the last five. */
  addEvent(event: string): void {
    const time = new Date().toTimeString().slice(0, 8);
    this.#events = [...this.#events, `${time}  ${event}`].slice(-eventsKept);
  }

  #reading(): Reading {
    const local = this.#local;
    const here = local && { stop: local.sender.stop, tokenWait: local.token.waiting };
    const refused = local?.writeRejection || this.#context.refused;
    return readingOf(this.#run, this.#context, { away: this.#away, refused, here });
  }
}
