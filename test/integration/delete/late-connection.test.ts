import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { isDoubtful } from '../../../src/ledger/cell.ts';
import { openHarness } from '../../support/harness.ts';
import { annotations, makeIds } from '../../support/ids.ts';
import { until } from '../../support/processes.ts';
import { startProxy } from '../../support/relay.ts';

const ids = makeIds('c', 40);

/** A run all of whose requests wait for their connections, which `open` lets them have. */
async function openWaitingRun() {
  const harness = await openHarness(onTestFinished, { objects: annotations(ids) });
  let open = () => {};
  const proxy = await startProxy(
    new Promise<void>((resolve) => {
      open = resolve;
    }),
  );
  onTestFinished(proxy.close);
  const way = ['--proxy', `http://127.0.0.1:${proxy.port}`];
  const running = harness.start(['run', harness.list(ids), '--resource', 'annotations', '--yes', ...way], {
    EXPUNGE_REQUEST_TIMEOUT_MS: '300000',
  });
  await until('requests wait for their connections', () => proxy.connections > 0);
  const { id } = await harness.onlyRun();
  return { harness, running, open, id };
}

type Waiting = Awaited<ReturnType<typeof openWaitingRun>>;

/** Nothing is sent a second after a run is stopped: here, once this process, which works on the run as well, had a hundred turns. */
async function secondHasPassed(): Promise<void> {
  for (let turn = 0; turn < 100; turn++) await sleep(10);
}

async function pause({ harness, id }: Waiting) {
  expect((await harness.expunge(['pause', id])).code).toBe(0);
  await secondHasPassed();
  return () => harness.expunge(['resume', id]);
}

async function stopAll({ harness }: Waiting) {
  expect((await harness.expunge(['stop-all'])).code).toBe(0);
  await secondHasPassed();
  return () => harness.expunge(['start-all']);
}

test.each([
  ['a pause', pause],
  ['stop-all', stopAll],
])('no request is sent by a connection that opens after %s, and no id has lost an attempt', async (_, stop) => {
  const waiting = await openWaitingRun();
  const { harness, running, open, id } = waiting;
  const resume = await stop(waiting);
  open();
  await until('all marks are withdrawn', async () => {
    const cells = (await harness.cells()).flat();
    return cells.every((cell) => ((cell >> 4) & 1) === 0 && !isDoubtful(cell));
  });
  expect(harness.sandbox.seen).toEqual([]);
  await resume();
  expect(await running.ended).toMatchObject({ code: 0 });
  expect(await harness.onlyRun()).toMatchObject({ id, counts: { deleted: ids.length }, attempts: ids.length });
});

test('no request is sent by a connection that opens after its run was cancelled, and all ids count as never sent', async () => {
  const { harness, running, open, id } = await openWaitingRun();
  const cancelling = harness.start(['cancel', id, '--yes']);
  await harness.runIs('cancelling', ({ state }) => state === 'cancelling');
  await secondHasPassed();
  open();
  expect(await cancelling.ended, cancelling.stderr).toMatchObject({ code: 0 });
  await running.ended;
  expect(harness.sandbox.seen).toEqual([]);
  expect(await harness.onlyRun()).toMatchObject({ counts: { not_attempted: ids.length }, attempts: 0 });
});
