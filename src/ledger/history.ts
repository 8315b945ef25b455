import { isoTime, rate } from '../format.ts';
import { idOutcomes } from '../model/outcome.ts';
import { visibleLine } from '../model/visible.ts';
import type { RedisClient } from '../redis/client.ts';
import { keys } from '../redis/keys.ts';
import { type AuditEntry, readAudit } from './audit.ts';
import { readChanges } from './changes.ts';
import {
  bucketsOfOne,
  latencyBuckets,
  latencyBytes,
  noteHistoryLua,
  readHistoryLua,
  reasonBytes,
  sampleSums,
  sumBytes,
} from './history.lua.ts';
import { latencyAt } from './measures.ts';
import { isSealed, type Run } from './run.ts';

/** What a process sees now. `limit`: requests per second, null = none is known; `hold`: why nothing may be sent, '' = it may. */
type Conditions = { limit: number | null; hold: string };

type Sum = (typeof sampleSums)[number];

/** The sums of a run at one moment. */
export type Sample = Record<Sum, number> & { latencies: number[] };

/** What happened between two samples. Rates are requests per second of deleting time; null = nothing was measured. */
export type HistoryPoint = {
  from: number; // ms since 1970
  to: number;
  activeMs: number; // the deleting time in it, without pauses
  requests: number;
  refused: number; // throttled requests
  retried: number; // answers after which an id was tried again
  waitedMs: number; // part of `activeMs`: no request was allowed
  achieved: number | null; // without throttled requests
  allowed: number | null; // on average, while a limit was known
  inFlight: number | null; // on average, by how long the answers took
  takeovers: number; // chunks of processes that did not hand them back
  counts: Readonly<Record<string, number>>; // ids by outcome; below 0 where better evidence came
  latencyMs: { p50: number; p95: number } | null;
};

/** Something that happened to a run. */
type HistoryEvent = {
  at: number; // ms since 1970
  event: 'state' | 'waiting' | 'resumed' | 'rate' | 'rate_set' | 'takeover' | 'doubt';
  text: string;
};

/** How a run went, the oldest first. The sums of the points are those of the run. */
export type History = { points: HistoryPoint[]; events: HistoryEvent[] };

/** Adds to the history of a run what a process sees, unless its record has expired. Best effort; repeating it changes nothing. */
export async function noteHistory(redis: RedisClient, run: string, { limit, hold }: Conditions): Promise<void> {
  const all = [keys.run(run), keys.measures(run), keys.history(run), keys.historyEvents(run)];
  await redis.eval(noteHistoryLua, all.length, ...all, limit === null ? '' : limit.toFixed(1), cutReason(hold));
}

/** In one line, and cut to whole characters. */
function cutReason(text: string): string {
  return Buffer.from(visibleLine(text))
    .subarray(0, reasonBytes)
    .toString()
    .replace(/\ufffd$/, '…');
}

/** The history of a run so far. Only reads. */
export async function readHistory(redis: RedisClient, run: Run): Promise<History> {
  const [samples, noted, changes, audit] = await Promise.all([
    readSamples(redis, run.id),
    redis.lrange(keys.historyEvents(run.id), 0, -1),
    redis.hget(keys.run(run.id), 'changes'),
    readAudit(redis, run),
  ]);
  const points = pointsOf(samples, run);
  const states = (await readChanges(redis, run.id, Number(changes ?? 0), 0)).map(
    ({ at, state, reason, by, who }): HistoryEvent => ({
      at,
      event: 'state',
      text: state === 'completed' ? state : withReason(`${state}${who || by ? ` by ${who || by}` : ''}`, reason),
    }),
  );
  const events = [...states, ...noted.map(notedEvent), ...rateEvents(audit), ...takeovers(points), ...doubt(run)];
  return { points, events: events.sort((a, b) => a.at - b.at) };
}

async function readSamples(redis: RedisClient, run: string): Promise<Sample[]> {
  redis.defineCommand('expungeReadHistory', { numberOfKeys: 3, lua: readHistoryLua });
  const { expungeReadHistoryBuffer: read } = redis as unknown as { expungeReadHistoryBuffer: ReadHistory };
  return (await read.call(redis, keys.run(run), keys.measures(run), keys.history(run))).map(readSample);
}

type ReadHistory = (...keys: string[]) => Promise<Buffer[]>;

function readSample(bytes: Buffer): Sample {
  const sums = sampleSums.map((name, i) => [name, bytes.readUIntBE(i * sumBytes, sumBytes)]);
  const from = sampleSums.length * sumBytes;
  const latencies = Array.from({ length: latencyBuckets }, (_, i) => bytes.readUInt32BE(from + i * latencyBytes));
  return { ...(Object.fromEntries(sums) as Record<Sum, number>), latencies };
}

const nothing = Object.fromEntries(sampleSums.map((name) => [name, 0])) as Record<Sum, number>;

/**
 * What happened from each sample to the next, from the start of the run on. The last one is of now: of a run that is not running, it
 * belongs to when that began. Pure.
 */
export function pointsOf(samples: readonly Sample[], run: Pick<Run, 'state' | 'startedAt' | 'changedAt' | 'endedAt'>) {
  const until = run.state === 'running' ? samples.at(-1)!.at : isSealed(run.state) ? run.endedAt : run.changedAt;
  const points: HistoryPoint[] = [];
  const retried = retriedUntil(samples);
  let before: Sample = { ...nothing, at: run.startedAt || until, latencies: new Array(latencyBuckets).fill(0) };
  for (const [i, sample] of samples.entries()) {
    const isLast = i === samples.length - 1;
    const now = isLast ? { ...sample, at: Math.max(before.at, until) } : sample;
    const more = retried[i]! - (retried[i - 1] ?? 0);
    if (!isLast || hasChanged(before, now)) points.push(pointBetween(before, now, more));
    before = now;
  }
  return points;
}

const sentOutcomes = idOutcomes.filter((outcome) => outcome !== 'not_attempted');

/**
 * How many answers until each sample settled no id. Outcomes are joined a moment after their answers, so it is never more than at any later
 * sample. Pure.
 */
function retriedUntil(samples: readonly Sample[]): number[] {
  let least = Number.POSITIVE_INFINITY;
  return samples
    .toReversed()
    .map((sample) => {
      const settled = sentOutcomes.reduce((sum, outcome) => sum + sample[outcome], 0);
      least = Math.min(least, Math.max(0, sample.requests - sample.refused - settled));
      return least;
    })
    .reverse();
}

function hasChanged(before: Sample, now: Sample): boolean {
  return sampleSums.some((name) => name !== 'at' && now[name] !== before[name]);
}

function pointBetween(before: Sample, now: Sample, retried: number): HistoryPoint {
  const more = (name: Sum) => now[name] - before[name];
  const activeMs = more('activeMs');
  const perSecond = (n: number, ms: number) => (ms > 0 ? (n / ms) * 1_000 : null);
  const isUsed = more('requests') > 0;
  const isMeasured = isUsed || sentOutcomes.every((outcome) => more(outcome) === 0); // measures come once a second, outcomes at once
  return {
    from: before.at,
    to: now.at,
    activeMs,
    requests: more('requests'),
    refused: more('refused'),
    retried,
    waitedMs: more('workMs') > 0 ? Math.min(1, more('heldMs') / more('workMs')) * activeMs : 0,
    achieved: isMeasured ? perSecond(more('requests') - more('refused'), activeMs) : null,
    allowed: perSecond(more('allowed'), more('limitedMs')),
    inFlight: isUsed && activeMs > 0 ? more('busyMs') / activeMs : null,
    takeovers: more('takeovers'),
    counts: Object.fromEntries(idOutcomes.map((outcome) => [outcome, more(outcome)])),
    latencyMs: percentiles(now.latencies.map((n, i) => n - before.latencies[i]!)),
  };
}

function percentiles(buckets: readonly number[]): HistoryPoint['latencyMs'] {
  const all = buckets.reduce((sum, n) => sum + Math.max(0, n), 0);
  return all === 0 ? null : { p50: percentile(buckets, 0.5 * all), p95: percentile(buckets, 0.95 * all) };
}

/** The latency of the n-th answer, which lies between the bounds of its bucket. */
function percentile(buckets: readonly number[], nth: number): number {
  let left = nth;
  const found = buckets.findIndex((n) => {
    if (left <= n && n > 0) return true;
    left -= Math.max(0, n);
    return false;
  });
  return latencyAt(bucketsOfOne * Math.max(0, found - 1 + left / buckets[found]!));
}

/** A time in which nothing was sent; `to` null: it has not ended. */
type Wait = { from: number; to: number | null; text: string };

/** The waits among the events, and all others. Pure. */
export function waitsIn(events: readonly HistoryEvent[]): { waits: Wait[]; others: HistoryEvent[] } {
  const waits: Wait[] = [];
  const others = events.filter(({ at, event, text }) => {
    const open = waits.at(-1)?.to === null ? waits.at(-1)! : null;
    if (open && (event === 'resumed' || event === 'waiting')) open.to = at;
    if (event === 'waiting') waits.push({ from: at, to: null, text: text.replace(/^waiting(: )?/, '') });
    return event !== 'waiting' && event !== 'resumed';
  });
  return { waits, others };
}

const words = { waiting: 'waiting', resumed: 'sending again', rate: 'allowed rate' } as const;

function notedEvent(text: string): HistoryEvent {
  const { at, event, reason } = JSON.parse(text) as { at: number; event: keyof typeof words; reason: string };
  if (event === 'rate') return { at, event, text: `${words.rate}: ${rate(Number(reason))}` };
  return { at, event, text: withReason(words[event], reason) };
}

function rateEvents(trail: readonly AuditEntry[]): HistoryEvent[] {
  return trail
    .filter(({ action }) => action === 'rate')
    .map(({ at, who, by, rate: set, reason }) => ({
      at,
      event: 'rate_set',
      text: withReason(`rate ${set ?? 'none'} set by ${who || by}`, reason),
    }));
}

function takeovers(points: readonly HistoryPoint[]): HistoryEvent[] {
  const found = points.filter((point) => point.takeovers > 0);
  return found.map(({ to, takeovers: n }) => ({
    at: to,
    event: 'takeover',
    text: `chunks taken over from a process that is gone: ${n}`,
  }));
}

function doubt({ doubtSince, doubt }: Run): HistoryEvent[] {
  return doubtSince > 0 ? [{ at: doubtSince, event: 'doubt', text: withReason('in doubt', doubt) }] : [];
}

function withReason(text: string, reason: string): string {
  return reason === '' ? text : `${text}: ${reason}`;
}

/** A point for `--json`. */
export function pointFacts(point: HistoryPoint) {
  const { from, to, activeMs, requests, refused, retried, waitedMs, takeovers, counts, latencyMs } = point;
  return {
    from: isoTime(from),
    to: isoTime(to),
    active_seconds: activeMs / 1_000,
    requests,
    throttled: refused,
    retried,
    waited_seconds: Math.round(waitedMs) / 1_000,
    rate_achieved: tenths(point.achieved),
    rate_allowed: tenths(point.allowed),
    in_flight: tenths(point.inFlight),
    latency_ms: latencyMs && { p50: tenths(latencyMs.p50), p95: tenths(latencyMs.p95) },
    taken_over: takeovers,
    ...counts,
  };
}

/** An event for `--json`. */
export function eventFacts({ at, ...others }: HistoryEvent) {
  return { at: isoTime(at), ...others };
}

function tenths(n: number | null): number | null {
  return n === null ? null : Math.round(n * 10) / 10;
}
