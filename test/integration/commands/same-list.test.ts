import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'vitest';
import { exitCodes } from '../../../src/errors.ts';
import { openLedger } from '../../../src/ledger/ledger.ts';
import { ownQueueName } from '../../../src/queue/queues.ts';
import { keys } from '../../../src/redis/keys.ts';
import { type AtEnd, type Harness, type OwnRedis, openHarness } from '../../support/harness.ts';
import { annotations, makeIds } from '../../support/ids.ts';
import { makeLogin } from '../../support/login.ts';
import { openOwnRedis } from '../../support/own-redis.ts';
import { type Running, until } from '../../support/processes.ts';

const ids = makeIds('l', 80);
const objects = annotations(ids);
const few = { EXPUNGE_MAX_CONCURRENCY: '4' };

/** A list of which a command has deleted some; it goes on with 4 requests a second, until `faster`. */
async function openMidRun(atEnd: AtEnd, isProcess = false, redis?: OwnRedis) {
  const harness = await openHarness(atEnd, { objects, latencyMs: 500 }, redis);
  const args = ['run', harness.list(ids), '--resource', 'annotations', '--yes'];
  const again = (more: string[] = []) => harness.start([...args, ...more], few);
  const first = isProcess ? harness.spawn(args, few) : again();
  await until('the run is in the middle', () => harness.arrivals.length > 4);
  return { harness, first, again };
}

/** A list whose command was killed before it deleted anything. */
async function openAbandoned(atEnd: AtEnd) {
  const harness = await openHarness(atEnd, { objects });
  const { redis, target } = harness;
  const args = ['run', harness.list(ids), '--resource', 'annotations', '--yes'];
  await harness.expunge([...args, '--detach']);
  const { id } = await harness.onlyRun();
  await redis.hset(keys.run(id), 'detached', 0);
  await redis.srem(keys.targetRuns(target.fp), id);
  return { harness, again: (more: string[] = []) => harness.start([...args, ...more], few) };
}

/** Of consumers of the run's own queue, by the names that BullMQ gives them. */
async function countConnections({ redis }: Pick<Harness, 'redis'>, run: string): Promise<number> {
  const name = Buffer.from(ownQueueName(run)).toString('base64');
  return String(await redis.call('CLIENT', 'LIST')).split(name).length - 1;
}

async function ended(running: Running) {
  const { code } = await running.ended;
  return { code, stdout: running.stdout, stderr: running.stderr };
}

/** A Redis whose login may not see who is connected, and the connection of its administrator. */
async function openBlindRedis(atEnd: AtEnd) {
  const own = await openOwnRedis(atEnd);
  const admin = own.connect();
  const folder = mkdtempSync(join(tmpdir(), 'expunge-login-'));
  atEnd(async () => rmSync(folder, { recursive: true }));
  return { admin, login: await makeLogin([admin], folder, own.url, '-client|list') };
}

function faster(harness: Harness): void {
  harness.sandbox.latencyMs = 0;
}

describe.concurrent('a list that another command deletes', () => {
  test('is left to it by Ctrl-C in a second terminal, which pauses nothing', async ({ expect, onTestFinished }) => {
    const { harness, first, again } = await openMidRun(onTestFinished);
    const second = again();
    const { id } = await harness.onlyRun();
    await until('the second one works, too', async () => (await countConnections(harness, id)) > 1);
    expect(second.stderr).toContain('another command is deleting it');
    second.signal('SIGINT');
    const { code, stderr } = await ended(second);
    expect([code, stderr]).toEqual([
      130,
      expect.stringMatching(/Left run \S+ to the other command that is deleting it/),
    ]);
    expect((await harness.onlyRun()).state).toBe('running');
    faster(harness);
    expect((await ended(first)).code).toBe(0);
  });

  test('is not left to workers by --detach, and that is said', async ({ expect, onTestFinished }) => {
    const { harness, first, again } = await openMidRun(onTestFinished);
    const { code, stderr } = await ended(again(['--detach']));
    const { id, detached } = await harness.onlyRun();
    expect([code, detached]).toEqual([2, false]);
    expect(stderr).toContain(`run ${id} of the same list is being deleted by another command in the foreground`);
    expect(stderr).toContain(`expunge status ${id} --watch`);
    const taken = await ended(harness.start(['resume', id, '--detach']));
    expect([taken.code, taken.stderr]).toEqual([2, expect.stringContaining('a command is deleting it')]);
    faster(harness);
    expect((await ended(first)).code).toBe(0);
  });
});

describe.concurrent('a list that two commands delete, where Redis does not say so', () => {
  test('is gone on with by the second one when the first is interrupted, and no id is sent twice', async ({
    expect,
    onTestFinished,
  }) => {
    const { admin, login } = await openBlindRedis(onTestFinished);
    const { harness, first, again } = await openMidRun(onTestFinished, false, login);
    const second = again();
    const { id } = await harness.onlyRun();
    await until('the second one works, too', async () => (await countConnections({ redis: admin }, id)) > 1);
    first.signal('SIGINT');
    expect((await ended(first)).code).toBe(130);
    faster(harness);
    expect(await ended(second)).toMatchObject({ code: 0 });
    const run = await harness.onlyRun();
    expect(run).toMatchObject({ id, counts: { deleted: ids.length }, attempts: ids.length });
    expect(harness.arrivals).toHaveLength(ids.length);
    const audit = await ended(harness.start(['status', id, '--audit']));
    expect(audit.stdout).toMatch(/another command that was deleting it was interrupted/);
  });
});

describe.concurrent('a run that is cancelled while a process that holds its ids is dead', () => {
  test('ends in the command that still follows it', async ({ expect, onTestFinished }) => {
    const { harness, first, again } = await openMidRun(onTestFinished, true);
    const second = again();
    const { id } = await harness.onlyRun();
    await until('the second one works, too', async () => (await countConnections(harness, id)) > 1);
    first.signal('SIGKILL');
    await first.ended;
    const cancel = { action: 'cancel', reason: '', by: 'operator', who: 'ana' } as const;
    await openLedger(harness.redis).steer(id, Date.now(), cancel);
    await harness.redis.hincrby(keys.run(id), 'changedAt', -60_000); // since then nobody can be waiting for an answer any more
    const { code, stderr } = await ended(second);
    expect([code, stderr]).toEqual([exitCodes.INCOMPLETE.exit, expect.stringContaining(`Run ${id} cancelled`)]);
  });
});

describe.concurrent('a run whose command was killed', () => {
  test('is shown as abandoned, with the command that goes on, and workers can take it over', async ({
    expect,
    onTestFinished,
  }) => {
    const { harness, again } = await openAbandoned(onTestFinished);
    const { id } = await harness.onlyRun();
    const status = await ended(harness.start(['status', id]));
    expect(status.stdout).toContain('The command that deleted it has ended, and no other process has taken over.');
    expect(status.stdout).not.toContain('Deleting');
    expect(status.stdout).toMatch(/Resume with: cd \S+ && expunge run \S+list\.txt --resource annotations --yes/);
    expect(status.stdout).toContain(`or detach it: expunge resume ${id} --detach`);
    const json = await ended(harness.start(['status', id, '--json']));
    expect(JSON.parse(json.stdout)).toMatchObject({
      reason: expect.stringContaining('command that deleted it has ended'),
    });

    const resumed = await ended(harness.start(['resume', id]));
    expect([resumed.code, resumed.stderr]).toEqual([0, expect.stringContaining('no other process has taken over')]);
    expect(resumed.stderr).not.toContain('its command continues');

    const detach = await ended(again(['--detach']));
    expect([detach.code, detach.stderr]).toEqual([2, expect.stringContaining(`expunge resume ${id} --detach`)]);

    const taken = await ended(harness.start(['resume', id, '--detach']));
    expect([taken.code, taken.stderr]).toEqual([0, expect.stringContaining('no worker of this target is alive')]);
    const attended = await ended(again());
    expect([attended.code, attended.stderr]).toEqual([2, expect.stringContaining('belongs to the workers (--detach)')]);
    await harness.worker();
    await harness.runIs('completed', ({ state }) => state === 'completed');
    expect(harness.sandbox.remaining()).toBe(0);
  });

  test('is named by the plan of an edited list of the same file', async ({ expect, onTestFinished }) => {
    const { harness, again } = await openAbandoned(onTestFinished);
    const { id } = await harness.onlyRun();
    harness.list([...ids, 'l-added']);
    const { stderr } = await ended(again(['--expect-absent']));
    expect(stderr).toMatch(new RegExp(`Overlaps +run ${id} of \\S+list\\.txt has \\d+ ids left \\(running\\)`));
    expect(stderr).toContain('both would run');
  });
});

describe.concurrent('a trial', () => {
  test('in which none of the ids is there ends with 3 and says so, unless --expect-absent', async ({
    expect,
    onTestFinished,
  }) => {
    const harness = await openHarness(onTestFinished, { objects });
    const env = {
      EXPUNGE_BASE_URL: `${harness.sandbox.url}/v2`,
      EXPUNGE_RETRY_DELAYS: '1ms,1ms,1ms,1ms,1ms',
    };
    const trial = ['run', 'ids.csv', '--resource', 'annotations', '--column', 'key', '--limit', '4', '--yes'];
    const file = harness.file('ids.csv', `key\n${ids.join('\n')}\n`);
    const run = (...more: string[]) =>
      ended(harness.start([...trial.map((arg) => (arg === 'ids.csv' ? file : arg)), ...more], env));
    const wrong = await run('--json');
    expect(wrong.code).toBe(3);
    expect(JSON.parse(wrong.stdout.trimEnd().split('\n').at(-1)!)).toMatchObject({ unknown: 4, exit: 3 });
    expect(wrong.stderr).toMatch(/Nothing shows that any of the 4 ids was there/);
    expect(wrong.stderr).toMatch(/Ids +l-000000, l-000001, l-000002 \(column key\)/);
    expect(wrong.stderr).toMatch(/Warning +the address ends in \/v2/);
    const again = await run('--expect-absent');
    expect(again.code).toBe(0);
    expect(again.stderr).toMatch(/Previous +run \S+ of the same list completed on .*: 4 unknown/);
  });
});
