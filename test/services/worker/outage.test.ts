import { describe, test } from 'vitest';
import type { FaultTable } from '../../../src/sandbox/faults.ts';
import { startSandbox } from '../../../src/sandbox/server.ts';
import { annotations, makeIds } from '../../support/ids.ts';
import { type LocalWorkers, openLocalWorkers } from '../../support/local-workers.ts';
import { never, until } from '../../support/processes.ts';

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
      await until('both workers hold back', () => [service, other.service].every((one) => holdOf(one) !== undefined));
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

test('one 429 with a Retry-After to one of two workers holds both', async ({ expect, onTestFinished }) => {
  const script = (_: string, id: string, nth: number) => (id === ids[150] && nth === 1 ? 'status-429-seconds' : null);
  const faults = { script, retryAfterSeconds: 600 };
  const { sandbox, service, add, submit, run } = await openLocalWorkers(
    onTestFinished,
    { objects: annotations(ids), latencyMs: 5, faults },
    { maxConcurrency: 8 },
  );
  const other = await add({ maxConcurrency: 8 });
  const id = await submit(ids);
  const isTold = (one: LocalWorkers['service']) => holdOf(one)?.includes('Retry-After 600');
  await until('both know of it', () => isTold(service) && isTold(other.service));
  const sent = sandbox.seen.length;
  await never('more than what was under way is sent', () => sandbox.seen.length > sent + 2 * 8, 1_500);
  expect(sandbox.counts.byStatus.get(429)).toBe(1);
  const { state, attempts } = await run(id);
  expect([state, attempts < ids.length]).toEqual(['running', true]);
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

/** Why this worker sends nothing now. */
function holdOf({ sender }: LocalWorkers['service']): string | undefined {
  return sender.limiter.known?.hold?.reason;
}
