import { describe, expect, onTestFinished, test } from 'vitest';
import { noteTarget } from '../../../src/ledger/known-targets.ts';
import { listSchedules } from '../../../src/schedule/schedule-store.ts';
import { openApi, overServer } from '../../support/api.ts';
import { makeIds } from '../../support/ids.ts';
import type { Done } from '../../support/processes.ts';
import { know, knowDuringTests } from '../../support/resources.ts';

const ids = makeIds('d', 6);
const atServer = { path: '/v1/dashboards/{id}' };
const other = { ...atServer, absent: [404] };
const words = '"absent" of the resource dashboards is [404,410] at the server instead of [404]';

knowDuringTests({ dashboards: atServer });

/** A server, and commands in processes of their own, which define dashboards as it does or not. */
async function openServer(defined: object | null = atServer) {
  const resources = defined === null ? {} : { dashboards: defined };
  know({ dashboards: atServer });
  const api = await openApi(onTestFinished, {
    objects: ids.map((id) => ({ resource: 'dashboards', id })),
    prepare: ({ file }) => ({
      EXPUNGE_CONFIG: file(
        'server.json',
        JSON.stringify({ resources, sources: { expired: { command: ['printf', 'd-1\\n'] } } }),
      ),
    }),
  });
  const { harness, redis } = api;
  await noteTarget(redis, harness.target, Date.now());
  const list = harness.list(ids);
  const over = {
    ...(await overServer(api)),
    EXPUNGE_TOKEN: '',
    EXPUNGE_STATE_DIR: `${harness.folder}/none`,
  };
  const configs = {
    same: harness.file('same.json', JSON.stringify({ resources: { dashboards: atServer } })),
    other: harness.file('other.json', JSON.stringify({ resources: { dashboards: other } })),
  };
  const done = async (args: readonly string[], env: NodeJS.ProcessEnv): Promise<Done> => {
    const running = harness.spawn(args, env);
    const { code } = await running.ended;
    return { code, stdout: running.stdout, stderr: running.stderr };
  };
  return {
    harness,
    list,
    /** A command over the server. */
    send: (which: keyof typeof configs, args: readonly string[]) =>
      done(args, { ...over, EXPUNGE_CONFIG: configs[which] }),
    /** The same in this process, which has the definitions of the server. */
    here: (args: readonly string[]) => harness.expunge(args, { env: { ...over, EXPUNGE_CONFIG: configs.same } }),
    /** A command at Redis itself. */
    direct: (which: keyof typeof configs, args: readonly string[]) => done(args, { EXPUNGE_CONFIG: configs[which] }),
    kept: async () => [
      ...(await harness.runs()).map(({ id }) => id),
      ...(await listSchedules(redis, harness.target.fp)).map(({ name }) => name),
    ],
  };
}

const schedule = ['schedule', 'add', 'nightly', '--cron', '0 3 1 1 *', '--from', 'expired', '--max-deletes', '9'];

describe('with --server, a list of a resource that the server defines in another way', () => {
  test.each<[name: string, args: (list: string) => string[]]>([
    ['run --detach', (list) => ['run', list, '--resource', 'dashboards', '--detach', '--yes']],
    ['plan', (list) => ['plan', list, '--resource', 'dashboards']],
    ['schedule add', () => [...schedule, '--resource', 'dashboards']],
    ['schedule add with a column', () => [...schedule, '--resource-column', 'kind']],
  ])('is refused by %s, which makes nothing, and accepted where both are the same', async (_, args) => {
    const { harness, list, send, here, kept } = await openServer();
    const refused = await send('other', args(list));
    expect([refused.code, refused.stderr]).toEqual([4, expect.stringContaining(words)]);
    expect(refused.stderr).toContain('nothing was sent');
    expect([await kept(), harness.sandbox.seen]).toEqual([[], []]);
    expect(await here(args(list))).toMatchObject({ code: 0 });
  });

  test('is refused where the server does not define it at all', async () => {
    const { list, send, kept } = await openServer(null);
    const refused = await send('same', ['run', list, '--resource', 'dashboards', '--detach', '--yes']);
    expect([refused.code, refused.stderr]).toEqual([
      4,
      expect.stringContaining('the resource dashboards is not defined at the server'),
    ]);
    expect(await kept()).toEqual([]);
  });
});

describe('a server that defines a resource of a run in another way', () => {
  test.each<[name: string, args: (run: string) => string[]]>([
    ['resume', (run) => ['resume', run]],
    ['retry', (run) => ['retry', run, '--detach', '--yes']],
  ])('refuses to %s it, whoever asks', async (name, args) => {
    const { harness, list, send, direct } = await openServer(other);
    const made = await direct('same', ['run', list, '--resource', 'dashboards', '--detach', '--yes']);
    expect(made.code, made.stderr).toBe(0);
    const { id } = await harness.onlyRun();
    const before = await direct('same', name === 'retry' ? ['cancel', id, '--yes'] : ['pause', id]);
    expect(before.code, before.stderr).toBe(0);
    const refused = await send('same', args(id));
    expect([refused.code, refused.stderr]).toEqual([
      4,
      expect.stringContaining('"absent" of the resource dashboards is [404] here instead of [404,410]'),
    ]);
    expect([(await harness.runs()).length, harness.sandbox.seen]).toEqual([1, []]);
    const through = await direct('same', args(id));
    expect(through.code, through.stderr).toBe(0);
  });
});
