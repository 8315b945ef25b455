import { expect, onTestFinished, test } from 'vitest';
import { noteTarget } from '../../../src/ledger/known-targets.ts';
import { readSchedule } from '../../../src/schedule/schedule-store.ts';
import { openApi, overServer } from '../../support/api.ts';
import { annotations } from '../../support/ids.ts';

// A server with a file of protected ids of its own. What is said of that file goes with it: its column, and what is expected of it.

const ids = ['a-1', 'a-2', 'a-3'];

async function open(more: NodeJS.ProcessEnv = {}) {
  const api = await openApi(onTestFinished, {
    objects: annotations(ids),
    prepare: (harness) => ({
      EXPUNGE_PROTECT: harness.file('keep.csv', 'id,key\n1,a-2\n2,z-9\n'),
      EXPUNGE_PROTECT_COLUMN: 'key',
      ...more,
    }),
  });
  const { harness, redis } = api;
  await noteTarget(redis, harness.target, Date.now());
  const env = await overServer(api);
  const upload = async (list: string[], query = '') => {
    const path = `/plans?target=${harness.target.fp}&resource=annotations${query}`;
    const headers = { 'content-type': 'text/plain' };
    return api.call('operate', path, { method: 'POST', raw: `${list.join('\n')}\n`, headers });
  };
  const apply = ({ plan, confirm }: { plan: string; confirm: number }, more: object = {}) =>
    api.call('operate', `/plans/${plan}/apply`, { method: 'POST', body: { confirm, ...more } });
  return { ...api, env, upload, apply };
}

test('protects the ids in the column that the server names', async () => {
  const { upload } = await open();
  const { body } = await upload(ids);
  expect([body.detail, body.confirm, body.counts?.protected]).toEqual([undefined, 2, 1]);
});

test('refuses a list that holds none of them, unless whoever asks for it expects that', async () => {
  const { harness, upload, apply } = await open();
  const refused = await apply((await upload(['a-1'])).body);
  expect(refused.body).toMatchObject({
    status: 409,
    code: 'guard',
    fields: ['expect_unprotected'],
    detail: expect.stringContaining('none of the 2 protected ids is in the list'),
  });
  expect(await harness.runs()).toEqual([]);
  expect((await apply((await upload(['a-1'])).body, { expect_unprotected: 'true' })).status).toBe(201);
  expect((await apply((await upload(['a-3'], '&expect_unprotected=true')).body)).status).toBe(201);
});

test('is asked by --server: --yes is refused, and the flag or a typed number accept the list', async () => {
  const { harness, env } = await open();
  const run = (list: string, ...more: string[]) =>
    harness.expunge(['run', list, '--resource', 'annotations', '--detach', ...more], { env });
  const list = harness.list(['a-1']);
  const refused = await run(list, '--yes');
  expect([refused.code, refused.stderr]).toEqual([4, expect.stringContaining('--expect-unprotected')]);
  expect(await harness.runs()).toEqual([]);
  expect(await run(list, '--yes', '--expect-unprotected')).toMatchObject({ code: 0 });
  const other = await run(harness.file('other.txt', 'a-3\n'), '--confirm', '1');
  expect([other.code, other.stderr]).toEqual([0, expect.stringContaining('none of them occurs in this list')]);
});

test('may expect that of every list', async () => {
  const { upload, apply } = await open({ EXPUNGE_EXPECT_UNPROTECTED: 'true' });
  expect((await apply((await upload(['a-1'])).body)).status).toBe(201);
});

test('gives its column to a schedule with its file; one with a file of its own keeps what it has', async () => {
  const { harness, redis, env } = await open();
  const words = ['--cron', '0 3 * * *', '--from', 'x', '--resource', 'views', '--max-deletes', '5'];
  const add = (name: string, over: NodeJS.ProcessEnv, ...more: string[]) =>
    harness.expunge(['schedule', 'add', name, ...words, ...more], { env: over });
  const settingsOf = async (name: string) => (await readSchedule(redis, harness.target.fp, name))?.settings;
  expect((await add('new', env)).code).toBe(0);
  expect(await settingsOf('new')).toMatchObject({
    protect: harness.file('keep.csv', 'id,key\n1,a-2\n'),
    protectColumn: 'key',
  });
  const own = harness.file('own.csv', 'id,name\n7,a-2\n');
  expect((await add('own', { EXPUNGE_PROTECT_COLUMN: 'name' }, '--protect', own)).code).toBe(0);
  const changed = await add('own', env, '--replace', '--limit', '3');
  expect([changed.code, changed.stderr]).toEqual([0, expect.not.stringContaining('protect')]);
  expect(await settingsOf('own')).toMatchObject({ protect: own, protectColumn: 'name', limit: '3' });
});
