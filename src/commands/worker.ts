import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { readTarget } from '../config/check-target.ts';
import type { ListenAddress } from '../config/parse-setting.ts';
import type { Config } from '../config/settings.ts';
import { noteTarget } from '../ledger/known-targets.ts';
import { readStart, readTargetState } from '../limiter/read-target.ts';
import { createLogger, type Log } from '../logger.ts';
import { resources } from '../model/outcome.ts';
import type { Target } from '../model/target.ts';
import { sharedQueueName } from '../queue/queue.ts';
import { awaitRedis } from '../redis/await-redis.ts';
import { paceText } from '../terminal/plan-text.ts';
import { TargetEvents } from '../terminal/target-events.ts';
import type { Token } from '../token/token.ts';
import { readVersion } from '../version.ts';
import { keepCrew } from '../worker/crew.ts';
import { type Part, Parts, repeat } from '../worker/parts.ts';
import { ScheduleKeeper } from '../worker/schedule-keeper.ts';
import { openService, type Service, tokenPart } from '../worker/service.ts';
import { Tender } from '../worker/tender.ts';
import type { Invocation } from './command.ts';
import { listenForInterrupts } from './interrupts.ts';
import { scheduleWork } from './schedule-work.ts';
import {
  type Credentials,
  checkSession,
  type EarlySession,
  readCredentials,
  refuseLoneBurst,
  type Session,
  serviceOptions,
  withEarlyRedis,
} from './session.ts';

/**
 * Deletes chunks of all detached runs of its target until SIGTERM or SIGINT; then hands back what it has and exits 0. With `--workers` it
 * only looks after other processes that do.
 */
export async function execute(invocation: Invocation): Promise<number> {
  const { config, options, env } = invocation;
  const target = readTarget(config, env);
  refuseLoneBurst(invocation, null);
  const credentials = readCredentials(invocation);
  const crew = inCrew(env);
  const log = createLogger(config.logLevel ?? 'info', crew === null ? {} : { worker: crew.worker });
  const interrupts = listenForInterrupts((signal) => log.info({ signal }, 'stopping'));
  const size = (options.workers as number | undefined) ?? 1;
  if (size > 1) return leadCrew(size, interrupts.signal, log);
  const stop = crew === null ? interrupts.signal : AbortSignal.any([interrupts.signal, crew.leave]);
  return work({ invocation, target, credentials, crew, log }, stop);
}

function work(own: Own, stop: AbortSignal): Promise<number> {
  const { invocation, log } = own;
  return withEarlyRedis(
    invocation,
    (line) => log.info({}, line),
    async (session) => {
      const parts: Parts = new Parts(await partsOf({ ...own, session, stop, state: () => parts.state }), log);
      try {
        await parts.start(stop);
        if (parts.state === 'up') await tellReady(own, session);
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

type Own = { invocation: Invocation; target: Target; credentials: Credentials; crew: InCrew | null; log: Log };

type WorkerWork = Own & {
  session: EarlySession;
  stop: AbortSignal;
  /** Of the parts. */
  state: () => Parts['state'];
};

const tendEveryMs = 3_000;
const noteEveryMs = 3_600_000;

/** The parts of a worker, in the order in which they start; they drain in the opposite one. */
async function partsOf(work: WorkerWork): Promise<Part[]> {
  const { invocation, session, target, credentials, log } = work;
  const { rate = null, burst = null } = invocation.config;
  const options = serviceOptions(invocation, session, target, credentials);
  const service = openService({ ...options, rate, burst, queueName: sharedQueueName, log });
  const schedules = scheduleWork({ invocation, session, target, feeder: service.feeder, log });
  const keeper = new ScheduleKeeper(schedules, session.queueConnection);
  const tender = new Tender({ ledger: session.ledger, feeder: service.feeder, fp: target.fp, log });
  return [
    ...(await httpParts(work, service)),
    { name: 'redis', start: () => startRedis(work) },
    tokenPart(credentials.token, (reason) => log.info({ reason }, 'waiting for a token')),
    ...service.parts,
    ...keeper.parts,
    repeat('target', noteEveryMs, () => noteTarget(session.redis, target, Date.now()), log),
    repeat('tender', tendEveryMs, () => tender.tend(), log),
    repeat('news', tendEveryMs, newsTeller(session, target.fp, credentials.token, log), log),
  ];
}

/** Services come up in any order: a worker waits for its Redis, and ends only if that is of no use. */
async function startRedis({ session, stop, log }: WorkerWork): Promise<void> {
  const { redis, address } = session;
  const tell = (reason: string) => log.warn({ redis: address.label, reason }, 'waiting for Redis');
  do {
    await awaitRedis(redis, address, stop, tell);
    try {
      if (!stop.aborted) await checkSession(session, (line) => log.info({}, line));
      return;
    } catch (error) {
      if (redis.status === 'ready') throw error;
    }
  } while (!stop.aborted);
}

async function tellReady({ invocation, target, log }: Own, session: Session): Promise<void> {
  const { config } = invocation;
  const pace = await learnedPace(session, target.fp, config).catch(() => ''); // Redis may be away again
  log.info({ target: target.baseUrl, fp: target.fp, concurrency: config.maxConcurrency, pace }, 'ready');
}

/** What answers over HTTP, if it is wanted. It comes first and goes last, so that its probes tell of both. */
async function httpParts(work: WorkerWork, service: Service): Promise<Part[]> {
  const { invocation, session, target, crew, log, state } = work;
  const { config, env } = invocation;
  if (config.http === undefined) return [];
  const { openHttp } = await import('../worker/http/server.ts');
  const build = { version: readVersion(), revision: env.EXPUNGE_REVISION ?? '' };
  const { redis, trouble } = session;
  return [openHttp(portOf(config.http, crew), { build, service, redis, trouble, fp: target.fp, state, log })];
}

/** The workers of a crew take the ports from the given one on. */
function portOf({ host, port }: ListenAddress, crew: InCrew | null): ListenAddress {
  return { host, port: crew === null || port === 0 ? port : port + crew.worker - 1 };
}

async function aborted(signal: AbortSignal): Promise<void> {
  if (!signal.aborted) await once(signal, 'abort');
}

/** Where the rate begins, in words. */
async function learnedPace({ redis }: Session, fp: string, { separateLimits, rate }: Config): Promise<string> {
  const learned = await readStart(redis, fp, separateLimits ? resources : ['all']);
  return paceText(rate ?? null, learned) || 'nothing is known of the limit yet';
}

/** Logs what happened to the target since the last time. */
function newsTeller({ redis }: Session, fp: string, token: Token, log: Log): () => Promise<void> {
  const events = new TargetEvents();
  return async () => {
    const news = events.see(await readTargetState(redis, fp), token.refreshes, performance.now());
    for (const { message, reason } of news) log.info({ reason }, message);
  };
}

const bin = fileURLToPath(new URL('../bin.js', import.meta.url));
const numberVariable = 'EXPUNGE_WORKER';

/**
 * Runs so many workers as children of this process, each as this command would have been without `--workers`. They write to the same log.
 * However this process ends, they do: those it can't tell notice that it is gone, and drain.
 */
export async function leadCrew(size: number, stop: AbortSignal, log: Log): Promise<number> {
  const children = new Set<ChildProcess>();
  const killAll = () => {
    for (const child of children) child.kill('SIGKILL');
  };
  process.once('exit', killAll); // after a second signal: nothing is lost by that
  const start = (worker: number) => {
    const env = { ...process.env, [numberVariable]: String(worker) };
    const child = fork(bin, [...process.argv.slice(2), '--workers', '1'], { env });
    children.add(child);
    child.once('exit', () => children.delete(child));
    child.on('error', (error) => log.warn({ worker, reason: error.message }, 'the worker can not be told'));
    return child;
  };
  log.info({ workers: size }, 'starting the workers');
  try {
    return await keepCrew({ size, start, stop, log, random: Math.random });
  } finally {
    process.off('exit', killAll);
  }
}

/** Of a process that is one of a crew: its number, and when it shall drain. Null for all others. */
export type InCrew = { worker: number; leave: AbortSignal };

export function inCrew(env: NodeJS.ProcessEnv): InCrew | null {
  if (env[numberVariable] === undefined || process.send === undefined) return null;
  const leaving = new AbortController();
  const leave = () => leaving.abort();
  process.once('message', leave).once('disconnect', leave);
  if (!process.connected) leave();
  return { worker: Number(env[numberVariable]), leave: leaving.signal };
}
