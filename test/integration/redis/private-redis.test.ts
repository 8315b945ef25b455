import { execFile } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import type { RedisAddress } from '../../../src/redis/address.ts';
import { connectLedger, ready } from '../../../src/redis/connect.ts';
import { openPrivateRedis, resolveRedis } from '../../../src/redis/private/open.ts';
import { privatePlace } from '../../../src/redis/private/place.ts';
import { serverOnPath, serverPid } from '../../../src/redis/private/server-process.ts';
import { leavePrivateRedis, redisStatus, stopPrivateRedis } from '../../../src/redis/private/stop.ts';
import { unpackedServer } from '../../../src/redis/private/unpack.ts';
import { readServerIdentity } from '../../../src/redis/server-identity.ts';
import { waitUntil } from '../../../src/wait.ts';
import { invoke } from '../../support/command.ts';
import { makeStateDir, removeStateDir } from '../../support/redis.ts';

const processes = [serverOnPath, unpackedServer]; // the ways that leave a process we can stop and kill
let stateDir: string;
let opened: RedisAddress[];

beforeEach(() => {
  stateDir = makeStateDir();
  opened = [];
});
afterEach(async () => {
  for (const { stay } of opened) stay?.presence.disconnect();
  await removeStateDir(stateDir);
});

async function open(say: (line: string) => void = () => {}, folder = stateDir): Promise<RedisAddress> {
  const address = await openPrivateRedis(folder, process.env, say, processes);
  opened.push(address);
  return address;
}

async function withRedis<T>(address: RedisAddress, work: (redis: ReturnType<typeof connectLedger>) => Promise<T>) {
  const redis = connectLedger(address);
  try {
    await ready(redis, address);
    return await work(redis);
  } finally {
    redis.disconnect();
  }
}

async function killServer(): Promise<void> {
  const place = privatePlace(stateDir);
  process.kill(serverPid(place)!, 'SIGKILL');
  expect(await waitUntil(() => serverPid(place) === null, 5_000)).toBe(true);
}

test('starts once and is found running by the next command', async () => {
  const lines: string[] = [];
  await open((line) => lines.push(line));
  await open((line) => lines.push(line));
  expect(lines.at(-2)).toMatch(/^Redis: private, started .*-server \d/);
  expect(lines.at(-1)).toMatch(/^Redis: private, still running in /);
});

test('gives starters in several processes the same server', async () => {
  await open(); // fills the cache of unpacked programs, so that all start at the same moment
  await stopPrivateRedis(stateDir);
  const script = `
    const { openPrivateRedis } = await import('./src/redis/private/open.ts');
    const { serverOnPath } = await import('./src/redis/private/server-process.ts');
    const { unpackedServer } = await import('./src/redis/private/unpack.ts');
    const address = await openPrivateRedis(${JSON.stringify(stateDir)}, process.env, () => {}, [serverOnPath, unpackedServer]);
    console.log(/run_id:(\\w+)/.exec(await address.stay.presence.info('server'))[1]);
    process.exit();`;
  const start = () => promisify(execFile)(process.execPath, ['--input-type=module', '--eval', script]);
  const answers = await Promise.all([start(), start(), start(), start()]);
  expect(new Set(answers.map(({ stdout }) => stdout)).size).toBe(1);
  expect(readFileSync(privatePlace(stateDir).logFile, 'utf8').match(/ready to accept connections/gi)).toHaveLength(2);
});

test('keeps its data when it is killed and started again', async () => {
  const address = await open();
  await withRedis(address, async (redis) => {
    await redis.set('kept', 'yes');
    // appendfsync everysec writes to the kernel before each answer: only a power cut loses the last second
  });
  await killServer();
  expect(await withRedis(await open(), (redis) => redis.get('kept'))).toBe('yes');
});

test('starts where the pid file names a stranger and the socket is left over', async () => {
  await open();
  await killServer();
  const place = privatePlace(stateDir);
  writeFileSync(place.pidFile, String(process.pid));
  expect(existsSync(place.socket)).toBe(true);
  expect(await withRedis(await open(), (redis) => redis.ping())).toBe('PONG');
});

test('passes over the lock of a starter that died', async () => {
  const { folder } = privatePlace(stateDir);
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'lock.7'), '999999999');
  expect(await withRedis(await open(), (redis) => redis.ping())).toBe('PONG');
  expect(existsSync(join(folder, 'lock.7'))).toBe(false);
});

test('moves its socket where the path of the state folder is too long', async () => {
  const long = join(stateDir, 'x'.repeat(120));
  const address = await open(() => {}, long);
  try {
    expect(Buffer.byteLength(address.options.path!)).toBeLessThan(100);
    expect(await withRedis(address, (redis) => redis.ping())).toBe('PONG');
  } finally {
    await removeStateDir(long);
  }
});

test('stops when the last client leaves and no run is running', async () => {
  const address = await open();
  expect(await leavePrivateRedis(address, async () => true)).toBe('stopped');
  expect(serverPid(privatePlace(stateDir))).toBeNull();
  expect(await redisStatus(stateDir)).toMatchObject({ state: 'stopped' });
});

/** The process that answers, and those of which it is known to have lost nothing. */
async function identityOf(address: RedisAddress) {
  return withRedis(address, (redis) => readServerIdentity(redis, 'any'));
}

/** As a backup is made and put back, with all times and rights. */
const copyFolder = (from: string, to: string) => promisify(execFile)('cp', ['-a', from, to]);

async function stopInOrder(address: RedisAddress): Promise<string> {
  const { process } = await identityOf(address);
  expect(await leavePrivateRedis(address, async () => true)).toBe('stopped');
  return process;
}

describe('what one process leaves to the next', () => {
  test('is known to be whole after each stop in order', async () => {
    const first = await stopInOrder(await open());
    const second = await stopInOrder(await open());
    const third = await open();
    expect((await identityOf(third)).ancestors).toEqual([second, first]);
    third.stay?.presence.disconnect();
    await stopPrivateRedis(stateDir);
    expect((await identityOf(await open())).ancestors).toHaveLength(3);
  });

  test('is not once it was killed, also where it was stopped in order before', async () => {
    await stopInOrder(await open());
    await open();
    await killServer();
    const { ancestors } = await identityOf(await open());
    expect(ancestors).toEqual([]);
  });

  test('is not where somebody else was connected when it was stopped', async () => {
    const address = await open();
    await withRedis(address, async (redis) => {
      await redis.client('SETNAME', 'expunge:1-00000000:ledger');
      expect(await stopPrivateRedis(stateDir)).toBe('stopped');
    });
    expect((await identityOf(await open())).ancestors).toEqual([]);
  });

  test('is not in a copy of the folder that was put back, which lacks what was written since', async () => {
    await stopInOrder(await open());
    const backup = `${stateDir}-backup`;
    await copyFolder(stateDir, backup);
    onTestFinished(() => removeStateDir(backup));
    await stopInOrder(await open());
    await removeStateDir(stateDir);
    await copyFolder(backup, stateDir);
    expect((await identityOf(await open())).ancestors).toEqual([]);
    expect((await identityOf(await open(() => {}, backup))).ancestors).toEqual([]);
  });

  test('is known to be whole in the same folder, also where it was moved', async () => {
    const first = await stopInOrder(await open());
    const moved = `${stateDir}-moved`;
    onTestFinished(() => removeStateDir(moved));
    renameSync(stateDir, moved);
    expect((await identityOf(await open(() => {}, moved))).ancestors).toEqual([first]);
  });

  test('is not where its last word is lost', async () => {
    await stopInOrder(await open());
    const files = join(privatePlace(stateDir).folder, 'appendonlydir');
    const file = join(files, readdirSync(files).find((name) => name.endsWith('.incr.aof'))!);
    truncateSync(file, statSync(file).size - 1);
    expect((await identityOf(await open())).ancestors).toEqual([]);
  });
});

test('is started again for whoever only looks, where the folder has had one', async () => {
  await stopInOrder(await open());
  const settings = { stateDir, allowPlaintextRedis: false };
  opened.push(await resolveRedis(settings, { ...process.env, REDIS_URL: '' }, () => {}, false));
  expect(await redisStatus(stateDir)).toMatchObject({ state: 'running' });
});

test('goes on while a run is running', async () => {
  expect(await leavePrivateRedis(await open(), async () => false)).toBe('left');
  expect(serverPid(privatePlace(stateDir))).not.toBeNull();
});

test('goes on while somebody else is connected', async () => {
  const address = await open();
  await withRedis(address, async (redis) => {
    await redis.client('SETNAME', 'expunge:1-00000000:ledger');
    expect(await leavePrivateRedis(address, async () => true)).toBe('left');
  });
});

test('tells its state and stops on demand', async () => {
  expect(await redisStatus(stateDir)).toMatchObject({ state: 'stopped', server: null });
  expect(await stopPrivateRedis(stateDir)).toBe('not_running');
  await open();
  expect(await redisStatus(stateDir)).toMatchObject({
    state: 'running',
    server: expect.stringMatching(/^(redis|valkey) /),
  });
  expect(await stopPrivateRedis(stateDir)).toBe('stopped');
  expect(await redisStatus(stateDir)).toMatchObject({ state: 'stopped' });
});

describe('redis stop', () => {
  const stop = (...flags: string[]) => invoke(['redis', 'stop', ...flags], { EXPUNGE_STATE_DIR: stateDir }).ended;

  test('says who uses it and stops nothing, unless somebody agrees', async () => {
    const address = await open();
    await withRedis(address, async (redis) => {
      await redis.client('SETNAME', 'expunge:4711-00000000:presence:worker');
      await expect(stop()).rejects.toMatchObject({
        code: 'USAGE',
        message: expect.stringMatching(/in use: worker \(pid 4711\)\. .* resume in doubt\. Stop it\?/),
        next: 'add --yes',
      });
      expect(await redis.ping()).toBe('PONG');
      expect(await stop('--yes')).toBe(0);
    });
    expect(serverPid(privatePlace(stateDir))).toBeNull();
  });

  test('asks nobody where nobody uses it', async () => {
    await open();
    expect(await stop()).toBe(0);
    expect(serverPid(privatePlace(stateDir))).toBeNull();
  });
});

test('closes its folders to other users', async () => {
  const { folder, socket } = privatePlace(stateDir);
  await open();
  const { stdout } = await promisify(execFile)('stat', ['-c', '%a', folder, socket]);
  expect(stdout).toBe('700\n700\n');
});
