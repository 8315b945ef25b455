import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { ConnectionPool } from '../delete/connection-pool.ts';
import type { TargetSender } from '../delete/delete-chunk.ts';
import { TargetConnection, type TargetConnectionOptions } from '../delete/send-delete.ts';
import { targetLimits } from '../delete/target-limits.ts';
import type { Ledger } from '../ledger/ledger.ts';
import { type LimiterScope, scopesFor } from '../limiter/read-target.ts';
import { type Stop, stopText, type TokenWait } from '../limiter/stop.ts';
import { limiterKeys, openTargetCalls } from '../limiter/target-call.ts';
import { type Hold, TargetLimiter } from '../limiter/target-limiter.ts';
import type { Log } from '../logger.ts';
import { perResource, type Resource } from '../model/resource.ts';
import type { Target } from '../model/target.ts';
import type { WriteStatus } from '../redis/writes.ts';
import type { Token } from '../token/token.ts';
import { withTimeout } from '../wait.ts';
import { openStopFile, type StopFile } from './stop-file.ts';

export type TargetSendersOptions = {
  ledger: Ledger;
  target: Target;
  token: Token;
  connection: Omit<TargetConnectionOptions, 'origin'>;
  maxConcurrency: number;
  /** Whether the target limits each resource separately. */
  separateLimits: boolean;
  /** The path of a file; nothing is sent while it exists. Null = no file is checked. */
  stopFile: string | null;
  log: Log;
};

/** The actions for its target that this process knows. */
type Actions = { readonly isSure: boolean; readonly stop: Stop | null; sawStop(stored: string): void };

/** One limiter and its connection pool: for all requests, or for the requests of one resource. */
type OpenTargetSender = TargetSender & { scope: LimiterScope; limiter: TargetLimiter };

/** The target senders of this process. States: open → started → closed. */
export type TargetSenders = {
  of: Record<Resource, TargetSender>;
  all: readonly OpenTargetSender[];
  start(): void;
  /** Sends all requests that may be sent; call it when there may be permits, room or a token again. */
  pump(): void;
  /** Closes all connections, at the earliest 100 ms after the last answer, and gives permits back; takes 400 ms at most. */
  close(): Promise<void>;
  /** Requests in flight. */
  readonly inFlight: number;
  /** Why sending is not allowed now, or null. */
  readonly hold: Hold | null;
  /** The stop in force, or null. It lasts until an operator lifts it. */
  readonly stop: Stop | null;
  /** The current rate in requests per second; null while no limit has been found or set. */
  readonly limit: number | null;
};

const closeTimeoutMs = 300;
const lateBodyMs = 100; // how long after its 204 a body is still noticed at the end of a process

type SharedTargetSenderDeps = {
  run: string; // the run that this process deletes; '' = the detached runs
  clock: () => number;
  writes: WriteStatus;
  actions?: Actions;
  onChange(): void;
  onLongThrottle(reason: string): void;
};
type TargetSenderDeps = SharedTargetSenderDeps & { process: string; onUnreadableWait(value: string): void };

/** One target sender for both resources, or one for each if the target limits them separately. */
export function openTargetSenders(options: TargetSendersOptions, deps: SharedTargetSenderDeps): TargetSenders {
  const scopes = scopesFor(options);
  const logStop = stopLogger(options.log);
  const onUnreadableWait = unreadableWaitLogger(options.log);
  const stop = () => all[0]?.limiter.stopped ?? null;
  const changed = () => {
    logStop(stop());
    deps.onChange();
  };
  const file = openStopFile(options.stopFile, { clock: deps.clock, now: Date.now, onChange: () => pump() });
  const process = `${hostname().slice(0, 40)}-${randomUUID().slice(0, 8)}`; // the host name, because operators look for the machine
  const all = scopes.map((scope) =>
    openTargetSender(scope, options, file, { ...deps, process, onUnreadableWait, onChange: changed }),
  );
  const pump = () => {
    for (const { connections: pool } of all) pool.pump();
    changed();
  };
  return {
    of: perResource((resource) => all.find(({ scope }) => scope === resource) ?? all[0]!),
    all,
    start: () => {
      file.start();
      for (const { limiter, connections: pool } of all) limiter.start(pool);
    },
    pump,
    close: async () => {
      file.close();
      const quietMs = Math.min(...all.map(({ connections: pool }) => pool.idleMs));
      if (quietMs < lateBodyMs) await sleep(lateBodyMs - quietMs);
      const stopping = all.map(({ limiter }) => limiter.stop());
      for (const { connections: pool } of all) pool.close();
      await withTimeout(closeTimeoutMs, Promise.all(stopping));
    },
    get inFlight() {
      return all.reduce((sum, { connections: pool }) => sum + pool.inFlight, 0);
    },
    get hold() {
      if (options.token.waiting !== '') return { reason: options.token.waiting, leftMs: 0 };
      return all.map(({ limiter }) => limiter.known?.hold ?? null).find((hold) => hold !== null) ?? null;
    },
    get stop() {
      return stop();
    },
    get limit() {
      const limits = all.flatMap(({ limiter }) => (limiter.known && isLimited(limiter) ? [limiter.known.rate] : []));
      return limits.length === 0 ? null : limits.reduce((sum, limit) => sum + limit, 0);
    },
  };
}

function openTargetSender(
  scope: LimiterScope,
  options: TargetSendersOptions,
  stopFile: StopFile,
  { process, run, clock, writes, actions, onChange, onLongThrottle, onUnreadableWait }: TargetSenderDeps,
): OpenTargetSender {
  const { ledger, target, token, connection, maxConcurrency } = options;
  const limiter = new TargetLimiter({
    process,
    run,
    calls: withWriteReports(openTargetCalls(ledger.redis, limiterKeys(target.fp, scope)), writes),
    connections: maxConcurrency,
    clock,
    isBusy: watchOwnLoad(clock()),
    stopHere: () => stopFile.stop,
    tokenWait: tokenWaitOf(token, Date.now),
    ...(actions && { actions }),
    onChange: () => {
      pool.pump();
      onChange();
    },
  });
  const limits = targetLimits(limiter, { token, now: Date.now, onLongThrottle, onUnreadableWait });
  const origin = new URL(target.baseUrl).origin;
  const pool: ConnectionPool = new ConnectionPool(
    maxConcurrency,
    () => new TargetConnection({ ...connection, origin }),
    limits,
    clock,
  );
  return { scope, limiter, limits, connections: pool };
}

/** Returns why a token is missing, and since when the reason was first seen. */
function tokenWaitOf(token: Pick<Token, 'waiting'>, now: () => number): () => TokenWait | null {
  let since = 0;
  return () => {
    if (token.waiting === '') since = 0;
    else if (since === 0) since = now();
    return since === 0 ? null : { reason: token.waiting, since };
  };
}

const busyShare = 0.85; // of the time in which the event loop was at work, or got no computing time
const lateMs = 20; // delay of a call due every 100 ms that shows that other processes take the processor
const callEveryMs = 100;

/**
 * Returns a function that finds, at each call, whether this process had next to no time to spare since the last call. Its event loop was at work all
 * the time (which includes the time that others took the processor from it), or the call itself comes late. Its latencies then say little about the
 * server. `nowMs`: monotonic.
 */
function watchOwnLoad(nowMs: number): (nowMs: number) => boolean {
  let last = { nowMs, loop: performance.eventLoopUtilization() };
  return (nowMs) => {
    const before = last;
    last = { nowMs, loop: performance.eventLoopUtilization() };
    const passedMs = nowMs - before.nowMs;
    const isLate = passedMs >= callEveryMs + lateMs && passedMs < 5 * callEveryMs;
    return isLate || performance.eventLoopUtilization(last.loop, before.loop).utilization >= busyShare;
  };
}

/** Reports write errors: the limiter writes at least once a second, so its calls soon show whether Redis accepts writes. */
function withWriteReports({ call, store }: ReturnType<typeof openTargetCalls>, writes: WriteStatus) {
  return {
    call: async (report: Parameters<typeof call>[0]) => {
      try {
        const reply = await call(report);
        writes.succeeded();
        return reply;
      } catch (error) {
        writes.failed(error);
        throw error;
      }
    },
    store,
  };
}

function isLimited({ known }: TargetLimiter): boolean {
  return known !== null && (known.ceiling > 0 || known.limitMet > 0);
}

/** Logs the first Retry-After that can't be read. From then on, the limiter's learned waits apply. */
export function unreadableWaitLogger(log: Log): (value: string) => void {
  let isLogged = false;
  return (value) => {
    if (isLogged) return;
    isLogged = true;
    log.warn({ retryAfter: value }, 'a Retry-After cannot be read and is ignored: expected seconds or an HTTP date');
  };
}

/** Logs a stop when it begins, when its reason changes and when it is over. */
function stopLogger(log: Log): (stop: Stop | null) => void {
  let logged = '';
  return (stop) => {
    const text = stop === null ? '' : stopText(stop);
    if (text === logged) return;
    if (stop === null) log.warn({}, 'sending resumed');
    else log.warn({ reason: text }, 'sending stopped');
    logged = text;
  };
}
