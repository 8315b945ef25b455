import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { noteTarget } from '../../../src/ledger/known-targets.ts';
import type { Role } from '../../../src/model/role.ts';
import { sharedQueueName } from '../../../src/queue/queues.ts';
import { keys } from '../../../src/redis/keys.ts';
import { readSchedule } from '../../../src/schedule/schedule-store.ts';
import { openApi, overServer } from '../../support/api.ts';
import { annotations } from '../../support/ids.ts';
import { relayRequests } from '../../support/relay.ts';
import { storeSchedule } from '../../support/schedules.ts';

const definition = {
  cron: '0 3 * * *',
  heartbeat: 'https://hc.example.com/ping/secret-path',
  settings: { resource: 'annotations', maxDeletes: '100' },
};

/** A server that has a source of two ids, and two schedules of its target. */
async function openWithSchedules(args = ['dashboard', '--port', '0']) {
  const folder = mkdtempSync(join(tmpdir(), 'expunge-sources-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const config = join(folder, 'config.json');
  writeFileSync(config, JSON.stringify({ sources: { expired: { command: ['printf', 'v-1\\nv-2\\n'] } } }));
  const api = await openApi(onTestFinished, {
    objects: annotations(['v-1', 'v-2', 'v-3']),
    env: { EXPUNGE_CONFIG: config },
    args,
  });
  const { harness, redis } = api;
  await noteTarget(redis, harness.target, Date.now());
  for (const name of ['one', 'other']) await storeSchedule(harness, name, definition, Date.now());
  const envOf = (role: Role) => overServer(api, role);
  return { ...api, envOf };
}

const withoutPlace = (text: string) => text.replace(/^(Redis|Server): .*\n/, '');
const facts = (text: string) => text.replaceAll('other', 'one').replaceAll(/"(changed_at|at)":"[^"]*"/g, '');

describe('schedules with --server', () => {
  test('are added and replaced as beside Redis, whatever is said of them', async () => {
    const { harness, redis, envOf } = await openWithSchedules();
    const { fp } = harness.target;
    const env = await envOf('operate');
    const add = async (...line: string[]) => {
      const words = [line, ...['--from', 'expired', '--max-deletes', '50']].flat();
      const direct = await harness.expunge(['schedule', 'add', 'here', ...words], {
        env: { EXPUNGE_USER: 'test-operate' },
      });
      const over = await harness.expunge(['schedule', 'add', 'there', ...words], { env });
      // Over a server nothing can be tried.
      const alike = (text: string) =>
        facts(withoutPlace(text.replaceAll('there', 'here'))).replace(/ {2}Try it .*\n/, '');
      expect([over.code, alike(over.stdout), alike(over.stderr)]).toEqual([
        direct.code,
        alike(direct.stdout),
        alike(direct.stderr),
      ]);
      const stored = async (name: string) => (await redis.hget(keys.schedule(fp, name), 'definition')) ?? '';
      expect(await stored('there')).toBe(await stored('here'));
      return over;
    };
    const daily = ['--cron', '0 3 * * *', '--resource', 'views'];
    expect((await add(...daily, '--json', '--reason', 'policy')).code).toBe(0);
    expect((await add(...daily, '--reason', 'policy')).stderr).toContain('exists already, with these settings');
    expect((await add(...daily, '--rate', '5/s')).code).toBe(2);
    const list = ['--format', 'csv', '--no-header', '--delimiter', 'tab', '--limit', '40', '--allow-id-chars', '/'];
    const counts = ['--allow-placeholders', '--expect-rejected', '--expect-count', '40±5%', '--keep', '60d'];
    const brakes = ['--canary', '1,10', '--max-failures', '5', '--on-status', '409=absent', '--rate', '5/s'];
    const occurrences = ['--missed', 'latest', '--max-delay', '2d', '--max-growth', '2.5'];
    const rest = ['--at-most', '10', '--retry-failed', '--allow-empty', '--expect-absent'];
    const all = [
      ...list,
      ...counts,
      ...brakes,
      ...occurrences,
      ...rest,
      ...['--grace', '15min', '--max-duration', '2h', '--stop-at', '06:00'],
      '--window',
      'Mon-Fri 22:00-06:00 Europe/Berlin',
    ];
    const changed = await add(...daily, ...all, '--tz', 'Europe/Berlin', '--replace', '--reason', 'policy');
    expect(changed.stderr).toContain('--at-most none → 10');
    expect(changed.stderr).toContain('It sends nothing of a run for its first 15min');
    expect(changed.stderr).toContain('It pauses each run at 06:00 Europe/Berlin, or after 2 h of deleting');
    await add(...daily, ...all, '--max-delay', '3605s', '--replace');
    expect((await add(...daily, ...all, '--max-delay', '3605s')).stderr).toContain(
      'exists already, with these settings',
    );
    const columns = ['--cron', '0 4 * * *', '--resource-column', 'kind', '--column', 'id'];
    const back = await add(...columns, '--replace', '--reason', 'policy', '--json');
    expect(JSON.parse(back.stdout)).toMatchObject({ at_most: null, settings: { resourceColumn: 'kind' } });
  });

  test('keep their heartbeat and their protected ids where they are replaced, and no reason of before', async () => {
    const { harness, redis, envOf } = await openWithSchedules();
    const { fp } = harness.target;
    const words = ['--cron', '0 3 * * *', '--from', 'expired', '--resource', 'views', '--max-deletes', '5'];
    const secrets = ['--heartbeat', 'http://monitor.local/ping', '--allow-http', 'monitor.local'];
    const protect = ['--protect', harness.list(['v-9']), '--reason', 'policy'];
    const here = await harness.expunge(['schedule', 'add', 'new', ...words, ...secrets, ...protect]);
    expect(here.code, here.stderr).toBe(0);
    const env = await envOf('operate');
    const done = await harness.expunge(['schedule', 'add', 'new', ...words, '--max-delay', '1001ms', '--replace'], {
      env,
    });
    expect(done.code, done.stderr).toBe(0);
    expect(done.stderr).toContain('--max-delay 10min → 1001ms · --reason policy → none');
    expect(await readSchedule(redis, fp, 'new')).toMatchObject({
      heartbeat: 'http://monitor.local/ping',
      protectedList: { ids: 1 },
      note: '',
      maxDelayMs: 1_001,
      settings: { resource: 'views', maxDeletes: '5', protect: expect.any(String) },
    });
  });

  test('say nothing that steers the terminal', async () => {
    const { harness, envOf } = await openWithSchedules();
    const env = await envOf('operate');
    const words = ['--cron', '0 3 * * *', '--from', 'expired', '--resource', 'views', '--max-deletes', '5'];
    const add = (...more: string[]) => harness.expunge(['schedule', 'add', 'new', ...words, ...more], { env });
    await add('--reason', 'a \u001b[2J\nSchedule new removed');
    const done = await add('--replace');
    expect(done.stderr).toContain('--reason a \\u001b[2J Schedule new removed → none');
    expect(done.stderr).not.toContain('\u001b');
  });

  test('are not added with what the server does not have', async () => {
    const { harness, redis, envOf } = await openWithSchedules();
    const env = await envOf('operate');
    const words = ['--cron', '0 3 * * *', '--from', 'expired', '--resource', 'views', '--max-deletes', '5'];
    for (const [more, said] of [
      [['--protect', harness.list(['v-1'])], 'do not have this file'],
      [['--heartbeat', 'https://hc.example.com/1'], 'takes no URLs'],
      [['--account', 'nobody'], 'knows no target'],
      [['--from', 'https://evil.example.com'], 'expected the name of a source'],
    ] as const) {
      const refused = await harness.expunge(['schedule', 'add', 'new', ...words, ...more], { env });
      expect(refused).toMatchObject({ code: 2, stderr: expect.stringContaining(said) });
    }
    expect(await readSchedule(redis, harness.target.fp, 'new')).toBeNull();
  });

  test('make a run of the source that the server has, for the reason that was given, which a worker deletes', async () => {
    const { harness, envOf, call } = await openWithSchedules(['worker', '--http', '0']);
    const action = ['schedule', 'run', 'one', '--reason', 'after the import', '--json'];
    const done = await harness.expunge(action, { env: await envOf('operate') });
    expect(done.code, done.stderr).toBe(0);
    const { run, ...result } = JSON.parse(done.stdout);
    expect(result).toMatchObject({ type: 'scheduled', schedule: 'one', outcome: 'started', rows: 2, ids: 2 });
    expect(done.stderr).toContain(`Schedule one: run ${run} of 2 ids is left to the workers.`);
    await harness.runIs('completed', ({ state }) => state === 'completed');
    const [submitted] = (await call('read', `/runs/${run}`)).body.audit;
    expect(submitted).toMatchObject({ action: 'submit', reason: 'after the import' });
    expect(harness.sandbox.remaining()).toBe(1);
  });

  test('say what run they made, though the request for it broke off and is repeated', async () => {
    const { harness, redis, url, envOf } = await openWithSchedules(['worker', '--http', '0']);
    await storeSchedule(harness, 'parts', { ...definition, atMost: 1 }, Date.now());
    const waiting = `${keys.queuePrefix(harness.target.fp)}:${sharedQueueName}:wait`;
    let actions = 0;
    const over = await relayRequests(onTestFinished, url, async ({ asked, answer, forward }) => {
      if (asked.url!.endsWith('/run')) await (++actions === 1 ? redis.set(waiting, 'no list') : redis.del(waiting));
      forward(answer);
    });
    const env = { ...(await envOf('operate')), EXPUNGE_SERVER: over };
    const done = await harness.expunge(['schedule', 'run', 'parts', '--json'], { env });
    expect(done.code, done.stderr).toBe(0);
    const { run, ...result } = JSON.parse(done.stdout);
    const counts = { rows: 1, ids: 1, retried: 0, carried_over: 1 };
    expect([actions, result]).toMatchObject([
      2,
      { type: 'scheduled', schedule: 'parts', outcome: 'started', ...counts },
    ]);
    expect(done.stderr).toContain(`Schedule parts: run ${run} of 1 id is left to the workers.`);
    expect(await harness.onlyRun()).toMatchObject({ id: run });
  });
});
