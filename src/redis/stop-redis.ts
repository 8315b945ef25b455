import type { Redis } from 'ioredis';
import { ExpungeError } from '../errors.ts';
import { clientName } from './client.ts';
import {
  type ContainerRecord,
  containerExists,
  containerOptions,
  readContainer,
  removeContainer,
  serverOptions,
} from './container-server.ts';
import { leaveNote, sayGoodbye } from './lineage.ts';
import { type PrivatePlace, privatePlace } from './private-place.ts';
import { oneShot, probe } from './probe.ts';
import { isServer, serverPid } from './server-process.ts';
import { withStartLock } from './start-lock.ts';
import { waitUntil } from './wait-until.ts';

const endMs = 10_000;
const lockMs = 3_000;
const goodbyeMs = 500; // Redis notices a closed connection a little later

/** Stops the private Redis of a state folder, whoever uses it; its data stay. Throws UNREACHABLE if it does not end. */
export async function stopPrivateRedis(stateDir: string): Promise<'stopped' | 'not_running'> {
  const place = privatePlace(stateDir);
  const container = readContainer(place);
  const runs = container ? await containerExists(container, process.env) : serverPid(place) !== null;
  if (!runs) return 'not_running';
  const redis = oneShot(serverOptions(place), 'stop');
  let hasTurn = false;
  const inTurn = async () => {
    hasTurn = true;
    const connected = redis.connect().then(() => isAlone(redis));
    const alone = await connected.catch(() => false); // it hangs, or has just ended
    await (alone ? stopInOrder(place, redis) : stopServer(place));
  };
  try {
    await withStartLock(place.folder, lockMs, inTurn);
  } catch (error) {
    if (hasTurn) throw error;
    await stopServer(place); // whoever starts it waits for one that doesn't come up
  } finally {
    redis.disconnect();
  }
  return 'stopped';
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
  await (container ? stopContainer(container) : stopProcess(place));
}

async function stopContainer(container: ContainerRecord): Promise<void> {
  const options = containerOptions(container);
  await shutDown(options);
  await waitUntil(async () => (await probe(options)) === 'nobody', endMs);
  await removeContainer(container, process.env);
}

async function stopProcess(place: PrivatePlace): Promise<void> {
  const pid = serverPid(place);
  if (!(await shutDown({ path: place.socket })) && pid !== null) process.kill(pid, 'SIGTERM');
  // Not until the process is gone: the last thing it removes is the socket, which could be its successor's.
  if (pid === null || (await waitUntil(() => !isServer(pid, place), endMs))) return;
  throw new ExpungeError('UNREACHABLE', `the private Redis in ${place.folder} does not end (pid ${pid})`, {
    next: `look into ${place.logFile}`,
  });
}

async function shutDown(options: Parameters<typeof oneShot>[0]): Promise<boolean> {
  const redis = oneShot(options, 'stop');
  try {
    await redis.connect();
  } catch {
    return false;
  }
  await redis.shutdown().catch(() => {}); // its answer is the end of the connection
  redis.disconnect();
  return true;
}
