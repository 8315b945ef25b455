import { GenericContainer, type StartedTestContainer } from 'testcontainers';
import { afterAll, describe, expect, onTestFinished, test } from 'vitest';
import { addressFromUrl } from '../../src/redis/address.ts';
import { checkRedis } from '../../src/redis/boot-check.ts';
import { connectLedger, ready } from '../../src/redis/connect.ts';
import { containerServer, readContainer } from '../../src/redis/private/container.ts';
import { openPrivateRedis } from '../../src/redis/private/open.ts';
import { privatePlace } from '../../src/redis/private/place.ts';
import { leavePrivateRedis } from '../../src/redis/private/stop.ts';
import { readServerIdentity } from '../../src/redis/server-identity.ts';
import { docker, engineHas } from '../support/engine.ts';
import { makeStateDir, removeStateDir } from '../support/redis.ts';

const image = 'redis:8-alpine';
const started: StartedTestContainer[] = [];
afterAll(() => Promise.all(started.map((container) => container.stop())));

async function openContainer(...options: string[]) {
  const redisImage = new GenericContainer(image).withExposedPorts(6379);
  const container = await redisImage.withCommand(['redis-server', ...options]).start();
  started.push(container);
  const address = addressFromUrl(`redis://${container.getHost()}:${container.getMappedPort(6379)}`, true);
  const redis = connectLedger(address);
  onTestFinished(() => redis.disconnect());
  await ready(redis, address, 10_000);
  return redis;
}

describe.skipIf(!engineHas(image))('Redis in a container', () => {
  test('is taken without a word when it keeps an append-only file', async () => {
    const redis = await openContainer('--appendonly', 'yes');
    expect(await checkRedis(redis)).toMatchObject({
      name: 'redis',
      version: expect.stringMatching(/^8\./),
      warnings: [],
    });
  });

  test('is taken with a warning when it keeps none', async () => {
    const redis = await openContainer();
    expect((await checkRedis(redis)).warnings).toEqual([expect.stringContaining('AOF')]);
  });

  test('is refused when it evicts', async () => {
    const redis = await openContainer('--maxmemory-policy', 'allkeys-lru');
    await expect(checkRedis(redis)).rejects.toMatchObject({ code: 'UNREACHABLE', message: /allkeys-lru/ });
  });

  test('serves as the private Redis: behind a password, and with its data there after a stop', async () => {
    const stateDir = makeStateDir();
    onTestFinished(() => removeStateDir(stateDir));
    const open = () => openPrivateRedis(stateDir, process.env, () => {}, [containerServer]);
    const first = await open();
    await first.stay!.presence.set('kept', 'yes');
    const { process: before } = await readServerIdentity(first.stay!.presence, 'any');
    expect(first.options.password).toMatch(/^\w{36}$/);
    expect(await leavePrivateRedis(first, async () => true)).toBe('stopped');
    const second = await open();
    expect(await second.stay!.presence.get('kept')).toBe('yes');
    expect((await readServerIdentity(second.stay!.presence, 'any')).ancestors).toEqual([before]); // it has lost nothing
    second.stay!.presence.disconnect();
  });

  test('is not taken for the private one where it has got its port', async () => {
    const { open, port, another } = await openOnFreedPort();
    const second = await open();
    second.stay!.presence.disconnect();
    expect(second.options.port).not.toBe(port);
    const asked = await another.exec(['redis-cli', 'info', 'commandstats']);
    expect(asked.output).not.toMatch(/cmdstat_(auth|hello|shutdown|config)/);
  });
});

/** Another Redis on the port of a private one that is gone. Other tests take ports too: where one is faster, it is tried again with a new folder. */
async function openOnFreedPort(tries = 5) {
  const stateDir = makeStateDir();
  onTestFinished(() => removeStateDir(stateDir));
  const open = () => openPrivateRedis(stateDir, process.env, () => {}, [containerServer]);
  const first = await open();
  first.stay!.presence.disconnect();
  await docker(['rm', '--force', readContainer(privatePlace(stateDir))!.name]);
  const port = first.options.port!;
  try {
    const another = await new GenericContainer(image).withExposedPorts({ container: 6379, host: port }).start();
    started.push(another);
    return { open, port, another };
  } catch (error) {
    if (tries === 1 || !String(error).includes('address already in use')) throw error;
    return openOnFreedPort(tries - 1);
  }
}
