import { type Run, readRun } from '../ledger/run.ts';
import { exitOf, summaryOf } from '../ledger/summary.ts';
import { createFeeder } from '../queue/feeder.ts';
import { leaveToWorkers } from '../queue/leave-to-workers.ts';
import { openQueue, sharedQueueName } from '../queue/queue.ts';
import { endingText } from '../terminal/ending.ts';
import { styleOf } from '../terminal/style.ts';
import type { Invocation } from './command.ts';
import { endingOf } from './ending-of.ts';
import { type Session, whoAmI } from './session.ts';

/** Leaves a run to the workers of its target, and warns if none is alive. Repeating it is harmless. */
export async function detach({ options, stdout, stderr }: Invocation, session: Session, run: Run): Promise<number> {
  const { redis, ledger, queueConnection } = session;
  const queue = openQueue({ fp: run.fp, name: sharedQueueName, connection: queueConnection });
  try {
    await leaveToWorkers(ledger, createFeeder(ledger, queue, Date.now), run, whoAmI());
    const workers = await queue.workers();
    const now = (await readRun(redis, run.id)) ?? run;
    stderr.write(`${endingText(endingOf(now, 'detached'), styleOf(stderr))}\n`);
    if (workers === 0)
      stderr.write(`warning: no worker of this target is alive; start one: expunge worker --base-url ${run.baseUrl}\n`);
    if (options.json) stdout.write(`${JSON.stringify(summaryOf(now, exitOf(now), Date.now()))}\n`);
    return 0;
  } finally {
    await queue.close();
  }
}
