import { ExpungeError } from '../errors.ts';
import {
  type ContainerRecord,
  containerExists,
  containerOptions,
  readContainer,
  removeContainer,
} from './container-server.ts';
import { type PrivatePlace, privatePlace } from './private-place.ts';
import { oneShot, probe } from './probe.ts';
import { isServer, serverPid } from './server-process.ts';
import { waitUntil } from './wait-until.ts';

const endMs = 10_000;

/** Stops the private Redis of a state folder, whoever uses it; its data stay. Throws UNREACHABLE if it does not end. */
export async function stopPrivateRedis(stateDir: string): Promise<'stopped' | 'not_running'> {
  const place = privatePlace(stateDir);
  const container = readContainer(place);
  const runs = container ? await containerExists(container, process.env) : serverPid(place) !== null;
  if (!runs) return 'not_running';
  await stopServer(place);
  return 'stopped';
}

/** Asks the server to save and end, and waits until it is gone. */
export async function stopServer(place: PrivatePlace): Promise<void> {
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
