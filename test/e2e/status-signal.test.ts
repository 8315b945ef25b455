import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { openHarness } from '../support/harness.ts';
import { annotations, makeIds } from '../support/ids.ts';
import { bin, type Running, startNode, startProgram, until } from '../support/processes.ts';

const launcher = fileURLToPath(new URL('../../expunge', import.meta.url));
/** Workers that wait for a Redis which is not there. */
const waitingEnv = {
  PATH: process.env.PATH,
  REDIS_URL: 'redis://127.0.0.1:1',
  EXPUNGE_BASE_URL: 'http://127.0.0.1:9',
  EXPUNGE_TOKEN: 'token',
};

/** Where the debugger of a process would listen: nobody else uses this port. */
function debugPort(number: number): { port: number; env: NodeJS.ProcessEnv } {
  const port = 20_000 + ((process.pid * 16 + number) % 10_000);
  return { port, env: { ...waitingEnv, NODE_OPTIONS: `--inspect-port=127.0.0.1:${port}` } };
}

function isOpen(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false));
    socket.once('connect', () => socket.destroy());
  });
}

const isWaiting = ({ stderr }: Running) => stderr.includes('"waiting for Redis"');

type Line = { pid: number; msg: string };

function answers({ stderr }: Running): Line[] {
  const lines = stderr.split('\n').filter((line) => line.startsWith('{') && line.endsWith('}'));
  return lines.map((line): Line => JSON.parse(line)).filter(({ msg }) => msg === 'status');
}

describe.concurrent('SIGUSR1 asks a process what it does', () => {
  const ofCheckout = (env: NodeJS.ProcessEnv) => startProgram(launcher, ['worker'], env);
  const ofPackage = (env: NodeJS.ProcessEnv) => startNode([bin, 'worker'], env);

  test.each([
    ['the launcher', 100, ofCheckout],
    ['the program of the package and of the image', 25, ofPackage],
    ['the program of the package and of the image', 60, ofPackage],
    ['the program of the package and of the image', 150, ofPackage],
  ])('%s opens no debugger if the signal comes after %d ms, and goes on', async (_, afterMs, start) => {
    const { port, env } = debugPort(Math.floor(afterMs / 25));
    const worker = start(env);
    await sleep(afterMs);
    worker.signal('SIGUSR1');
    await until('it waits for Redis', () => isWaiting(worker) || worker.isOver);
    expect(worker.isOver).toBe(worker.stderr === ''); // the system ended it before there was a Node
    await until('no debugger is open', async () => !(await isOpen(port)));
    worker.signal('SIGUSR1');
    await until('it answers', () => answers(worker).length > 0 || worker.isOver);
    expect(await isOpen(port)).toBe(false);
    worker.signal('SIGKILL');
    await worker.ended;
  });

  test('each of the workers of a supervisor answers, and none ends', async ({ onTestFinished }) => {
    const { port, env } = debugPort(8);
    const supervisor = startProgram(process.execPath, [bin, 'worker', '--workers', '2'], env);
    onTestFinished(() => void process.kill(-supervisor.pid, 'SIGKILL'));
    const waiting = () => supervisor.stderr.match(/"waiting for Redis"/g)?.length ?? 0;
    await until('both wait for Redis', () => waiting() >= 2);
    process.kill(-supervisor.pid, 'SIGUSR1');
    await until('all three answer', () => new Set(answers(supervisor).map(({ pid }) => pid)).size === 3);
    expect(supervisor.stderr).not.toMatch(/exited unexpectedly|Debugger/);
    expect(await isOpen(port)).toBe(false);
  });

  test('a run answers with the line of its panel, and it ends well', async ({ onTestFinished }) => {
    const ids = makeIds('u', 60);
    const harness = await openHarness(onTestFinished, { objects: annotations(ids) });
    const { port, env } = debugPort(9);
    const line = ['run', harness.list(ids), '--resource', 'annotations', '--yes', '--rate', '20/s'];
    const run = harness.own(startProgram(process.execPath, [bin, ...line], { ...env, ...harness.env }));
    await harness.runIs('deleting', ({ settled }) => settled > 5);
    process.kill(-run.pid, 'SIGUSR1');
    await until('it answers', () => / of 60 .*deleted/.test(run.stderr));
    expect(await isOpen(port)).toBe(false);
    expect((await run.ended).code).toBe(0);
    expect(harness.sandbox.confirmed.size).toBe(60);
  });

  test('any other command says its name', async ({ onTestFinished }) => {
    const { env } = debugPort(10);
    const sandbox = startNode([bin, 'sandbox', '--port', '0'], env);
    onTestFinished(() => sandbox.signal('SIGKILL'));
    await until('it listens', () => sandbox.stdout.includes('http://'));
    sandbox.signal('SIGUSR1');
    await until('it answers', () => sandbox.stderr.includes('\n'));
    expect(sandbox.stderr).toMatch(/^expunge sandbox has been running for \d+ s\n$/);
  });
});
