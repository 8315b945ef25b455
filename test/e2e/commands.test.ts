import { once } from 'node:events';
import { type AddressInfo, createServer, type Server } from 'node:net';
import { describe, test } from 'vitest';
import { commands } from '../../src/commands/line/commands.ts';
import { type AtEnd, type Harness, openHarness } from '../support/harness.ts';
import { annotations, makeIds } from '../support/ids.ts';
import { bin, runProgram, until } from '../support/processes.ts';

const ids = makeIds('e', 30);

/** A detached run of these ids, and how to start what is built as a user does. */
async function openRun(atEnd: AtEnd) {
  const harness = await openHarness(atEnd, { objects: annotations(ids) });
  const call = (...args: string[]) =>
    runProgram(process.execPath, [bin, ...args], { cwd: harness.folder, env: harness.env });
  harness.list(ids);
  const submitted = await call('run', 'list.txt', '--resource', 'annotations', '--yes', '--detach', '--json');
  return { harness, call, submitted };
}

/** The first of so many free ports in a row. */
async function freePorts(count: number): Promise<number> {
  const servers = Array.from({ length: count }, () => createServer());
  const portOf = (server: Server) => (server.address() as AddressInfo).port;
  try {
    for (const [n, server] of servers.entries()) {
      server.listen(n === 0 ? 0 : portOf(servers[0]!) + n, '127.0.0.1');
      await once(server, 'listening');
    }
    return portOf(servers[0]!);
  } catch {
    return freePorts(count);
  } finally {
    for (const server of servers) server.close();
  }
}

const isReady = (port: number) =>
  fetch(`http://127.0.0.1:${port}/readyz`).then(
    ({ ok }) => ok,
    () => false,
  );

describe.concurrent('the command as it is shipped', () => {
  test('takes a list through submit, actions, worker, status, report and removal', async ({
    expect,
    onTestFinished,
  }) => {
    const { harness, call, submitted } = await openRun(onTestFinished);
    expect([submitted.code, submitted.stderr]).toEqual([0, expect.stringMatching(/Stop it: .*bin\.js pause/)]);
    const { id } = await harness.onlyRun();
    for (const words of [
      ['pause', id],
      ['rate', id, '400/s'],
      ['resume', id],
      ['stop-all', '--reason', 'a test'],
      ['start-all'],
    ])
      expect(await call(...words), words.join(' ')).toMatchObject({ code: 0 });
    const worker = await harness.spawnWorker();
    await harness.runIs('completed', ({ state }) => state === 'completed');
    worker.signal('SIGTERM');
    expect(await worker.ended).toEqual({ code: 0, signal: null });
    for (const [args, words] of [
      [['status', id], 'Completed'],
      [['status'], 'rate: '],
      [['runs'], id],
      [['report', id], 'deleted'],
      [['report', id, '--only', 'deleted,http_409'], 'deleted'],
      [['explain', 'annotations', ids[0]!], 'The API confirmed the delete with 204.'],
      [['retry', id, '--json'], 'nothing_to_retry'],
      [['target', 'forget-rate'], ''],
      [['runs', 'remove', id, '--yes'], ''],
    ] as const) {
      const { code, stdout, stderr } = await call(...args);
      expect([code, stdout], `${args.join(' ')}: ${stderr}`).toEqual([0, expect.stringContaining(words)]);
    }
    expect(await harness.runs()).toEqual([]);
  });

  test('cancels, checks, shows its settings, and lists schedules', async ({ expect, onTestFinished }) => {
    const { harness, call } = await openRun(onTestFinished);
    const { id } = await harness.onlyRun();
    expect(await call('cancel', id, '--yes')).toMatchObject({ code: 0 });
    const retried = await call('retry', id, '--yes', '--json');
    expect([retried.code, retried.stdout]).toEqual([0, expect.stringContaining(`"retry_of":"${id}"`)]);
    expect((await call('check')).stdout).toMatch(/^ok {5}token/m);
    expect((await call('config', 'show')).stdout).toMatch(/^token +set +from EXPUNGE_TOKEN$/m);
    expect(await call('schedule', 'list')).toMatchObject({ code: 0 });
    expect((await call('redis', 'status')).code).toBe(0);
  });

  test('prints the help of each command', async ({ expect, onTestFinished }) => {
    const { call } = await openRun(onTestFinished);
    const { stdout } = await call('--help');
    for (const { name, hidden } of commands) if (!hidden) expect(stdout).toMatch(new RegExp(`^  ${name}\\b`, 'm'));
  });

  test('serves a sandbox until it is told to stop', async ({ expect, onTestFinished }) => {
    const harness: Harness = await openHarness(onTestFinished);
    const sandbox = harness.spawn(['sandbox', '--resource', 'annotations=3,views=0']);
    await until('it listens', () => /sandbox API +http/.test(sandbox.stdout));
    sandbox.signal('SIGINT');
    expect((await sandbox.ended).code).toBe(0);
    expect(sandbox.stdout).toContain('0 objects, 3 remain');
  });

  test('takes a port for each supervised worker', async ({ expect, onTestFinished }) => {
    const harness = await openHarness(onTestFinished);
    const port = await freePorts(2);
    const workers = harness.spawn(['worker', '--workers', '2', '--http', `${port}`]);
    for (const at of [port, port + 1]) await until(`there is a ready worker at ${at}`, () => isReady(at));
    workers.signal('SIGTERM');
    expect((await workers.ended).code).toBe(0);
  });
});
