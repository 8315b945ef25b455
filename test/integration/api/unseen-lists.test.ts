import { expect, onTestFinished, test } from 'vitest';
import { noteTarget } from '../../../src/ledger/known-targets.ts';
import { openApi, overServer } from '../../support/api.ts';
import { annotations } from '../../support/ids.ts';

// Lists that a person has to see before they are deleted, through every way in. Nothing is sent where nobody looks.

const ids = Array.from({ length: 30 }, (_, i) => String(100 + i));

const lists = [
  { what: 'an id that looks unlike the others', text: `${ids.join('\n')}\nTotal\n`, ids: 31, flag: 'allow_mixed_ids' },
];

async function open() {
  const api = await openApi(onTestFinished, { objects: annotations(ids) });
  const { harness, redis } = api;
  await noteTarget(redis, harness.target, Date.now());
  const env = await overServer(api);
  const post = (path: string, body: object) => api.call('operate', path, { method: 'POST', ...body });
  const upload = (text: string, query = '') =>
    post(`/plans?target=${harness.target.fp}&resource=annotations${query}`, {
      raw: text,
      headers: { 'content-type': 'text/plain' },
    });
  return { ...api, env, post, upload };
}

test.each(lists)('$what: refused without a person, by run, plan, and a server', async ({ text, ids: n, flag }) => {
  const { harness, env, post, upload } = await open();
  const list = harness.file('list.txt', text);
  const cli = `--${flag.replaceAll('_', '-')}`;
  const run = (more: string[], over: NodeJS.ProcessEnv = {}) =>
    harness.expunge(['run', list, '--resource', 'annotations', ...more], { env: over });
  for (const refused of [
    await run(['--yes']),
    await run(['--yes', '--detach']),
    await run(['--yes', '--detach'], env),
    await run(['--yes', '--rehearse']),
  ]) {
    expect(refused.stderr).toContain(cli);
    expect([refused.code, refused.stderr.includes('Total')]).toEqual([4, true]);
  }
  const plan = await upload(text);
  expect(plan.body).toMatchObject({ confirm: n, looks: { odd: 1, pattern: '[0-9]{3}' } });
  const apply = (more: object) => post(`/plans/${plan.body.plan}/apply`, { body: { confirm: n, ...more } });
  expect((await apply({})).body).toMatchObject({ status: 409, code: 'guard', fields: expect.arrayContaining([flag]) });
  expect(await harness.runs()).toEqual([]);
  expect(harness.sandbox.counts.requests).toBe(0);
  expect((await apply({ [flag]: 'true' })).status).toBe(201);
});

test.each(lists)('$what: deleted if a person says so', async ({ text, ids: n, flag }) => {
  const { harness, post, upload } = await open();
  const list = harness.file('list.txt', text);
  const dry = await harness.run([list, '--resource', 'annotations', '--dry-run', '--json']);
  expect(dry.stderr).toContain('with --yes the run is refused');
  expect(JSON.parse(dry.stdout)).toMatchObject({ looks: { odd: 1 } });
  const planned = await upload(text, `&${flag}=true`);
  expect((await post(`/plans/${planned.body.plan}/apply`, { body: { confirm: n } })).status).toBe(201);
  expect(dry.stderr).toContain('30 like 100 · 1 like Total (line 31)');
  const confirmed = ['--detach', '--confirm', String(n), '--account', 'other'];
  expect(await harness.run([list, '--resource', 'annotations', ...confirmed])).toMatchObject({ code: 0 });
});

test('a last line without its newline: refused without a person, unless a flag says that it is whole', async () => {
  const { harness, env, post, upload } = await open();
  const list = harness.file('list.txt', `${ids[0]}\n10`);
  const run = (more: string[], over: NodeJS.ProcessEnv = {}) =>
    harness.expunge(['run', list, '--resource', 'annotations', ...more], { env: over });
  for (const more of [['--yes'], ['--yes', '--dry-run'], ['--yes', '--detach']])
    expect(await run(more)).toMatchObject({ code: 2, stderr: expect.stringContaining('--allow-open-end') });
  const far = await run(['--yes', '--detach'], env);
  expect([far.code, far.stderr]).toEqual([2, expect.stringMatching(/list\.txt:2: the last line has no newline/)]);
  const sent = await upload(`${ids[0]}\n10`);
  expect(sent.body).toMatchObject({ status: 422, fields: ['allow_open_end'] });
  expect([await harness.runs(), harness.sandbox.counts.requests]).toEqual([[], 0]);

  const plan = await upload(`${ids[0]}\n${ids[1]}`, '&allow_open_end=true');
  expect((await post(`/plans/${plan.body.plan}/apply`, { body: { confirm: 2 } })).status).toBe(201);
  expect((await run(['--dry-run'])).stdout).toContain('10; the last line has no newline');
  expect((await run(['--yes', '--detach', '--allow-open-end'])).code).toBe(0);
  expect((await run(['--confirm', '2', '--detach', '--account', 'other'])).code).toBe(0);
  const seen = await run(['--confirm', '999', '--detach'], env);
  expect(seen.stderr).toMatch(/the last line has no newline: if the file was cut off[\s\S]*expected 2/);
});

test.each([
  ['whose rows are rejected', 'a/b\n', [], 3],
  ['with a rejected row', `${ids[0]}\nnull\n`, [], 3],
  ['without one', `${ids[0]}\n`, [], 0],
  ['that would stop before it starts', `${ids[0]}\n`, ['--start-at', '2099-01-02', '--stop-at', '2099-01-01'], 2],
  ['of other ids than expected', `${ids[0]}\n`, ['--expect-count', '2'], 4],
])('a dry run of a list %s ends as its run', async (_, text, more, code) => {
  const { harness } = await open();
  const args = [harness.file('list.txt', text), '--resource', 'annotations', '--yes', ...more];
  const away = { REDIS_URL: 'redis://127.0.0.1:1' };
  expect((await harness.run([...args, '--dry-run'])).code).toBe(code);
  expect((await harness.expunge(['run', ...args, '--dry-run'], { env: away })).code).toBe(code);
  expect((await harness.run(args)).code).toBe(code);
});
