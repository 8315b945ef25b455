import type { Redis, RedisOptions } from 'ioredis';
import { ExpungeError } from '../../errors.ts';
import { waitUntil } from '../../wait.ts';
import type { PrivatePlace, RedisAddress } from '../address.ts';
import { checkRedis, parseInfo, type RedisFacts } from '../boot-check.ts';
import { clientName } from '../client.ts';
import { isOurs, oneShot, probe, probeOwn } from '../probe.ts';
import { type Container, containerExists, readContainer, removeContainer, serverOptions } from './container.ts';
import { writeMarkerFile, writeShutdownMarker } from './lineage.ts';
import { foreignServerError, privatePlace, readFolderId } from './place.ts';
import { isServer, serverPid, worksIn } from './server-process.ts';
import { withStartLock } from './start-lock.ts';

const endMs = 10_000;
const lockWaitMs = 3_000;
const disconnectNoticeMs = 500; // Redis notices a closed connection a little later

/**
 * Stops the private Redis of a state folder; its data is kept. If other processes use it, `confirm` is called first with their descriptions; if it
 * throws, the Redis keeps running. Throws UNREACHABLE if it does not end, and USAGE if a process began to use it without a confirmation. Repeating it
 * is harmless: 'not_running'.
 */
export async function stopPrivateRedis(
  stateDir: string,
  confirm: (users: readonly string[]) => Promise<void> = async () => {},
): Promise<'stopped' | 'not_running'> {
  const place = privatePlace(stateDir);
  const options = await serverOptions(place, process.env);
  if (!(await exists(place, options))) return 'not_running';
  const known = await withUsers(place, options, async (users) => users ?? []);
  if (known.length > 0) await confirm(known);
  let hasLock = false;
  const stopUnderLock = () => {
    hasLock = true;
    return withUsers(place, options, async (users, redis) => {
      if (known.length === 0 && users !== null && users.length > 0) throw newUsersError(users);
      await (users?.length === 0 ? stopCleanly(place, redis!) : stopServer(place));
    });
  };
  try {
    await withStartLock(place.folder, lockWaitMs, stopUnderLock);
  } catch (error) {
    if (hasLock) throw error;
    await stopServer(place); // another process has the lock and waits for a server that does not start
  }
  return 'stopped';
}

/** Whether there is a server to stop, answering or not. Throws UNREACHABLE if only another server answers in its place. */
async function exists(place: PrivatePlace, options: RedisOptions | null): Promise<boolean> {
  const container = readContainer(place);
  if (container ? await containerExists(container, process.env) : serverPid(place) !== null) return true;
  const answer = options === null ? 'none' : await probeOwn(options, readFolderId(place));
  if (answer === 'other') throw foreignServerError(place, options!);
  return answer !== 'none';
}

/** Calls `body` with descriptions of the other connected processes, and a connection to the server; null if they cannot be read. */
async function withUsers<T>(
  place: PrivatePlace,
  options: RedisOptions | null,
  body: (users: string[] | null, redis: Redis | null) => Promise<T>,
): Promise<T> {
  if (options === null) return body(null, null);
  const redis = oneShot(options, 'stop');
  try {
    return await body(await readUsers(place, redis).catch(() => null), redis);
  } finally {
    redis.disconnect();
  }
}

async function readUsers(place: PrivatePlace, redis: Redis): Promise<string[] | null> {
  await redis.connect();
  if (!(await isOurs(redis, readFolderId(place)))) return null;
  return (await isAlone(redis)) ? [] : describeUsers(await othersOn(redis));
}

/** Describes connections by their names: processes of expunge with their command, and the number of other connections. Pure. */
export function describeUsers(names: readonly string[]): string[] {
  const doing = new Map<string, string>();
  for (const name of names) {
    const [, pid, command = ''] = /^expunge:(\d+)-[0-9a-f]{8}:(?:presence:(.+))?/.exec(name) ?? [];
    if (pid) doing.set(pid, command || (doing.get(pid) ?? ''));
  }
  const ours = [...doing].map(([pid, command]) => (command === '' ? `pid ${pid}` : `${command} (pid ${pid})`));
  const others = names.filter((name) => !name.startsWith('expunge:')).length;
  if (others > 0) ours.push(others === 1 ? 'one more connection' : `${others} more connections`);
  return names.length > 0 && ours.length === 0 ? ['an unknown process'] : ours;
}

function newUsersError(users: readonly string[]): ExpungeError {
  return new ExpungeError('USAGE', `${users.join(', ')} began to use it in the meantime; nothing was stopped`, {
    next: 'run the same command again',
  });
}

/** Whether only this process is connected now or within half a second. */
function isAlone(redis: Redis): Promise<boolean> {
  return waitUntil(async () => (await othersOn(redis)).length === 0, disconnectNoticeMs);
}

/** The names of all connections but this process's own; '' for an unnamed one. */
async function othersOn(redis: Redis): Promise<string[]> {
  const clients = String(await redis.client('LIST')).trim();
  const names = clients.split('\n').map((client) => / name=(\S*)/.exec(client)?.[1] ?? '');
  return names.filter((name) => !name.startsWith(`${clientName}:`));
}

/**
 * Stops the server so that its next process is known to have lost nothing; see lineage.ts. Call it under the start lock, with no other client
 * connected.
 */
async function stopCleanly(place: PrivatePlace, redis: Redis): Promise<void> {
  const process = await writeShutdownMarker(redis).catch(() => '');
  await stopServer(place);
  if (process !== '') writeMarkerFile(place, process);
}

/** Makes the server save its data and end, and waits for the end. */
async function stopServer(place: PrivatePlace): Promise<void> {
  const container = readContainer(place);
  await (container ? stopContainer(place, container) : stopProcess(place));
}

async function stopContainer(place: PrivatePlace, container: Container): Promise<void> {
  const options = await serverOptions(place, process.env);
  if (options !== null && (await shutDown(options, place)))
    await waitUntil(async () => (await probe(options)) === 'none', endMs);
  await removeContainer(container, process.env);
}

async function stopProcess(place: PrivatePlace): Promise<void> {
  const pid = serverPid(place);
  const options = { path: place.socket };
  const isAsked = (await shutDown(options, place)) || (pid !== null && endProcess(pid, place));
  const hasEnded = async () => (pid === null ? (await probe(options)) === 'none' : !isServer(pid, place));
  // Waits for the end of the process, because it removes the socket last: a server that starts before that could lose its socket.
  if (await waitUntil(hasEnded, isAsked ? endMs : 0)) return;
  const who = pid === null ? place.socket : `pid ${pid}`;
  throw new ExpungeError('UNREACHABLE', `the private Redis in ${place.folder} does not end (${who})`, {
    next: `see ${place.logFile}; if that process is not Redis, remove ${place.pidFile}`,
  });
}

/** Sends SIGTERM, but only if the process is known to be the server, as another process may have its old pid. Returns whether it was sent. */
function endProcess(pid: number, place: PrivatePlace): boolean {
  return worksIn(pid, place.folder) === true && process.kill(pid, 'SIGTERM');
}

/** Sends SHUTDOWN, unless it is another server. Returns whether it was sent. Never throws. */
async function shutDown(options: RedisOptions, place: PrivatePlace): Promise<boolean> {
  const redis = oneShot(options, 'stop');
  try {
    await redis.connect();
    if (!(await isOurs(redis, readFolderId(place)))) return false;
    await redis.shutdown().catch(() => {}); // Redis answers by closing the connection
    return true;
  } catch {
    return false;
  } finally {
    redis.disconnect();
  }
}

/**
 * Stops the private Redis if no other process is connected and `isIdle` says that no run is running. Call it last, after the queue connections are
 * closed. Never throws, and takes a few seconds at most. If that cannot be decided, the server keeps running, and the next command finds it. Does
 * nothing for REDIS_URL.
 */
export async function leavePrivateRedis(
  { stay }: RedisAddress,
  isIdle: () => Promise<boolean>,
): Promise<'stopped' | 'left'> {
  if (!stay) return 'left';
  const { place, presence } = stay;
  try {
    return await withStartLock(place.folder, lockWaitMs, async () => {
      const options = await serverOptions(place, process.env); // read again: another server may have its port by now
      return options !== null && (await stopIfIdle(place, options, isIdle)) ? 'stopped' : 'left';
    });
  } catch {
    return 'left';
  } finally {
    presence.disconnect();
  }
}

async function stopIfIdle(
  place: PrivatePlace,
  options: RedisOptions,
  isIdle: () => Promise<boolean>,
): Promise<boolean> {
  const redis = oneShot(options, 'leave');
  try {
    await redis.connect();
    if (!(await isOurs(redis, readFolderId(place))) || !(await isAlone(redis)) || !(await isIdle())) return false;
    await stopCleanly(place, redis);
    return true;
  } finally {
    redis.disconnect();
  }
}

/** The private Redis of a state folder, as `expunge redis status` shows it. */
export type RedisStatus = {
  state: 'running' | 'loading' | 'silent' | 'stopped';
  store: string; // where its data are
  address: string | null; // address of its socket or port; null for a container that doesn't run
  server: string | null; // name and version; null unless running, like the rest
  pid: number | null; // in its own container, if it runs in one
  clients: number | null; // connections, without this command's own
  memoryBytes: number | null;
  warnings: string[];
};

/** Reads the status of the private Redis; starts nothing. Throws UNREACHABLE if it runs and cannot be used. */
export async function redisStatus(stateDir: string): Promise<RedisStatus> {
  const place = privatePlace(stateDir);
  const container = readContainer(place);
  const options = await serverOptions(place, process.env);
  const where = {
    store: container ? `${container.engine} volume ${container.name}` : place.folder,
    address: options && (options.path ?? `${options.host}:${options.port}`),
  };
  const answer = options === null ? 'none' : await probeOwn(options, readFolderId(place));
  if (answer === 'ready') return { state: 'running', ...where, ...(await readFacts(options!)) };
  if (answer === 'other') throw foreignServerError(place, options!);
  return { state: answer === 'none' ? 'stopped' : answer, ...where, ...nothingKnown };
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
