import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
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

/** Fails if it is open at one of ten looks: Node opens it at once. */
async function staysClosed(port: number): Promise<void> {
  for (let looks = 0; looks < 10; looks++) {
    expect(await isOpen(port)).toBe(false);
    await sleep(20);
  }
}

const isWaiting = ({ stderr }: Running) => stderr.includes('"waiting for Redis"');

describe.concurrent('SIGUSR1 opens no debugger', () => {
  const ofCheckout = (env: NodeJS.ProcessEnv) => startProgram(launcher, ['worker'], env);
  const ofPackage = (env: NodeJS.ProcessEnv) => startNode([bin, 'worker'], env);

  test.each([
    ['the launcher', 100, ofCheckout],
    ['the program of the package and of the image', 25, ofPackage],
    ['the program of the package and of the image', 60, ofPackage],
    ['the program of the package and of the image', 150, ofPackage],
  ])('of %s after %d ms, and it goes on', async (_, afterMs, start) => {
    const { port, env } = debugPort(Math.floor(afterMs / 25));
    const worker = start(env);
    await sleep(afterMs);
    worker.signal('SIGUSR1');
    await until('it waits for Redis', () => isWaiting(worker) || worker.isOver);
    expect(worker.isOver).toBe(worker.stderr === ''); // the system ended it before there was a Node
    await until('no debugger is open', async () => !(await isOpen(port)));
    worker.signal('SIGUSR1');
    await staysClosed(port);
    worker.signal('SIGKILL');
    await worker.ended;
  });

  test('of the workers of a supervisor, and none ends', async ({ onTestFinished }) => {
    const { port, env } = debugPort(8);
    const supervisor = startProgram(process.execPath, [bin, 'worker', '--workers', '2'], env);
    onTestFinished(() => void process.kill(-supervisor.pid, 'SIGKILL'));
    const waiting = () => supervisor.stderr.match(/"waiting for Redis"/g)?.length ?? 0;
    await until('both wait for Redis', () => waiting() >= 2);
    process.kill(-supervisor.pid, 'SIGUSR1');
    await staysClosed(port);
    expect(supervisor.stderr).not.toMatch(/exited unexpectedly|Debugger/);
  });
});
