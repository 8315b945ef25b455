import { isoTime, rate } from '../format.ts';
import { type AuditEntry, readAudit } from '../ledger/audit.ts';
import { readChanges } from '../ledger/changes.ts';
import type { Run } from '../ledger/run.ts';
import { visibleLine } from '../model/visible.ts';
import type { RedisClient } from '../redis/client.ts';
import { keys } from '../redis/keys.ts';
import {
  binSums,
  latencyBuckets,
  latencyBytes,
  noteHistoryLua,
  readHistoryLua,
  reasonBytes,
  runTotals,
  sumBytes,
} from './history.lua.ts';
import { type Bin, type HistoryPoint, type RecordedHistory, type Slice, toPoints } from './history-points.ts';

/**
 * A process's present view, and its work since the last report. `limit`: requests per second, null = none is known; `hold`: why sending is not
 * allowed, '' = it is.
 */
type Seen = { limit: number | null; hold: string; slices: readonly Slice[] };

/** Something that happened to a run. */
type HistoryEvent = {
  at: number; // ms since 1970
  event: 'state' | 'waiting' | 'resumed' | 'rate' | 'rate_set' | 'takeover' | 'doubt';
  text: string;
};

/** The history of a run, oldest first. The sums of the points equal the sums of the run. */
export type History = { points: HistoryPoint[]; events: HistoryEvent[] };

/** Adds the work and view of a process to the history of a run, unless its record has expired. Best effort; repeating it would count twice. */
export async function noteHistory(redis: RedisClient, run: string, { limit, hold, slices }: Seen): Promise<void> {
  const all = [keys.run(run), keys.measures(run), keys.history(run), keys.historyEvents(run)];
  const done = JSON.stringify(slices.map(numbersOf));
  await redis.eval(noteHistoryLua, all.length, ...all, limit === null ? '' : limit.toFixed(1), cutReason(hold), done);
}

/** A slice as the script takes it. The run itself counts `takeovers`. */
function numbersOf(slice: Slice): number[] {
  const sums = binSums.map((name) => (name === 'takeovers' ? 0 : Math.round(slice[name])));
  return [slice.second, ...sums, ...slice.latencies];
}

/** Cuts a reason to one line of whole characters. */
function cutReason(text: string): string {
  return Buffer.from(visibleLine(text))
    .subarray(0, reasonBytes)
    .toString()
    .replace(/\ufffd$/, '…');
}

/** Reads the history of a run so far. Only reads. */
export async function readHistory(redis: RedisClient, run: Run): Promise<History> {
  const [recorded, noted, changes, audit] = await Promise.all([
    readRecorded(redis, run.id),
    redis.lrange(keys.historyEvents(run.id), 0, -1),
    redis.hget(keys.run(run.id), 'changes'),
    readAudit(redis, run),
  ]);
  const points = toPoints(recorded, run);
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

async function readRecorded(redis: RedisClient, run: string): Promise<RecordedHistory> {
  redis.defineCommand('expungeReadHistory', { numberOfKeys: 3, lua: readHistoryLua });
  const { expungeReadHistoryBuffer: read } = redis as unknown as { expungeReadHistoryBuffer: ReadHistory };
  const found = await read.call(redis, keys.run(run), keys.measures(run), keys.history(run));
  const [now, seconds, ...numbers] = found.slice(0, 2 + runTotals.length).map(Number) as [number, number, ...number[]];
  const totals = Object.fromEntries(runTotals.map((name, i) => [name, numbers[i]!])) as RecordedHistory['totals'];
  const parts = found.slice(2 + runTotals.length) as Buffer[];
  const bins = parts.flatMap((part, i) => (i % 2 === 0 ? [{ start: Number(part), ...readBin(parts[i + 1]!) }] : []));
  return { now, seconds, totals, bins: bins.sort((a, b) => a.start - b.start) };
}

type ReadHistory = (...keys: string[]) => Promise<(number | Buffer)[]>;

function readBin(bytes: Buffer): Bin {
  const sums = binSums.map((name, i) => [name, bytes.readUIntBE(i * sumBytes, sumBytes)]);
  const from = binSums.length * sumBytes;
  const latencies = Array.from({ length: latencyBuckets }, (_, i) => bytes.readUInt32BE(from + i * latencyBytes));
  return { ...(Object.fromEntries(sums) as Omit<Bin, 'latencies'>), latencies };
}

/** A time in which nothing was sent; `to` null: it has not ended. */
type Wait = { from: number; to: number | null; text: string };

/** Separates the waits from all other events. Pure. */
export function separateWaits(events: readonly HistoryEvent[]): { waits: Wait[]; others: HistoryEvent[] } {
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
    .map(({ at, who, by, to, reason }) => ({
      at,
      event: 'rate_set',
      text: withReason(`rate ${to} set by ${who || by}`, reason),
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

/** A history for `--json`, the API and the dashboard. A wait is a time in which nothing was sent; `to` null: it has not ended. */
export function historyFacts({ points, events }: History) {
  return {
    points: points.map(pointFacts),
    events: events.map(eventFacts),
    waits: separateWaits(events).waits.map(waitFacts),
  };
}

function pointFacts(point: HistoryPoint) {
  const { from, to, isOpen, activeMs, requests, refused, retried, waitedMs, takeovers, counts, latencyMs } = point;
  return {
    from: isoTime(from),
    to: isoTime(to),
    open: isOpen,
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

function eventFacts({ at, ...others }: HistoryEvent) {
  return { at: isoTime(at), ...others };
}

function waitFacts({ from, to, text }: Wait) {
  return { from: isoTime(from), to: to === null ? null : isoTime(to), text };
}

function tenths(n: number | null): number | null {
  return n === null ? null : Math.round(n * 10) / 10;
}
