import { join } from 'node:path';
import { Redis } from 'ioredis';
import { GenericContainer } from 'testcontainers';
import { storeArguments } from '../../src/redis/private/server-process.ts';
import { type DebianServer, debianServer } from './debian-server.ts';
import { whyMissing } from './engine.ts';
import { startRedisProcess } from './redis-process.ts';

type AtEnd = (task: () => Promise<void>) => void;

/** Where a release of Redis or Valkey comes from: a container image, or a package of Debian. */
export type Release = { image: string } | DebianServer;

/** A server of the release, started and empty, or why it cannot be had here. It goes when the test is over. */
export async function startRelease(
  atEnd: AtEnd,
  release: Release,
  folder: string,
): Promise<{ url: string; connect(): Redis } | { closed: string }> {
  const started =
    'image' in release ? await startImage(atEnd, release.image) : await startPackage(atEnd, release, folder);
  if ('closed' in started) return started;
  const connect = () => {
    const redis = new Redis({ ...started, replyMapping: 'legacy' });
    atEnd(async () => redis.disconnect());
    return redis;
  };
  return { url: `redis://${started.host}:${started.port}`, connect };
}

type Started = { host: string; port: number } | { closed: string };

async function startImage(atEnd: AtEnd, image: string): Promise<Started> {
  const closed = whyMissing(image);
  if (closed !== null) return { closed };
  const program = image.startsWith('valkey') ? 'valkey-server' : 'redis-server';
  const command = [program, ...storeArguments('another'), '--protected-mode', 'no'];
  const container = await new GenericContainer(image).withExposedPorts(6379).withCommand(command).start();
  atEnd(async () => void (await container.stop()));
  return { host: container.getHost(), port: container.getMappedPort(6379) };
}

async function startPackage(atEnd: AtEnd, server: DebianServer, folder: string): Promise<Started> {
  const program = await debianServer(server, join(folder, `${server.tools}-${server.release}`));
  if ('closed' in program) return program;
  const { port } = await startRedisProcess(atEnd, { program });
  return { host: '127.0.0.1', port };
}
