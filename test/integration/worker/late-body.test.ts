import { onTestFinished, test } from 'vitest';
import { targetOf } from '../../../src/model/target.ts';
import { openBodyServer } from '../../support/body-server.ts';
import { openLocalWorkers } from '../../support/local-workers.ts';
import { until } from '../../support/processes.ts';
import { forgetTarget } from '../../support/redis-keys.ts';

/** How many bodies were counted of a run of one id, if the body of its 204 comes when the process has begun to close its connections. */
async function countAtTheEnd(): Promise<number> {
  const owed: (() => void)[] = [];
  const server = await openBodyServer(onTestFinished, 'laterPacket', { later: (send) => void owed.push(send) });
  const target = targetOf(server.url, '');
  onTestFinished(() => forgetTarget(server.url));
  const workers = await openLocalWorkers(onTestFinished, {}, { target });
  const run = await workers.submit(['b-1'], { target });
  await until('the run is completed', async () => (await workers.run(run)).state === 'completed');
  const closed = workers.service.sender.close();
  for (const send of owed) send();
  await closed;
  for (const { drain } of workers.service.parts.filter(({ name }) => name === 'answers with a body')) await drain!();
  return (await workers.run(run)).bodies;
}

test('a process that ends waits a moment for the body of its last 204', async () => {
  // It waits for 100 ms from the answer on; on a busy machine the test may see the end of the run too late.
  await until('the body is counted', async () => (await countAtTheEnd()) === 1, 20_000);
});
