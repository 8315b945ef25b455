import { dirname } from 'node:path';
import type { RedisOptions } from 'ioredis';
import type { Config } from '../../config/settings.ts';
import { ExpungeError } from '../../errors.ts';
import { type RedisAccess, refuseAccess, withAccess } from '../access.ts';
import { addressFromUrl, type PrivatePlace, type RedisAddress } from '../address.ts';
import { oneShot, probeOwn } from '../probe.ts';
import { containerServer, readContainer, serverOptions } from './container.ts';
import { inheritAncestors, takeMarkerFile } from './lineage.ts';
import {
  foreignServerError,
  hasData,
  makePlace,
  privatePlace,
  readFolderId,
  type StartDeps,
  type StartMethod,
} from './place.ts';
import { serverOnPath, serverPid, waitForAnswer } from './server-process.ts';
import { withStartLock } from './start-lock.ts';
import { unpackedServer } from './unpack.ts';

/** The methods to start a private Redis, in the order in which they are tried. */
export const startMethods: StartMethod[] = [serverOnPath, containerServer, unpackedServer];

const startWaitMs = 180_000; // longer than another process takes to download Redis over a slow connection
const readyWaitMs = 3_000;

type Settings = Pick<Config, 'stateDir' | 'allowPlaintextRedis'> & RedisAccess;

/**
 * The address in REDIS_URL if it is set, without a fallback; otherwise the private Redis of the state folder. `say` gets a line that names it.
 * `mayBegin`: whether a first private Redis may be started for the folder, as for a command that makes a run. If false and there never was one,
 * throws USAGE. Does not connect to the Redis of REDIS_URL: `ready` and `checkRedis` do. Throws USAGE and CREDENTIALS for invalid settings.
 */
export async function resolveRedis(
  { stateDir, allowPlaintextRedis, ...access }: Settings,
  env: NodeJS.ProcessEnv,
  say: (line: string) => void,
  mayBegin = true,
): Promise<RedisAddress> {
  if (!env.REDIS_URL) {
    refuseAccess(access);
    if (!mayBegin) requirePrivateRedis(stateDir);
    return openPrivateRedis(stateDir, env, say);
  }
  const address = withAccess(addressFromUrl(env.REDIS_URL, allowPlaintextRedis), access);
  say(`Redis: ${address.label} (REDIS_URL)`);
  return address;
}

/**
 * Opens the private Redis of a state folder, and starts it if it does not run. It outlives this process; processes that call this at the same time
 * get the same one. Throws UNREACHABLE, with advice, if no method can start one or it does not answer, and USAGE for a folder that cannot be used.
 */
export async function openPrivateRedis(
  stateDir: string,
  env: NodeJS.ProcessEnv,
  say: (line: string) => void,
  methods = startMethods,
): Promise<RedisAddress> {
  const place = privatePlace(stateDir);
  makePlace(place);
  return withStartLock(place.folder, startWaitMs, async () => {
    const ended = takeMarkerFile(place);
    const found = await findRunning(place, env);
    const options = found ?? (await startByMethod({ place, env, say }, methods));
    if (!found && ended) await inheritAncestors(options, ended);
    if (found) say(`Redis: private, still running in ${place.folder}`);
    // While this process has the lock, no other process can stop the server. After that, the presence connection shows that it is in use.
    return {
      kind: 'private',
      label: `${place.folder} (private)`,
      options,
      stay: { place, presence: await registerClient(options) },
    };
  });
}

/** Throws USAGE if no private Redis was ever started for the folder: a run cannot be found in it. Creates nothing. */
function requirePrivateRedis(stateDir: string): void {
  const place = privatePlace(stateDir);
  if (hasData(place) || readContainer(place)) return;
  const folder = dirname(place.folder);
  throw new ExpungeError('USAGE', `${folder} has no Redis: no run was ever made there, and REDIS_URL is not set`, {
    next: 'go to the folder the runs were made in, name its state folder with --state-dir, or set REDIS_URL',
  });
}

/** The options to connect to the private Redis if it runs, otherwise null. Throws UNREACHABLE if another server answers in its place. */
async function findRunning(place: PrivatePlace, env: NodeJS.ProcessEnv): Promise<RedisOptions | null> {
  const options = await serverOptions(place, env);
  if (options === null) return null;
  const answer = await probeOwn(options, readFolderId(place));
  if (answer === 'ready') return options;
  if (answer === 'other') throw foreignServerError(place, options);
  const isSilent = answer !== 'none' || (!readContainer(place) && serverPid(place) !== null);
  return isSilent && (await becomesReady(place, options)) ? options : null;
}

/** Waits for a running server that does not answer: it loads or hangs, and a second server would damage its files. */
async function becomesReady(place: PrivatePlace, options: RedisOptions): Promise<boolean> {
  const container = readContainer(place);
  const pid = container ? null : serverPid(place);
  const hasEnded = () => pid !== null && serverPid(place) === null;
  if (await waitForAnswer(() => probeOwn(options, readFolderId(place)), hasEnded, readyWaitMs)) return true;
  if (hasEnded()) return false;
  const who = container ? `container ${container.name}` : pid === null ? place.socket : `pid ${pid}`;
  throw new ExpungeError('UNREACHABLE', `the private Redis in ${place.folder} runs but does not answer (${who})`, {
    next: (toType) => `wait, or end it with ${toType('redis stop')}; its data is kept`,
  });
}

async function startByMethod(deps: StartDeps, methods: StartMethod[]): Promise<RedisOptions> {
  const { place, say } = deps;
  const closed: string[] = [];
  for (const method of methods.filter(({ store }) => isStoreOf(place, store))) {
    const result = await method.start(deps);
    if ('options' in result) {
      say(`Redis: private, ${result.how}`);
      return result.options;
    }
    closed.push(result.closed);
  }
  throw new ExpungeError('UNREACHABLE', `no Redis is available: REDIS_URL is not set; ${closed.join('; ')}`, {
    next: 'set REDIS_URL, install redis-server or valkey-server (6.2 or newer), or start Docker or Podman',
  });
}

/** Whether the folder has no data in the other kind of store. Otherwise starting an empty Redis would hide its runs. */
function isStoreOf(place: PrivatePlace, store: StartMethod['store']): boolean {
  if (readContainer(place)) return store === 'container';
  return store === 'folder' || !hasData(place);
}

/** Opens a connection whose name shows the command of this process, for `expunge redis stop`. */
async function registerClient(options: RedisOptions) {
  const command = /^[a-z-]+$/.exec(process.argv[2] ?? '')?.[0];
  const presence = oneShot(options, command ? `presence:${command}` : 'presence');
  await presence.connect();
  presence.stream.unref(); // it must not keep the process alive
  return presence;
}
