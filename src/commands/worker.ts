import { once } from 'node:events';
import type { Config } from '../config.ts';
import { readTarget } from '../guard/check-target.ts';
import { resources } from '../ledger/outcome.ts';
import type { Target } from '../ledger/target.ts';
import { learnedStart, readTargetState } from '../limiter/read-target.ts';
import { createLogger, type Log } from '../logger.ts';
import { sharedQueueName } from '../queue/queue.ts';
import { paceText } from '../terminal/plan-text.ts';
import { TargetEvents } from '../terminal/target-events.ts';
import type { Token } from '../token/token.ts';
import { type Part, Parts } from '../worker/parts.ts';
import { repeat } from '../worker/repeat.ts';
import { ScheduleKeeper } from '../worker/schedule-keeper.ts';
import { openService, tokenPart } from '../worker/service.ts';
import { Tender } from '../worker/tender.ts';
import type { Invocation } from './command.ts';
import { inCrew, leadCrew } from './crew.ts';
import { listenForInterrupts } from './interrupts.ts';
import { scheduleWork } from './schedule-work.ts';
import { type Credentials, readCredentials, serviceOptions } from './service-options.ts';
import { type Session, withRedis } from './session.ts';

/**
 * Deletes chunks of all detached runs of its target until SIGTERM or SIGINT; then hands back what it has and exits 0. With `--workers` it
 * only looks after other processes that do.
 */
export async function execute(invocation: Invocation): Promise<number> {
  const { config, options, env } = invocation;
  const target = readTarget(config, env);
  const credentials = readCredentials(invocation);
  const crew = inCrew(env);
  const log = createLogger(config.logLevel ?? 'info', crew === null ? {} : { worker: crew.worker });
  const interrupts = listenForInterrupts((signal) => log.info({ signal }, 'stopping'));
  const size = (options.workers as number | undefined) ?? 1;
  if (size > 1) return leadCrew(size, interrupts.signal, log);
  const stop = crew === null ? interrupts.signal : AbortSignal.any([interrupts.signal, crew.leave]);
  return work({ invocation, target, credentials, log }, stop);
}

function work(own: Omit<WorkerWork, 'session'>, stop: AbortSignal): Promise<number> {
  const { invocation, target, credentials, log } = own;
  const { config } = invocation;
  return withRedis(
    invocation,
    (line) => log.info({}, line),
    async (session) => {
      const pace = await learnedPace(session, target.fp, config);
      const parts = new Parts(partsOf({ invocation, session, target, credentials, log }), log);
      try {
        await parts.start(stop);
        if (parts.state === 'up')
          log.info({ target: target.baseUrl, fp: target.fp, concurrency: config.maxConcurrency, pace }, 'ready');
        await aborted(stop);
      } finally {
        await parts.drain();
      }
      log.info({}, 'stopped');
      return 0;
    },
  );
}

type WorkerWork = { invocation: Invocation; session: Session; target: Target; credentials: Credentials; log: Log };

const tendEveryMs = 3_000;

/** The parts of a worker, in the order in which they start; they drain in the opposite one. */
function partsOf({ invocation, session, target, credentials, log }: WorkerWork): Part[] {
  const { rate = null, burst = null } = invocation.config;
  const options = serviceOptions(invocation, session, target, credentials);
  const service = openService({ ...options, rate, burst, queueName: sharedQueueName, log });
  const work = scheduleWork({ invocation, session, target, feeder: service.feeder, log });
  const keeper = new ScheduleKeeper(work, session.queueConnection);
  const tender = new Tender({ ledger: session.ledger, feeder: service.feeder, fp: target.fp, log });
  return [
    tokenPart(credentials.token),
    ...service.parts,
    ...keeper.parts,
    repeat('tender', tendEveryMs, () => tender.tend(), log),
    repeat('news', tendEveryMs, newsTeller(session, target.fp, credentials.token, log), log),
  ];
}

async function aborted(signal: AbortSignal): Promise<void> {
  if (!signal.aborted) await once(signal, 'abort');
}

/** Where the rate begins, in words. */
async function learnedPace({ redis }: Session, fp: string, { separateLimits, rate }: Config): Promise<string> {
  const learned = learnedStart(await readTargetState(redis, fp), separateLimits ? resources : ['all']);
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
