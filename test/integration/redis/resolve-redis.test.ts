import { chmodSync, existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { inspect } from 'node:util';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { containerServer } from '../../../src/redis/private/container.ts';
import { openPrivateRedis, resolveRedis, startMethods } from '../../../src/redis/private/open.ts';
import type { StartMethod } from '../../../src/redis/private/place.ts';
import { serverOnPath } from '../../../src/redis/private/server-process.ts';
import { unpackedServer } from '../../../src/redis/private/unpack.ts';
import { makeStateDir, removeStateDir } from '../../support/redis.ts';

const canary = 'canary-pa55word';
let stateDir: string;
let lines: string[];
const say = (line: string) => lines.push(line);

beforeEach(() => {
  stateDir = makeStateDir();
  lines = [];
});
afterEach(() => removeStateDir(stateDir));

const resolve = (url: string, allowPlaintextRedis = false) =>
  resolveRedis({ stateDir, allowPlaintextRedis }, { REDIS_URL: url }, say);

test('takes REDIS_URL where it is set, says so without the password and starts nothing', async () => {
  const address = await resolve(`redis://me:${canary}@127.0.0.1:1/3`);
  expect(lines).toEqual(['Redis: redis://127.0.0.1:1/3 (REDIS_URL)']);
  expect(address).toMatchObject({ kind: 'url', options: { host: '127.0.0.1', port: 1, db: 3, password: canary } });
  expect(existsSync(join(stateDir, 'redis'))).toBe(false);
});

test.each([
  ['redis://localhost', { host: 'localhost', port: 6379, db: 0 }],
  ['redis://[::1]:7000', { host: '::1', port: 7000, db: 0 }],
  ['rediss://cache.example:6380/2', { host: 'cache.example', port: 6380, db: 2, tls: {} }],
  ['rediss://me:p%40ss@cache.example', { host: 'cache.example', username: 'me', password: 'p@ss' }],
  ['unix:///run/my%20redis.sock?db=4', { path: '/run/my redis.sock', db: 4 }],
])('understands %s', async (url, options) => {
  expect((await resolve(url)).options).toMatchObject(options);
});

test.each([
  `http://:${canary}@localhost`,
  `redis//${canary}`,
  `unix://me:${canary}@/run/redis.sock`,
  `redis://:${canary}@/2`,
  `redis://localhost/${canary}`,
  `redis://localhost?${canary}=1`,
  `redis://:${canary}%@localhost`,
  `redis://:${canary}@cache.example:6379`,
])('refuses REDIS_URL without repeating it (%#)', async (url) => {
  const error = await resolve(url).catch((refused: unknown) => refused);
  expect(error).toMatchObject({ code: 'USAGE', message: expect.stringContaining('REDIS_URL') });
  expect(inspect(error, { depth: 9 })).not.toContain(canary);
  expect(lines).toEqual([]);
});

test('accepts another machine without TLS only when told so', async () => {
  await expect(resolve('redis://cache.example')).rejects.toMatchObject({
    code: 'USAGE',
    next: expect.stringContaining('EXPUNGE_ALLOW_PLAINTEXT_REDIS'),
  });
  expect((await resolve('redis://cache.example', true)).label).toBe('redis://cache.example:6379');
});

test('tries an installed server, then a container engine, then packages', () => {
  expect(startMethods).toEqual([serverOnPath, containerServer, unpackedServer]);
});

test('names why every way failed and what to do when no Redis is available', async () => {
  const closed = (why: string): StartMethod => ({ store: 'folder', start: async () => ({ closed: why }) });
  const opening = openPrivateRedis(stateDir, {}, say, [closed('first reason'), closed('second reason')]);
  await expect(opening).rejects.toMatchObject({
    code: 'UNREACHABLE',
    message: expect.stringMatching(/first reason; second reason/),
    next: expect.stringContaining('set REDIS_URL'),
  });
});

test('passes over a server on PATH that is too old', async () => {
  makeProgram('redis-server', 'echo "Redis server v=6.0.16 sha=00000000:0 malloc=libc bits=64 build=0"');
  const opening = openPrivateRedis(stateDir, { PATH: stateDir }, say, [serverOnPath]);
  await expect(opening).rejects.toThrow(/redis-server is 6\.0\.16, older than 6\.2/);
});

test('passes over a container engine that does not answer', async () => {
  makeProgram('docker', 'exec sleep 60');
  const opening = openPrivateRedis(stateDir, { PATH: `${stateDir}:/usr/bin:/bin` }, say, [containerServerOf(stateDir)]);
  await expect(opening).rejects.toThrow(/docker or podman does not answer/);
});

/** The route as on a machine whose only engine is the program in this folder. */
function containerServerOf(folder: string): StartMethod {
  return { ...containerServer, start: (around) => containerServer.start({ ...around, env: { PATH: folder } }) };
}

function makeProgram(name: string, script: string): void {
  writeFileSync(join(stateDir, name), `#!/bin/sh\nPATH=/usr/bin:/bin\n${script}\n`);
  chmodSync(join(stateDir, name), 0o700);
}
