import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { ConnectionPool } from '../delete/connection-pool.ts';
import type { TargetSender } from '../delete/delete-chunk.ts';
import { TargetConnection, type TargetConnectionOptions } from '../delete/send-delete.ts';
import { targetLimits } from '../delete/target-limits.ts';
import type { Ledger } from '../ledger/ledger.ts';
import { type Stop, stopText, type TokenWait } from '../limiter/stop.ts';
import { limiterKeys, openTargetCalls } from '../limiter/target-call.ts';
import { type Hold, TargetLimiter } from '../limiter/target-limiter.ts';
import type { Log } from '../logger.ts';
import type { Target } from '../model/target.ts';
import { type Pulse, steadyPulse } from '../pulse.ts';
import type { WriteStatus } from '../redis/writes.ts';
import type { Token } from '../token/token.ts';
import { withTimeout } from '../wait.ts';
import { openStopFile, type StopFile } from './stop-file.ts';

export type TargetSenderOptions = {
  ledger: Ledger;
  target: Target;
  token: Token;
  connection: Omit<TargetConnectionOptions, 'origin'>;
  maxConcurrency: number;
  /** The path of a file; nothing is sent while it exists. Null = no file is checked. */
  stopFile: string | null;
  log: Log;
};

/** The actions for its target that this process knows. */
type Actions = { readonly isSure: boolean; readonly stop: Stop | null; sawStop(stored: string): void };

/** The limiter of the target in this process, with its connection pool. States: open → started → closed. */
export type OpenTargetSender = TargetSender & {
  limiter: TargetLimiter;
  start(pulse?: Pulse): void;
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

type TargetSenderDeps = {
  run: string; // the run that this process deletes; '' = the detached runs
  clock: () => number;
  writes: WriteStatus;
  actions?: Actions;
  onChange(): void;
  onLongThrottle(reason: string): void;
};

/** Opens the one sender of this process, which admits the requests of all runs and resources. */
export function openTargetSender(options: TargetSenderOptions, deps: TargetSenderDeps): OpenTargetSender {
  const { token } = options;
  const logStop = stopLogger(options.log);
  const changed = () => {
    logStop(limiter.stopped);
    deps.onChange();
  };
  const file = openStopFile(options.stopFile, { clock: deps.clock, now: Date.now, onChange: () => pump() });
  const { limiter, limits, connections } = connectLimiter(options, file, { ...deps, onChange: changed });
  const pump = () => {
    connections.pump();
    changed();
  };
  return {
    limiter,
    limits,
    connections,
    start: (pulse = steadyPulse()) => {
      file.start();
      limiter.start(connections, (everyMs) => pulse.everyMs(everyMs));
    },
    pump,
    close: async () => {
      file.close();
      if (connections.idleMs < lateBodyMs) await sleep(lateBodyMs - connections.idleMs);
      const stopping = limiter.stop();
      connections.close();
      await withTimeout(closeTimeoutMs, stopping);
    },
    get inFlight() {
      return connections.inFlight;
    },
    get hold() {
      return token.waiting === '' ? (limiter.known?.hold ?? null) : { reason: token.waiting, leftMs: 0 };
    },
    get stop() {
      return limiter.stopped;
    },
    get limit() {
      return isLimited(limiter) ? limiter.known!.rate : null;
    },
  };
}

/** Connects the limiter of the target with the pool of this process: a permit that comes, and an answer that tells of a limit. */
function connectLimiter(
  { ledger, target, token, connection, maxConcurrency, log }: TargetSenderOptions,
  stopFile: StopFile,
  { run, clock, writes, actions, onChange, onLongThrottle }: TargetSenderDeps,
): TargetSender & { limiter: TargetLimiter } {
  const limiter = new TargetLimiter({
    process: `${hostname().slice(0, 40)}-${randomUUID().slice(0, 8)}`, // the host name, because operators look for the machine
    run,
    calls: withWriteReports(openTargetCalls(ledger.redis, limiterKeys(target.fp)), writes),
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
  const onUnreadableWait = unreadableWaitLogger(log);
  const limits = targetLimits(limiter, { token, now: Date.now, onLongThrottle, onUnreadableWait });
  const origin = new URL(target.baseUrl).origin;
  const pool: ConnectionPool = new ConnectionPool(
    maxConcurrency,
    () => new TargetConnection({ ...connection, origin }),
    limits,
    clock,
  );
  return { limiter, limits, connections: pool };
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

/** Reports write errors: the limiter writes at least once a second while there is work, so its calls soon show whether Redis accepts writes. */
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
    log.warn({ retryAfter: value }, 'a Retry-After cannot be read and is ignored: expected seconds or a date');
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
