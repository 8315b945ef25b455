import { describe, expect, onTestFinished, test } from 'vitest';
import { noteTarget } from '../../../src/ledger/known-targets.ts';
import { countPending, type Run, readRun } from '../../../src/ledger/run.ts';
import { type Api, openApi } from '../../support/api.ts';
import { annotations, makeIds } from '../../support/ids.ts';
import { never } from '../../support/processes.ts';

const ids = makeIds('s', 40);
const post = (body: object) => ({ method: 'POST', body });
const isHalted = ({ state }: Run) => state === 'halted';

/** A server, a worker, and a list of which nothing may be deleted: each rung of a canary halts its run. */
async function openForbidden(): Promise<Api> {
  const api = await openApi(onTestFinished, { objects: annotations(ids), faults: { 'status-403': 1 } });
  await noteTarget(api.redis, api.harness.target, Date.now());
  await api.harness.worker();
  return api;
}

/** A run that has halted at its first rung. */
async function haltedAtOne({ harness }: Api): Promise<Run> {
  const list = harness.list(ids);
  const args = ['--resource', 'annotations', '--canary', '1,2,3,4,5', '--detach', '--yes'];
  expect(await harness.run([list, ...args])).toMatchObject({ code: 0 });
  return harness.runIs('halted', isHalted);
}

/** Which ids were asked for, once no more come. */
async function sentOf({ harness }: Api): Promise<number> {
  const sent = () => new Set(harness.sandbox.seen.filter((request) => request.startsWith('DELETE'))).size;
  const before = sent();
  await never('more is sent', () => sent() > before, 1_000);
  return before;
}

describe('a start names what was seen', () => {
  test('so a second click passes no rung of a canary that nobody saw', async () => {
    const api = await openForbidden();
    const { id, revision: seen } = await haltedAtOne(api);
    const resume = () => api.call('operate', `/runs/${id}/resume`, post({ seen }));
    expect((await resume()).status).toBeLessThan(300);
    await api.harness.runIs('halted at the second rung', (run) => isHalted(run) && run.revision !== seen);
    expect((await resume()).body).toMatchObject({
      status: 409,
      code: 'guard',
      detail: expect.stringMatching(/has changed since it was shown: it is halted .*nothing was resumed/),
    });
    expect(await sentOf(api)).toBe(2);
  });

  test('so of eight clicks at once one passes one rung', async () => {
    const api = await openForbidden();
    const { id, revision: seen } = await haltedAtOne(api);
    const resume = () => api.call('operate', `/runs/${id}/resume`, post({ seen }));
    const answers = await Promise.all(Array.from({ length: 8 }, resume));
    await api.harness.runIs('halted again', (run) => isHalted(run) && run.revision !== seen);
    // One that takes long is answered before it is carried out, or refused.
    expect(answers.filter(({ body }) => body.changed === true).length).toBeLessThanOrEqual(1);
    expect(await sentOf(api)).toBe(2);
  });

  test('so a plan that is applied eight times sends one rung', async () => {
    const api = await openForbidden();
    const { call, harness } = api;
    const query = `target=${harness.target.fp}&resource=annotations&canary=${encodeURIComponent('1,2,3,4,5')}`;
    const planned = await call('operate', `/plans?${query}`, {
      method: 'POST',
      raw: `id\n${ids.join('\n')}\n`,
      headers: { 'content-type': 'text/csv' },
    });
    expect(planned.status, planned.text).toBe(201);
    const apply = () => call('operate', `/plans/${planned.body.plan}/apply`, post({ confirm: ids.length }));
    for (let n = 0; n < 8; n++) {
      await apply();
      await harness.runIs('halted', isHalted);
    }
    expect(await harness.runs()).toHaveLength(1);
    expect(await sentOf(api)).toBe(1);
  });

  test('so a run that went on behind a prompt is not resumed past a halt that nobody saw', async () => {
    const api = await openForbidden();
    const { harness, redis } = api;
    const { id } = await haltedAtOne(api);
    const list = harness.list(ids);
    const asked = harness.expunge(['run', list, '--resource', 'annotations', '--canary', '1,2,3,4,5', '--detach'], {
      typed: [
        'to delete',
        async () => {
          const shown = (await readRun(redis, id))!;
          const { revision } = shown;
          expect(await harness.expunge(['resume', id])).toMatchObject({ code: 0 });
          await harness.runIs('halted at the second rung', (run) => isHalted(run) && run.revision !== revision);
          return `${countPending(shown)}\r`;
        },
      ],
    });
    expect(await asked).toMatchObject({ code: 4, stderr: expect.stringContaining('has changed since it was shown') });
    expect(await sentOf(api)).toBe(2);
  });

  test('so a run that moved since it was listed is not removed', async () => {
    const api = await openForbidden();
    const { call, harness } = api;
    const { id, revision: seen } = await haltedAtOne(api);
    expect(await harness.expunge(['cancel', id, '--yes'])).toMatchObject({ code: 0 });
    const remove = (seen: number) =>
      call('operate', `/runs/${id}?rows=${ids.length}&seen=${seen}`, { method: 'DELETE' });
    expect((await remove(seen)).body).toMatchObject({ status: 409, code: 'guard' });
    const { revision } = await harness.onlyRun();
    expect((await remove(revision)).status).toBe(200);
  });

  test('while a pause and a cancel are taken from whoever saw whatever', async () => {
    const api = await openForbidden();
    const { id } = await haltedAtOne(api);
    expect((await api.call('operate', `/runs/${id}/pause`, post({}))).status).toBe(200);
    const left = (await api.harness.onlyRun()).ids;
    expect((await api.call('operate', `/runs/${id}/cancel`, post({ left, shown: left }))).status).toBeLessThan(300);
    expect(await sentOf(api)).toBe(1);
  });
});
