import { type Run, readRun } from '../ledger/run.ts';
import { exitOf, summaryOf } from '../ledger/summary.ts';
import { readStops, stopAdvice } from '../limiter/stop.ts';
import { createFeeder } from '../queue/feeder.ts';
import { leaveToWorkers } from '../queue/leave-to-workers.ts';
import { openQueue, sharedQueueName } from '../queue/queue.ts';
import { endingText } from '../terminal/ending.ts';
import { orderLine } from '../terminal/stop-text.ts';
import { plainLine, styleOf } from '../terminal/style.ts';
import type { Invocation } from './command.ts';
import { endingOf } from './ending-of.ts';
import { reasonOf } from './reason-of.ts';
import { type Session, whoAmI } from './session.ts';
import { warnOfWorkers } from './warn-of-workers.ts';
import { withStop } from './with-stop.ts';

/** Leaves a run to the workers of its target, and warns if none is alive. Repeating it is harmless. */
export async function detach({ options, stdout, stderr }: Invocation, session: Session, run: Run): Promise<number> {
  const { redis, ledger, queueConnection } = session;
  const queue = openQueue({ fp: run.fp, name: sharedQueueName, connection: queueConnection });
  try {
    const by = { who: whoAmI(), reason: reasonOf(options) };
    await leaveToWorkers(ledger, createFeeder(ledger, queue), run, by);
    const workers = await queue.workers();
    const now = (await readRun(redis, run.id)) ?? run;
    stderr.write(`${endingText(endingOf(now, 'detached'), styleOf(stderr))}\n`);
    warnOfWorkers(stderr, workers, run);
    const { target: stop } = await readStops(redis, run.fp);
    if (stop !== null)
      stderr.write(`${plainLine(`warning: the run waits. ${stopAdvice(stop, orderLine('start-all', run))}`)}\n`);
    if (options.json) stdout.write(`${JSON.stringify(summaryOf(withStop(now, stop), exitOf(now), Date.now()))}\n`);
    return 0;
  } finally {
    await queue.close();
  }
}
