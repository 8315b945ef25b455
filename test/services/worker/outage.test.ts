import { describe, test } from 'vitest';
import type { FaultTable } from '../../../src/sandbox/faults.ts';
import { startSandbox } from '../../../src/sandbox/server.ts';
import { annotations, makeIds } from '../../support/ids.ts';
import { openLocalWorkers } from '../../support/local-workers.ts';
import { until } from '../../support/processes.ts';

const ids = makeIds('o', 600);
const quick = { retryDelaysMs: [50, 50, 50, 50, 50] };

describe.concurrent('an outage in the middle of a run', () => {
  /** @invariant free-outage: An outage costs no id an attempt. */
  test.for<['status-503' | 'reset' | 'refused']>([['status-503'], ['reset'], ['refused']])(
    'costs no id anything, few requests, and ends by itself: %s',
    async ([kind], { expect, onTestFinished }) => {
      const { sandbox, service, add, submit, run } = await openLocalWorkers(
        onTestFinished,
        {
          objects: annotations(ids),
          latencyMs: 20,
        },
        quick,
      );
      const other = await add(quick);
      const id = await submit(ids);
      await until('the run is in the middle', () => sandbox.executed.size > ids.length / 4);
      const before = sandbox.seen.length;
      if (kind === 'refused') await sandbox.close();
      else sandbox.faults = { [kind]: 1 } as FaultTable;
      const holds = () => [service, other.service].map(({ senders }) => senders.all[0]!.limiter.known?.hold?.reason);
      await until('both workers hold back', () => holds().every((reason) => reason !== undefined));
      const wasted = sandbox.seen.length - before;
      let back = sandbox;
      if (kind === 'refused') {
        const left = ids.filter((one) => sandbox.exists('annotations', one));
        back = await startSandbox({ objects: annotations(left), port: Number(new URL(sandbox.url).port) });
        onTestFinished(() => back.close());
      } else sandbox.faults = {};
      await until('the run ends', async () => (await run(id)).state === 'completed');
      const { counts, attempts } = await run(id);
      expect([counts.failed, counts.unknown]).toEqual([0, 0]);
      expect(counts.deleted + counts.gone_unconfirmed).toBe(ids.length);
      expect(wasted).toBeLessThanOrEqual(200);
      expect(attempts - ids.length).toBeLessThanOrEqual(200);
    },
  );
});

test('a server that asks for more than an hour pauses the run, with the reason', async ({ expect, onTestFinished }) => {
  const faults = { 'status-429-seconds': 1, retryAfterSeconds: 7_200 };
  const { sandbox, submit, run } = await openLocalWorkers(onTestFinished, { objects: annotations(ids), faults });
  const id = await submit(ids);
  await until('it is paused', async () => (await run(id)).state === 'paused');
  const reason = 'the server answered 429 and sent Retry-After 7200';
  expect(await run(id)).toMatchObject({ by: 'guard', reason, attempts: 0 });
  expect(sandbox.seen.length).toBeLessThan(50);
});
