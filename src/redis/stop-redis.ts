import type { Redis, RedisOptions } from 'ioredis';
import { ExpungeError } from '../errors.ts';
import { clientName } from './client.ts';
import { type Container, containerExists, readContainer, removeContainer, serverOptions } from './container-server.ts';
import { leaveNote, sayGoodbye } from './lineage.ts';
import { anotherServer, identityOf, type PrivatePlace, privatePlace } from './private-place.ts';
import { isOurs, oneShot, probe, probeOwn } from './probe.ts';
import { isServer, serverPid, worksIn } from './server-process.ts';
import { withStartLock } from './start-lock.ts';
import { waitUntil } from './wait-until.ts';

const endMs = 10_000;
const lockMs = 3_000;
const goodbyeMs = 500; // Redis notices a closed connection a little later

/** Stops the private Redis of a state folder, whoever uses it; its data stay. Throws UNREACHABLE if it does not end. */
export async function stopPrivateRedis(stateDir: string): Promise<'stopped' | 'not_running'> {
  const place = privatePlace(stateDir);
  const options = await serverOptions(place, process.env);
  if (!(await isThere(place, options))) return 'not_running';
  let hasTurn = false;
  const inTurn = async () => {
    hasTurn = true;
    const redis = options && oneShot(options, 'stop');
    try {
      const alone = redis !== null && (await isOursAlone(place, redis).catch(() => false)); // it hangs, or has just ended
      await (alone ? stopInOrder(place, redis) : stopServer(place));
    } finally {
      redis?.disconnect();
    }
  };
  try {
    await withStartLock(place.folder, lockMs, inTurn);
  } catch (error) {
    if (hasTurn) throw error;
    await stopServer(place); // whoever starts it waits for one that doesn't come up
  }
  return 'stopped';
}

/** Whether there is anything to stop, answering or not. Throws UNREACHABLE where only another server has its place. */
async function isThere(place: PrivatePlace, options: RedisOptions | null): Promise<boolean> {
  const container = readContainer(place);
  if (container ? await containerExists(container, process.env) : serverPid(place) !== null) return true;
  const answer = options === null ? 'nobody' : await probeOwn(options, identityOf(place));
  if (answer === 'other') throw anotherServer(place, options!);
  return answer !== 'nobody';
}

async function isOursAlone(place: PrivatePlace, redis: Redis): Promise<boolean> {
  await redis.connect();
  return (await isOurs(redis, identityOf(place))) && isAlone(redis);
}

/** Whether nobody but this process is connected, or those who were go at this moment. */
export function isAlone(redis: Redis): Promise<boolean> {
  return waitUntil(async () => {
    const clients = String(await redis.client('LIST'))
      .trim()
      .split('\n');
    return clients.every((client) => client.includes(` name=${clientName}:`));
  }, goodbyeMs);
}

/** Call it alone and under the start lock: stops the server so that the next one is known to have lost nothing; see lineage.ts. */
export async function stopInOrder(place: PrivatePlace, redis: Redis): Promise<void> {
  const process = await sayGoodbye(redis).catch(() => '');
  await stopServer(place);
  if (process !== '') leaveNote(place, process);
}

/** Asks the server to save and end, and waits until it is gone. */
async function stopServer(place: PrivatePlace): Promise<void> {
  const container = readContainer(place);
  await (container ? stopContainer(place, container) : stopProcess(place));
}

async function stopContainer(place: PrivatePlace, container: Container): Promise<void> {
  const options = await serverOptions(place, process.env);
  if (options !== null && (await shutDown(options, place)))
    await waitUntil(async () => (await probe(options)) === 'nobody', endMs);
  await removeContainer(container, process.env);
}

async function stopProcess(place: PrivatePlace): Promise<void> {
  const pid = serverPid(place);
  const options = { path: place.socket };
  const isTold = (await shutDown(options, place)) || (pid !== null && endProcess(pid, place));
  const hasEnded = async () => (pid === null ? (await probe(options)) === 'nobody' : !isServer(pid, place));
  // Not until the process is gone: the last thing it removes is the socket, which could be its successor's.
  if (await waitUntil(hasEnded, isTold ? endMs : 0)) return;
  const who = pid === null ? place.socket : `pid ${pid}`;
  throw new ExpungeError('UNREACHABLE', `the private Redis in ${place.folder} does not end (${who})`, {
    next: `look into ${place.logFile}; a process that is no Redis only has its number: then remove ${place.pidFile}`,
  });
}

/** Only where it is known to be the server: a number of long ago may be anybody's. False where it isn't sent. */
function endProcess(pid: number, place: PrivatePlace): boolean {
  return worksIn(pid, place.folder) === true && process.kill(pid, 'SIGTERM');
}

/** Asks the server to save and end, unless it is another one. Whether it was asked. */
async function shutDown(options: RedisOptions, place: PrivatePlace): Promise<boolean> {
  const redis = oneShot(options, 'stop');
  try {
    await redis.connect();
    if (!(await isOurs(redis, identityOf(place)))) return false;
    await redis.shutdown().catch(() => {}); // its answer is the end of the connection
    return true;
  } catch {
    return false;
  } finally {
    redis.disconnect();
  }
}
