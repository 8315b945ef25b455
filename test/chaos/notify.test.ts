import { describe, test } from 'vitest';
import { startRun } from '../support/fleet.ts';
import { openHarness } from '../support/harness.ts';
import { annotations, makeIds } from '../support/ids.ts';
import { type Running, until, without } from '../support/processes.ts';
import { openReceiver } from '../support/receiver.ts';
import { sized } from '../support/size.ts';

const idsOfRun = 20;
const runs = sized(2, 20);
const ids = makeIds('k', runs * idsOfRun);

describe.concurrent('told by two workers', () => {
  /** @invariant events-once: Every event has one id and is delivered at least once, to each receiver independently. */
  test('every event is told, with one id each time, though workers are killed while they post', async ({
    expect,
    onTestFinished,
  }) => {
    const harness = await openHarness(onTestFinished, { objects: annotations(ids) });
    const receiver = await openReceiver(onTestFinished);
    let held = 0; // requests that were never answered: their worker was killed
    const mayKill = () => held < sized(1, 6);
    let isHolding = false;
    receiver.answer = () => {
      if (!mayKill()) return 200;
      isHolding = true;
      held++;
      return 'nothing';
    };
    const start = () => harness.spawnWorker(['--notify', receiver.url], without('patience'));
    let workers: Running[] = await Promise.all([start(), start()]);
    for (let n = 0; n < runs; n++) await startRun(harness, ids.slice(n * idsOfRun, (n + 1) * idsOfRun), ['--detach']);
    while (mayKill() || isHolding) {
      await until('an event is on its way', () => isHolding);
      isHolding = false;
      // Nobody knows from outside which of them posts: both are killed, in turn.
      for (const worker of workers) worker.signal('SIGKILL');
      await Promise.all(workers.map(({ ended }) => ended));
      workers = await Promise.all([start(), start()]);
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
});
