import { checkRedis, parseInfo, type RedisFacts } from './boot-check.ts';
import { readContainer, serverOptions } from './private/container.ts';
import { anotherServer, identityOf, privatePlace } from './private/place.ts';
import { oneShot, probeOwn } from './probe.ts';

/** The private Redis of a state folder, as `expunge redis status` shows it. */
export type RedisStatus = {
  state: 'running' | 'loading' | 'silent' | 'stopped';
  store: string; // where its data live
  address: string | null; // what its clients open; null for a container that doesn't run
  server: string | null; // name and version; null unless running, like the rest
  pid: number | null; // as its own machine or container counts
  clients: number | null; // connections, without the one that asks
  memoryBytes: number | null;
  warnings: string[];
};

/** Looks at the private Redis and starts nothing. Throws UNREACHABLE for a running one that cannot be used. */
export async function redisStatus(stateDir: string): Promise<RedisStatus> {
  const place = privatePlace(stateDir);
  const container = readContainer(place);
  const options = await serverOptions(place, process.env);
  const where = {
    store: container ? `${container.engine} volume ${container.name}` : place.folder,
    address: options && (options.path ?? `${options.host}:${options.port}`),
  };
  const answer = options === null ? 'nobody' : await probeOwn(options, identityOf(place));
  if (answer === 'ready') return { state: 'running', ...where, ...(await readFacts(options!)) };
  if (answer === 'other') throw anotherServer(place, options!);
  return { state: answer === 'nobody' ? 'stopped' : answer, ...where, ...nothingKnown };
}

const nothingKnown = { server: null, pid: null, clients: null, memoryBytes: null, warnings: [] };

async function readFacts(options: Parameters<typeof oneShot>[0]) {
  const redis = oneShot(options, 'status');
  try {
    await redis.connect();
    const facts: RedisFacts = await checkRedis(redis);
    const info = parseInfo(await redis.info());
    return {
      server: `${facts.name} ${facts.version}`,
      pid: Number(info.process_id),
      clients: Number(info.connected_clients) - 1,
      memoryBytes: Number(info.used_memory),
      warnings: facts.warnings,
    };
  } finally {
    redis.disconnect();
  }
}
