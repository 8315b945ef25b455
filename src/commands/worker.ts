import { setTimeout as sleep } from 'node:timers/promises';
import { messageOf } from '../errors.ts';
import { readTarget } from '../guard/check-target.ts';
import { createLogger, type Log } from '../logger.ts';
import { sharedQueueName } from '../queue/queue.ts';
import { openService } from '../worker/service.ts';
import { Tender } from '../worker/tender.ts';
import type { Invocation } from './command.ts';
import { listenForInterrupts } from './interrupts.ts';
import { readCredentials, serviceOptions } from './service-options.ts';
import { withRedis } from './session.ts';
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
        queueName: sharedQueueName,
        log,
      });
      const tender = new Tender({ ledger: session.ledger, feeder: service.feeder, fp: target.fp, log });
      service.start();
      log.info({ target: target.baseUrl, fp: target.fp, concurrency: config.maxConcurrency }, 'ready');
      await tendUntil(interrupts.signal, tender, log);
      await service.drain();
      await service.close();
      log.info({}, 'stopped');
      return 0;
    },
  );
}

const tendEveryMs = 3_000;

async function tendUntil(signal: AbortSignal, tender: Tender, log: Log): Promise<void> {
  while (!signal.aborted) {
    const turn = tender.tend().catch((error) => {
      log.warn({ reason: messageOf(error) }, 'could not tend the runs, trying again');
    });
    await unlessAborted(signal, turn);
    await sleep(tendEveryMs, undefined, { signal }).catch(() => {});
  }
}
