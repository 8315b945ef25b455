import { expect, test } from 'vitest';
import { openHarness } from '../../support/harness.ts';
import { makeIds } from '../../support/ids.ts';
import { configOf, know, knowDuringTests } from '../../support/resources.ts';

const ids = makeIds('d', 6);
const right = { path: '/v1/dashboards/{id}', success: [200], auth: { header: 'x-api-key' } };

knowDuringTests({ dashboards: right });

test.for([
  [{ ...right, path: '/v2/dashboards/{id}' }, '"path" of the resource dashboards is "/v2/'],
  [null, 'the resource dashboards is not defined here'],
] as const)(
  'a worker that defines a resource of a run in another way sends nothing of it, says why once, and leaves it to the right one: %j',
  async ([wrong, words], { onTestFinished }) => {
    know({ dashboards: right });
    const harness = await openHarness(onTestFinished, { objects: ids.map((id) => ({ resource: 'dashboards', id })) });
    const asRight = configOf(harness, { dashboards: right }, 'right.json');
    const asWrong = configOf(harness, wrong === null ? {} : { dashboards: wrong }, 'wrong.json');
    const list = ['run', harness.list(ids), '--resource', 'dashboards', '--detach', '--yes'];
    expect(await harness.expunge(list, { env: asRight })).toMatchObject({ code: 0 });
    const worker = await harness.worker([], asWrong);
    const { id, misfit } = await harness.runIs('left alone', (run) => run.misfit !== null);
    await harness.runIs('left alone again', (run) => run.misfit !== null && run.misfit.at > misfit!.at);
    const skips = worker.stderr.split('\n').filter((line) => line.includes('"skipping the run"'));
    expect(skips.map((line) => JSON.parse(line).reason)).toEqual([expect.stringContaining(words)]);
    const { stdout } = await harness.expunge(['status', id], { env: asWrong });
    expect(stdout.replaceAll(/\s+/g, ' ')).toContain(`deletes nothing of it: ${words}`);
    expect(harness.sandbox.seen).toEqual([]);

    worker.signal('SIGTERM');
    await worker.ended;
    await harness.worker([], asRight);
    const run = await harness.runIs('completed', ({ state }) => state === 'completed');
    expect(run).toMatchObject({ misfit: null, counts: { deleted: ids.length } });
    expect(harness.sandbox.seen.toSorted()).toEqual(ids.map((name) => `DELETE /v1/dashboards/${name}`).toSorted());
  },
);
