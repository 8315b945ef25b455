import { chmodSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { Redis, type RedisOptions } from 'ioredis';
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import type { PrivatePlace } from '../../../src/redis/address.ts';
import { containerServer } from '../../../src/redis/private/container.ts';
import { openPrivateRedis } from '../../../src/redis/private/open.ts';
import { privatePlace } from '../../../src/redis/private/place.ts';
import { serverOnPath, serverPid } from '../../../src/redis/private/server-process.ts';
import { leavePrivateRedis, redisStatus, stopPrivateRedis } from '../../../src/redis/private/stop.ts';
import { unpackedServer } from '../../../src/redis/private/unpack.ts';
import { until } from '../../support/processes.ts';
import { makeStateDir, removeStateDir } from '../../support/redis.ts';
import { startRedisProcess } from '../../support/redis-process.ts';

const processes = [serverOnPath, unpackedServer];
let stateDir: string;
let place: PrivatePlace;
let tasks: (() => Promise<void>)[];
const atEnd = (task: () => Promise<void>) => void tasks.push(task);
const { PATH } = process.env;

beforeEach(() => {
  stateDir = makeStateDir();
  place = privatePlace(stateDir);
  tasks = [];
  mkdirSync(place.folder);
});
afterEach(async () => {
  process.env.PATH = PATH;
  for (const task of tasks) await task(); // the other server goes first: ours can't be told from it otherwise
  rmSync(place.containerFile, { force: true }); // there never was one
  await removeStateDir(stateDir);
});

const open = (env = process.env, ways = processes) => openPrivateRedis(stateDir, env, () => {}, ways);

/** Whether the other server still answers with what it had, and nobody has written to it. */
async function isUntouched(options: RedisOptions): Promise<boolean> {
  const redis = new Redis({ ...options, retryStrategy: () => null, replyMapping: 'legacy' });
  redis.on('error', () => {}); // it may have been stopped
  try {
    return (await redis.dbsize()) === 0;
  } catch {
    return false;
  } finally {
    redis.disconnect();
  }
}

async function setPassword(options: RedisOptions, password: string): Promise<void> {
  const redis = new Redis({ ...options, replyMapping: 'legacy' });
  await redis.config('SET', 'requirepass', password);
  redis.disconnect();
}

/** Somebody else's Redis, at a path or a port. */
async function startAnother(...args: string[]) {
  const { port } = await startRedisProcess(atEnd, { args: () => args });
  return { host: '127.0.0.1', port };
}

describe('where the container of a folder is gone and its port is somebody else’s', () => {
  const password = 'canary-pa55word';

  /** What a folder remembers of a container that has stopped since, on a machine whose engine knows it no more. */
  function rememberContainer(port: number): NodeJS.ProcessEnv {
    writeFileSync(join(place.folder, 'identity'), 'expunge-0123456789abcdef');
    writeFileSync(place.containerFile, JSON.stringify({ engine: 'docker', name: 'expunge-gone', port, password }));
    writeFileSync(join(stateDir, 'docker'), '#!/bin/sh\nexit 1\n');
    chmodSync(join(stateDir, 'docker'), 0o700);
    return { PATH: stateDir };
  }

  test('does not send it the password', async () => {
    let received = '';
    const recorder = createServer((socket) =>
      socket
        .on('data', (bytes) => {
          received += bytes;
          socket.write('+OK\r\n');
        })
        .on('error', () => {}),
    ).listen(0, '127.0.0.1');
    onTestFinished(() => void recorder.close());
    await until('it listens', () => recorder.listening);
    const { port } = recorder.address() as { port: number };
    const opened = await open(rememberContainer(port), [containerServer]).catch((error) => error);
    opened.stay?.presence.disconnect();
    expect(received).toBe('');
    expect(opened).toMatchObject({ code: 'UNREACHABLE' });
  });

  test('does not stop it', async () => {
    const another = await startAnother();
    rememberContainer(another.port);
    process.env.PATH = stateDir;
    writeFileSync(join(stateDir, 'docker'), '#!/bin/sh\n[ $1 = container ] && [ ! -e $0.asked ] && : > $0.asked\n'); // knows one of that name, once
    expect(await stopPrivateRedis(stateDir)).toBe('stopped');
    expect(await isUntouched(another)).toBe(true);
  });
});

describe('where another server listens on the socket of a folder', () => {
  test.each(['', 'theirs'])('it is neither used nor stopped, with the password “%s”', async (password) => {
    const another = await startAnother('--unixsocket', place.socket);
    const theirs = { ...another, ...(password ? { password } : {}) };
    if (password) await setPassword(another, password);
    const refusal = { code: 'UNREACHABLE', message: expect.stringContaining(`another server answers at`) };
    await expect(open()).rejects.toMatchObject(refusal);
    await expect(stopPrivateRedis(stateDir)).rejects.toMatchObject(refusal);
    await expect(redisStatus(stateDir)).rejects.toMatchObject(refusal);
    expect(await isUntouched(theirs)).toBe(true);
    expect(await isUntouched({ ...theirs, path: place.socket })).toBe(true); // nobody has taken its socket
  });

  test('the last client to leave does not stop it', async () => {
    const address = await open();
    process.kill(serverPid(place)!, 'SIGKILL');
    await until('the server has ended', () => serverPid(place) === null);
    rmSync(place.socket);
    const another = await startAnother('--unixsocket', place.socket);
    expect(await leavePrivateRedis(address, async () => true)).toBe('left');
    expect(await isUntouched(another)).toBe(true);
  });
});

test('a server that was flushed is still known', async () => {
  const { stay } = await open();
  await stay!.presence.flushall();
  const { stay: again } = await open();
  for (const presence of [stay!.presence, again!.presence]) presence.disconnect();
  expect(await stopPrivateRedis(stateDir)).toBe('stopped');
  expect(readFileSync(place.logFile, 'utf8').match(/ready to accept connections/gi)).toHaveLength(1);
});
