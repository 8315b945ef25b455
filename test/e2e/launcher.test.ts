import { mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, test } from 'vitest';
import { bin, type Running, startNode, startProgram, until } from '../support/processes.ts';

const launcher = fileURLToPath(new URL('../../expunge', import.meta.url));
/** Workers that wait for a Redis which is not there. The PATH is that of a machine without Node. */
const env = {
  PATH: '/usr/bin:/bin',
  REDIS_URL: 'redis://127.0.0.1:1',
  EXPUNGE_BASE_URL: 'http://127.0.0.1:9',
  EXPUNGE_TOKEN: 'token',
};

/** The processes that have said by now that they wait for Redis. */
function waiting({ stderr }: Running): number[] {
  const lines = stderr.split('\n').filter((line) => line.includes('"waiting for Redis"'));
  return lines.map((line) => JSON.parse(line).pid);
}

describe.concurrent('the command of a clone', () => {
  test('works by a link from any folder without a Node, and becomes the process that is told to stop', async ({
    expect,
    onTestFinished,
  }) => {
    const folder = mkdtempSync(join(tmpdir(), 'expunge-launcher-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    symlinkSync(launcher, join(folder, 'expunge'));
    const worker = startProgram('./expunge', ['worker'], env, folder);
    onTestFinished(() => killAll(worker));
    await until('it waits for Redis', () => waiting(worker).length === 1);
    expect(waiting(worker)).toEqual([worker.pid]);
    worker.signal('SIGTERM');
    expect(await worker.ended).toEqual({ code: 0, signal: null });
  });

  test('ends, and its workers do, when npx is told to stop: the shell between them dies and tells nobody', async ({
    expect,
    onTestFinished,
  }) => {
    const started = ['-c', '"$@"; true', 'sh', process.execPath, bin, 'worker', '--workers', '2'];
    const shell = startProgram('/bin/sh', started, { ...env, npm_execpath: '/usr/lib/npm-cli.js' });
    onTestFinished(() => killAll(shell));
    await until('both wait for Redis', () => new Set(waiting(shell)).size === 2);
    shell.signal('SIGTERM');
    await shell.ended; // of all that hold its stderr
    expect(shell.stderr.match(/"stopped"/g)).toHaveLength(2);
  });
});

test('the first process of a container loses no SIGTERM that comes while the command is still being loaded', async ({
  expect,
}) => {
  // It is none here, but takes itself for one. Another process would be killed by it; the first of a container would never hear of it.
  const pretend = `data:text/javascript,import { registerHooks } from 'node:module';
    const { pid } = process;
    Object.defineProperty(process, 'pid', { value: 1 });
    const load = (url, context, next) => {
      if (url.endsWith('/cli.js')) process.kill(pid, 'SIGTERM');
      return next(url, context);
    };
    registerHooks({ load });`;
  const worker = startNode(['--import', pretend.replaceAll('\n', ''), bin, 'worker'], env);
  const { code, signal } = await worker.ended;
  expect([0, 143]).toContain(code);
  expect(signal).toBeNull();
});

function killAll({ pid }: Running): void {
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // They have ended, as they should.
  }
}
