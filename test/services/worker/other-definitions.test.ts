import { describe, test } from 'vitest';
import { isFinalized } from '../../../src/ledger/run.ts';
import { type AtEnd, type Harness, openHarness } from '../../support/harness.ts';
import { makeIds } from '../../support/ids.ts';
import { type Running, until } from '../../support/processes.ts';
import { configOf, knowDuringTests, type WrittenResources } from '../../support/resources.ts';

const ids = makeIds('d', 2_000); // four chunks
const right = { path: '/v1/dashboards/{id}', success: [200], auth: { header: 'x-api-key' } };

/** Definitions of workers that differ from the run's, and what those workers say. */
const wrong: [name: string, resources: WrittenResources, words: string][] = [
  ['path', { dashboards: { ...right, path: '/v2/dashboards/{id}' } }, '"path" of the resource dashboards is "/v2/'],
  ['success', { dashboards: { ...right, success: [200, 204] } }, '"success" of the resource dashboards is [200,204]'],
  ['none', {}, 'the resource dashboards is not defined here'],
];

knowDuringTests({ dashboards: right });

async function openRun(atEnd: AtEnd) {
  const harness = await openHarness(atEnd, {
    objects: ids.map((id) => ({ resource: 'dashboards', id })),
    latencyMs: 20,
  });
  const env = configOf(harness, { dashboards: right }, 'right.json');
  const run = harness.spawn(['run', harness.list(ids), '--resource', 'dashboards', '--detach', '--yes'], env);
  if ((await run.ended).code !== 0) throw new Error(run.stderr);
  const { id } = await harness.onlyRun();
  const workerWith = (resources: WrittenResources, name: string) =>
    harness.spawnWorker([], configOf(harness, resources, `${name}.json`));
  return { harness, id, workerWith, status: () => statusOf(harness, id) };
}

/** What `status` says, from a process without any definition. */
async function statusOf(harness: Harness, id: string): Promise<string> {
  const status = harness.spawn(['status', id]);
  await status.ended;
  return status.stdout.replaceAll(/\s+/g, ' '); // it wraps its lines
}

const skips = ({ stderr }: Running) => stderr.match(/"skipping the run"/g)?.length ?? 0;

/** Waits until a worker has been given a chunk of the run once more, and left it alone. */
async function leavesItAgain(harness: Harness): Promise<void> {
  const { misfit } = await harness.runIs('left alone', (run) => run.misfit !== null);
  await harness.runIs('left alone again', (run) => run.misfit !== null && run.misfit.at > misfit!.at + 1_000);
}

describe.concurrent('a worker that defines a resource of a run in another way', () => {
  test.for(wrong)(
    '(%s) sends nothing of it, says why once, and its status says so',
    async ([name, resources, words], { expect, onTestFinished }) => {
      const { harness, workerWith, status } = await openRun(onTestFinished);
      const worker = await workerWith(resources, name);
      await leavesItAgain(harness);
      expect(skips(worker)).toBe(1);
      const logged = worker.stderr.split('\n').find((line) => line.includes('"skipping the run"'))!;
      expect(JSON.parse(logged).reason).toContain(words);
      expect(await status()).toContain(`deletes nothing of it: ${words}`);
      expect(harness.sandbox.seen).toEqual([]);
    },
  );

  test('leaves it to the right one, whose claim ends what the status says', async ({ expect, onTestFinished }) => {
    const { harness, workerWith, status } = await openRun(onTestFinished);
    const others = await Promise.all(wrong.map(([name, resources]) => workerWith(resources, name)));
    await leavesItAgain(harness);
    await until('each has left it alone', () => others.every((worker) => skips(worker) === 1));
    await workerWith({ dashboards: right }, 'right');
    await harness.runIs('claimed', (run) => run.misfit === null && run.settled > 0);
    expect(await status()).not.toContain('deletes nothing of it');
    const run = await harness.runIs('completed', ({ state }) => isFinalized(state));
    expect(run).toMatchObject({ state: 'completed', misfit: null, counts: { deleted: ids.length } });
    expect(harness.sandbox.seen.toSorted()).toEqual(
      ids.map((id) => `DELETE /v1/dashboards/${encodeURIComponent(id)}`).toSorted(),
    );
    expect(others.map(skips)).toEqual(others.map(() => 1));
  });

  test('is named again when the right one has died with its chunks', async ({ expect, onTestFinished }) => {
    const { harness, workerWith } = await openRun(onTestFinished);
    const rightOne = await workerWith({ dashboards: right }, 'right');
    await harness.runIs('under way', (run) => run.settled > 100);
    rightOne.signal('SIGKILL');
    await rightOne.ended;
    const [[name, resources]] = wrong as [(typeof wrong)[0]];
    await workerWith(resources, name);
    const left = await harness.runIs('left alone', (run) => run.misfit !== null || isFinalized(run.state));
    expect(left).toMatchObject({ state: 'running', misfit: { why: expect.stringContaining('"path"') } });
    expect(harness.sandbox.seen.filter((request) => !request.startsWith('DELETE /v1/dashboards/'))).toEqual([]);
  });
});
