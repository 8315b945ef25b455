import { type ChildProcess, type ForkOptions, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { readTarget } from '../../config/check-target.ts';
import type { ListenAddress } from '../../config/parse-setting.ts';
import { toInputOptions } from '../../input/input-options.ts';
import { readProtected, toProtectFile } from '../../input/read-protected.ts';
import { noteTarget } from '../../ledger/known-targets.ts';
import { readAround, readHeld } from '../../ledger/run-standings.ts';
import { readStart } from '../../limiter/read-target.ts';
import { createLogger, type Log } from '../../logger.ts';
import type { Target } from '../../model/target.ts';
import { type NamedReceiver, openReceivers } from '../../notify/receivers.ts';
import { scheduleWork } from '../../operations/schedule-work.ts';
import { checkSession, type EarlySession, type Session, withEarlyRedis } from '../../operations/session.ts';
import { Pulse } from '../../pulse.ts';
import { sharedQueueName } from '../../queue/queues.ts';
import { awaitRedis } from '../../redis/await-redis.ts';
import { keys } from '../../redis/keys.ts';
import { type Destination, openDestination } from '../../results/destination.ts';
import { paceText } from '../../terminal/plan-text.ts';
import { TargetEvents } from '../../terminal/target-events.ts';
import type { Token } from '../../token/token.ts';
import { readVersion } from '../../version.ts';
import { Deliverer } from '../../worker/deliverer.ts';
import { type Notifying, notifyingParts } from '../../worker/notifying.ts';
import { type Part, Parts, repeat } from '../../worker/parts.ts';
import { protectionPart } from '../../worker/protection-part.ts';
import { Recoverer } from '../../worker/recoverer.ts';
import { RedisWatch, redisWatchPart } from '../../worker/redis-watch.ts';
import { Scheduler } from '../../worker/scheduler.ts';
import { openService, type Service, tokenPart } from '../../worker/service.ts';
import { StandingLog } from '../../worker/standing-log.ts';
import { superviseWorkers } from '../../worker/supervisor.ts';
import { workWatch } from '../../worker/work-watch.ts';
import type { Invocation } from '../command.ts';
import { type Credentials, readCredentials, serviceOptions } from '../credentials.ts';
import { listenForInterrupts } from '../interrupts.ts';
import { readBy } from '../session.ts';

/**
 * Deletes chunks of all detached runs of its target until SIGTERM or SIGINT; then it returns its chunks and exits 0. With `--workers N` it supervises
 * N processes that do this.
 */
export async function execute(invocation: Invocation): Promise<number> {
  const { config, env } = invocation;
  const target = readTarget(config, env);
  const credentials = readCredentials(invocation);
  const destination = openDestination(config, env);
  const receivers = openReceivers(config, env);
  const supervision = readSupervision(env);
  const who = supervision === null ? {} : { worker: supervision.worker };
  const { stderr } = invocation;
  const log = createLogger({ level: levelOf(invocation), format: config.logFormat, stderr, who });
  const interrupts = listenForInterrupts(invocation, (signal) => log.info({ signal }, 'stopping'));
  log.info({ version: readVersion(), node: process.version }, 'worker started');
  const size = config.workers;
  if (size > 1) return runSupervisor(size, interrupts.signal, log);
  const stop = supervision === null ? interrupts.signal : AbortSignal.any([interrupts.signal, supervision.leave]);
  return work({ invocation, target, credentials, destination, receivers, supervision, log }, stop);
}

/** The level of the log, the only output of a worker on stderr, with --quiet and --verbose applied. */
function levelOf({ config, verbosity }: Invocation): string {
  if (verbosity === 'normal') return config.logLevel ?? 'info';
  return verbosity === 'quiet' ? 'warn' : 'debug';
}

function work(own: WorkerOptions, stop: AbortSignal): Promise<number> {
  const { invocation, log } = own;
  return withEarlyRedis(
    invocation,
    (line) => log.info({}, line),
    async (session) => {
      const parts: Parts = new Parts(
        await partsOf({ ...own, session, stop, state: () => parts.state }),
        log,
        new Pulse(),
      );
      try {
        await parts.start(stop);
        if (parts.state === 'up') await logReady(own, session);
        await aborted(stop);
      } finally {
        await parts.drain();
      }
      log.info({}, 'stopped');
      return 0;
    },
    true,
  );
}

type WorkerOptions = {
  invocation: Invocation;
  target: Target;
  credentials: Credentials;
  destination: Destination | null;
  receivers: readonly NamedReceiver[];
  supervision: Supervision | null;
  log: Log;
};

type WorkerDeps = WorkerOptions & {
  session: EarlySession;
  stop: AbortSignal;
  /** State of the parts. */
  state: () => Parts['state'];
};

const recoverEveryMs = 3_000;
const registerTargetEveryMs = 3_600_000;

/** The parts of a worker, in the order in which they start; they drain in reverse order. */
async function partsOf(work: WorkerDeps): Promise<Part[]> {
  const { invocation, session, target, credentials, destination, log } = work;
  const options = serviceOptions(invocation, session, target, credentials);
  const service = openService({
    ...options,
    queueName: sharedQueueName,
    log,
  });
  const schedules = scheduleWork({
    session,
    place: { config: invocation.config, env: invocation.env, log },
    target,
    enqueuer: service.enqueuer,
    by: readBy(invocation),
  });
  const scheduler = new Scheduler(schedules);
  const { dashboardUrl } = invocation.config;
  const recoverer = new Recoverer({
    ledger: session.ledger,
    enqueuer: service.enqueuer,
    fp: target.fp,
    dashboardUrl,
    log,
  });
  return [
    ...(await httpParts(work, service)),
    { name: 'redis', start: () => startRedis(work) },
    redisWatchPart(new RedisWatch(session.address.label, log), () => redisReason(session), log),
    ...workWatch(session.redis, target.fp, log),
    ...notifyingParts(notifyingOf(work)), // before the token, so that a missing token is also posted
    ...withTokenBehind('target sender', service.parts, work),
    ...scheduler.parts,
    repeat('target', registerTargetEveryMs, () => noteTarget(session.redis, target, Date.now()), log),
    ...protectionParts(work),
    repeat('recoverer', recoverEveryMs, () => recoverer.recover(), log),
    ...(destination === null ? [] : [delivererOf(work, destination).part]),
    repeat('news', recoverEveryMs, newsLogger(session, target, credentials.token, log), log),
  ];
}

/** Puts the token after the senders, so that other processes see a worker that waits for a token; nothing is sent before the parts after it start. */
function withTokenBehind(name: string, parts: readonly Part[], { credentials, log }: WorkerDeps): Part[] {
  const token = tokenPart(credentials.token, (reason) => log.warn({ reason }, 'waiting for a token'));
  return parts.flatMap((part) => (part.name === name ? [part, token] : [part]));
}

function protectionParts({ invocation: { config }, session: { redis }, target: { fp }, log }: WorkerDeps): Part[] {
  const file = toProtectFile(config);
  if (file === null) return [];
  const read = () => readProtected(file, toInputOptions(config));
  return [protectionPart({ redis, fp, path: file.path, read, log })];
}

function notifyingOf({ invocation, session: { redis }, target, receivers, log }: WorkerDeps): Notifying {
  const { dashboardUrl = '' } = invocation.config;
  return { redis, target, receivers, dashboardUrl, log, runs: () => redis.smembers(keys.targetRuns(target.fp)) };
}

function delivererOf({ session, target, log }: WorkerDeps, destination: Destination): Deliverer {
  return new Deliverer({ redis: session.redis, fp: target.fp, destination, log, now: Date.now, random: Math.random });
}

/** The reason why there is no connection to Redis, or null. */
function redisReason({ redis, connectionError }: EarlySession): string | null {
  return redis.status === 'ready' ? null : connectionError() || 'there is no connection to it';
}

/** Waits for Redis, since services start in any order. Throws only if Redis does not meet the requirements. */
async function startRedis({ session, stop, log }: WorkerDeps): Promise<void> {
  const { redis, address } = session;
  const report = (reason: string) => log.warn({ redis: address.label, reason }, 'waiting for Redis');
  do {
    await awaitRedis(redis, address, stop, report);
    try {
      if (!stop.aborted) await checkSession(session, (line) => log.info({}, line));
      return;
    } catch (error) {
      if (redis.status === 'ready') throw error;
    }
  } while (!stop.aborted);
}

async function logReady({ invocation, target, log }: WorkerOptions, session: Session): Promise<void> {
  const { config } = invocation;
  const pace = await learnedPace(session, target.fp).catch(() => ''); // Redis may be away again
  log.info({ target: target.baseUrl, fp: target.fp, concurrency: config.maxConcurrency, pace }, 'ready');
}

/** The HTTP server, if `--http` is set. It starts first and drains last, so that its probes answer from start to drain. */
async function httpParts(work: WorkerDeps, service: Service): Promise<Part[]> {
  const { invocation, session, target, supervision, log, state } = work;
  const { config, env } = invocation;
  if (config.http === undefined) return [];
  const { openHttp } = await import('../../worker/http/server.ts');
  const build = { version: readVersion(), revision: env.EXPUNGE_REVISION ?? '' };
  const { redis, connectionError } = session;
  const { openWorkerSite } = await import('../../api/site.ts');
  const { oldListsPart } = await import('../../api/uploads.ts');
  return [
    openHttp(portOf(config.http, supervision), {
      build,
      service,
      redis,
      connectionError,
      target,
      state,
      log,
      site: openWorkerSite(config.http, {
        session,
        config,
        sources: invocation.sources,
        env,
        log,
        workerOf: target.fp,
      }),
    }),
    oldListsPart(config.stateDir, log),
  ];
}

/** The port of a supervised worker: they listen on consecutive ports, starting with the given one. */
function portOf({ host, port }: ListenAddress, supervision: Supervision | null): ListenAddress {
  return { host, port: supervision === null || port === 0 ? port : port + supervision.worker - 1 };
}

async function aborted(signal: AbortSignal): Promise<void> {
  if (!signal.aborted) await once(signal, 'abort');
}

/** Describes the starting rate. */
async function learnedPace({ redis }: Session, fp: string): Promise<string> {
  const learned = await readStart(redis, fp);
  return paceText(null, learned) || 'its limit is not known yet';
}

/** `StandingLog` logs waits, once they last. */
const waitEvents = ['waiting', 'resumed'];

/** Returns a function that logs what has changed at the target since its last call, and which causes hold it and its runs back or have ended. */
function newsLogger({ redis }: Session, target: Target, token: Token, log: Log): () => Promise<void> {
  const [standings, events] = [new StandingLog(log), new TargetEvents()];
  return async () => {
    const around = await readAround(redis, target.fp);
    standings.observe(await readHeld(redis, target, around), performance.now());
    const targetEvents = events.observe(around.limiter, token.refreshes, performance.now());
    for (const { level, message, reason } of targetEvents)
      if (!waitEvents.includes(message)) log[level]({ reason }, message);
  };
}

/**
 * Runs this many workers as children of this process, each with this command line but one worker. They write to the same log. They end with this
 * process, however it ends: a child that gets no message detects the closed channel and drains.
 */
async function runSupervisor(size: number, stop: AbortSignal, log: Log): Promise<number> {
  const forks = openForks();
  const start = (worker: number) => {
    const env = { ...process.env, [numberVariable]: String(worker) };
    const child = forks.fork([...process.argv.slice(2), '--workers', '1'], { env });
    child.on('error', (error) => log.warn({ worker, reason: error.message }, 'the worker cannot be reached'));
    return child;
  };
  log.info({ workers: size }, 'starting the workers');
  try {
    return await superviseWorkers({ size, start, stop, log, random: Math.random });
  } finally {
    forks.dispose();
  }
}

/** The number of a supervised worker, and the signal that asks it to drain. */
type Supervision = { worker: number; leave: AbortSignal };

/** The supervision of this process; null without a supervisor. */
function readSupervision(env: NodeJS.ProcessEnv): Supervision | null {
  if (env[numberVariable] === undefined || process.send === undefined) return null;
  const leaving = new AbortController();
  const leave = () => leaving.abort();
  process.once('message', leave).once('disconnect', leave);
  if (!process.connected) leave();
  return { worker: Number(env[numberVariable]), leave: leaving.signal };
}

/** The variable that marks a process as a worker started by another process, and gives its number. */
const numberVariable = 'EXPUNGE_WORKER';

const bin = fileURLToPath(new URL('../../bin.js', import.meta.url));

/** Child processes of this program, which end with this process at the latest. */
type Forks = {
  /** Starts a child with these arguments and an IPC channel. */
  fork(args: readonly string[], options: ForkOptions): ChildProcess;
  /** Kills the children that are left. Nothing is lost by that. */
  kill(): void;
  dispose(): void;
};

function openForks(): Forks {
  const children = new Set<ChildProcess>();
  const kill = () => {
    for (const child of children) child.kill('SIGKILL');
  };
  process.once('exit', kill); // after a second signal
  return {
    fork: (args, options) => {
      const child = fork(bin, args, options);
      children.add(child);
      child.once('exit', () => children.delete(child));
      return child;
    },
    kill,
    dispose: () => process.off('exit', kill),
  };
}
