import { setTimeout as sleep } from 'node:timers/promises';
import type { Config } from '../config.ts';
import { messageOf } from '../errors.ts';
import { readTarget } from '../guard/check-target.ts';
import { resources } from '../ledger/outcome.ts';
import { learnedStart, readTargetState } from '../limiter/read-target.ts';
import { createLogger, type Log } from '../logger.ts';
import { sharedQueueName } from '../queue/queue.ts';
import { paceText } from '../terminal/plan-text.ts';
import { TargetEvents } from '../terminal/target-events.ts';
import type { Token } from '../token/token.ts';
import { openService } from '../worker/service.ts';
import { Tender } from '../worker/tender.ts';
import type { Invocation } from './command.ts';
import { listenForInterrupts } from './interrupts.ts';
import { readCredentials, serviceOptions } from './service-options.ts';
import { type Session, withRedis } from './session.ts';
import { unlessAborted } from './unless-aborted.ts';

/** Deletes chunks of all detached runs of its target until SIGTERM or SIGINT; then hands back what it has and exits 0. */
export async function execute(invocation: Invocation): Promise<number> {
  const { config, env } = invocation;
  const target = readTarget(config, env);
  const credentials = readCredentials(invocation);
  const log = createLogger(config.logLevel ?? 'info');
  const interrupts = listenForInterrupts((signal) => log.info({ signal }, 'stopping'));
  return withRedis(
    invocation,
    (line) => log.info({}, line),
    async (session) => {
      const service = openService({
        ...serviceOptions(invocation, session, target, credentials),
        rate: config.rate ?? null,
        burst: config.burst ?? null,
        queueName: sharedQueueName,
        log,
      });
      const tender = new Tender({ ledger: session.ledger, feeder: service.feeder, fp: target.fp, log });
      const pace = await learnedPace(session, target.fp, config);
      await credentials.token.start();
      service.start();
      log.info({ target: target.baseUrl, fp: target.fp, concurrency: config.maxConcurrency, pace }, 'ready');
      const tellNews = newsTeller(session, target.fp, service.token, log);
      await tendUntil(
        interrupts.signal,
        async () => {
          await tender.tend();
          await tellNews();
        },
        log,
      );
      await Promise.all([service.drain(), credentials.token.close()]);
      await service.close();
      log.info({}, 'stopped');
      return 0;
    },
  );
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

const tendEveryMs = 3_000;

async function tendUntil(signal: AbortSignal, tend: () => Promise<void>, log: Log): Promise<void> {
  while (!signal.aborted) {
    const turn = tend().catch((error) => {
      log.warn({ reason: messageOf(error) }, 'could not tend the runs, trying again');
    });
    await unlessAborted(signal, turn);
    await sleep(tendEveryMs, undefined, { signal }).catch(() => {});
  }
}
