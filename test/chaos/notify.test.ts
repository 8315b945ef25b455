import { describe, test } from 'vitest';
import { startRun } from '../support/fleet.ts';
import { openHarness } from '../support/harness.ts';
import { annotations, makeIds } from '../support/ids.ts';
import { type Running, until } from '../support/processes.ts';
import { openReceiver } from '../support/receiver.ts';
import { sized } from '../support/size.ts';

const idsOfRun = 20;
const runs = sized(3, 20);
const ids = makeIds('k', runs * idsOfRun);
const refusals = sized(4, 10);
const maxMs = 600_000; // between two tries for one event; the longer the runs take, the longer it waits

describe.concurrent('told by two workers', () => {
  /** @invariant events-once: Every event has one id and is delivered at least once, to each receiver independently. */
  test('every event is told, with one id each time, though workers are killed while they post', async ({
    expect,
    onTestFinished,
  }) => {
    const harness = await openHarness(onTestFinished, { objects: annotations(ids) });
    const receiver = await openReceiver(onTestFinished);
    let held = 0; // requests that were never answered: their worker was killed
    const mayKill = () => held < sized(2, 6);
    let isHolding = false;
    receiver.answer = () => {
      if (!mayKill()) return 200;
      isHolding = true;
      held++;
      return 'nothing';
    };
    const args = ['--notify', receiver.url];
    let workers: Running[] = [await harness.spawnWorker(args), await harness.spawnWorker(args)];
    for (let n = 0; n < runs; n++) await startRun(harness, ids.slice(n * idsOfRun, (n + 1) * idsOfRun), ['--detach']);
    while (mayKill() || isHolding) {
      await until('an event is on its way', () => isHolding);
      isHolding = false;
      // Nobody knows from outside which of them posts: both are killed, in turn.
      for (const worker of workers) worker.signal('SIGKILL');
      await Promise.all(workers.map(({ ended }) => ended));
      workers = [await harness.spawnWorker(args), await harness.spawnWorker(args)];
    }
    const told = () => receiver.received.filter(({ status }) => status === 200);
    const types = (run: string) =>
      told()
        .filter(({ headers }) => String(headers['webhook-id']).startsWith(`run-${run}-`))
        .map(({ body }) => JSON.parse(body).type);
    const all = await harness.runs();
    expect(all).toHaveLength(runs);
    await until('the end of each run is told', () => all.every(({ id }) => types(id).includes('run.completed')));
    for (const { id } of all) expect([...new Set(types(id))]).toEqual(['run.running', 'run.completed']);
    const bodies = new Map<string, Set<string>>();
    for (const { headers, body } of told()) {
      const id = String(headers['webhook-id']);
      bodies.set(id, (bodies.get(id) ?? new Set()).add(body));
    }
    expect([...bodies.values()].every(({ size }) => size === 1)).toBe(true);
  });

  test('a receiver that answers 500 ten times gets each event once more, and no run waits for it', async ({
    expect,
    onTestFinished,
  }) => {
    const harness = await openHarness(onTestFinished, { objects: annotations(ids) });
    const receiver = await openReceiver(onTestFinished);
    const idsOf = (isTaken: boolean) =>
      receiver.received
        .filter(({ status }) => (status === 200) === isTaken)
        .map(({ headers }) => headers['webhook-id']);
    let areOver = false;
    receiver.answer = ({ headers }) => {
      const isFirst = !idsOf(false).includes(headers['webhook-id']);
      return !areOver || (isFirst && idsOf(false).length < refusals) ? 500 : 200;
    };
    const args = ['--notify', receiver.url];
    await Promise.all([harness.spawnWorker(args), harness.spawnWorker(args)]);
    for (let n = 0; n < runs; n++) await startRun(harness, ids.slice(n * idsOfRun, (n + 1) * idsOfRun), ['--detach']);
    await until('all runs are over', async () => (await harness.runs()).every(({ state }) => state === 'completed'));
    expect(idsOf(true)).toEqual([]);
    await until('one is refused', () => idsOf(false).length > 0);
    areOver = true;
    await until('all is told', () => idsOf(true).length >= 2 * runs, maxMs);
    const all = (await harness.runs()).flatMap(({ id }) => [`run-${id}-1`, `run-${id}-2`]);
    expect(idsOf(true).toSorted()).toEqual(all.sort());
    expect(idsOf(false).length).toBeGreaterThanOrEqual(refusals);
  });
});
