import { randomBytes } from 'node:crypto';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import type { RedisOptions } from 'ioredis';
import { waitUntil } from '../../wait.ts';
import type { PrivatePlace } from '../address.ts';
import { probeOwn } from '../probe.ts';
import { makeFolderId, readFolderId, type StartDeps, type StartMethod, type StartResult } from './place.ts';
import { findOnPath, lastLine, type ProgramResult, runProgram, storeArguments } from './server-process.ts';

/**
 * Redis in a container of Docker or Podman, on a random loopback port and with a password, its data in a volume of its own. The container is removed
 * when Redis stops; the volume stays.
 */
export const containerServer: StartMethod = { store: 'container', start: startContainer };

/**
 * The container of a state folder. Its name, which is also the name of its volume, is the folder's id. Its port is not stored: after a stop another
 * program may have the port, so the engine is asked for it each time.
 */
export type Container = { engine: string; name: string; password: string };

const images = ['redis:8-alpine', 'redis:8'];
const answerMs = 3_000; // a docker command without a running daemon is common
const pullMs = 180_000;
const inspectMs = 10_000;
const upMs = 30_000;

async function startContainer({ place, env, say }: StartDeps): Promise<StartResult> {
  const known = readContainer(place);
  const engine = await findEngine(known ? [known.engine] : ['docker', 'podman'], env);
  if (!engine) return { closed: `${known?.engine ?? 'docker or podman'} does not answer` };
  const image = await findImage(engine, env, say);
  if (!image) return { closed: `${engine} has no image ${images[0]} and cannot pull it` };
  const password = known?.password ?? randomBytes(18).toString('hex');
  return runContainer({ engine, name: makeFolderId(place), password }, image, { place, env, say });
}

async function findEngine(names: string[], env: NodeJS.ProcessEnv): Promise<string | null> {
  for (const name of names) {
    if (!findOnPath(name, env)) continue;
    if ((await runProgram(name, ['ps', '--quiet'], { env, deadlineMs: answerMs })).ok) return name;
  }
  return null;
}

async function findImage(engine: string, env: NodeJS.ProcessEnv, say: (line: string) => void): Promise<string | null> {
  for (const image of images) {
    if ((await runProgram(engine, ['image', 'inspect', image], { env, deadlineMs: 10_000 })).ok) return image;
  }
  const image = images[0]!;
  say(`Redis: ${engine} pulls ${image} …`);
  return (await runProgram(engine, ['pull', '--quiet', image], { env, deadlineMs: pullMs })).ok ? image : null;
}

async function runContainer(container: Container, image: string, { place, env }: StartDeps): Promise<StartResult> {
  const { engine, name } = container;
  await removeContainer(container, env); // a leftover container does not answer; otherwise it would be in use
  const started = await startNamed(container, image, env);
  const options = started.ok ? await containerOptions(container, env) : null;
  const up = options && (await waitUntil(async () => (await probeOwn(options, name)) === 'ready', upMs, 50));
  if (!up) {
    await removeContainer(container, env);
    return { closed: `${engine} could not run ${image}: ${lastLine(started.stderr) || 'its port does not answer'}` };
  }
  writeContainer(place, container);
  return { options, how: `started ${image} with ${engine} as ${name}` };
}

function startNamed(
  { engine, name, password }: Container,
  image: string,
  env: NodeJS.ProcessEnv,
): Promise<ProgramResult> {
  // The environment and standard input carry the password, because every user can read the arguments of a process.
  const script = `exec docker-entrypoint.sh redis-server "$@" - <<end\nrequirepass $REDIS_PASSWORD\nend\n`;
  const published = ['--publish', '127.0.0.1::6379', '--volume', `${name}:/data`, '--env', 'REDIS_PASSWORD'];
  const command = ['--entrypoint', 'sh', image, '-c', script, 'sh', ...storeArguments(name)];
  const args = ['run', '--detach', '--rm', '--name', name, ...published, ...command];
  return runProgram(engine, args, { env: { ...env, REDIS_PASSWORD: password }, deadlineMs: upMs });
}

/** The options to connect to a container, at the port that its engine publishes for it now; null if it doesn't run. */
async function containerOptions(
  { engine, name, password }: Container,
  env: NodeJS.ProcessEnv,
): Promise<RedisOptions | null> {
  const { stdout } = await runProgram(engine, ['port', name, '6379/tcp'], { env, deadlineMs: inspectMs });
  const port = Number(/^127\.0\.0\.1:(\d+)$/m.exec(stdout)?.[1] ?? 0);
  return port > 0 ? { host: '127.0.0.1', port, password } : null;
}

/** The options to connect to the private Redis of a state folder, a process or a container; null for a container that doesn't run. */
export async function serverOptions(place: PrivatePlace, env: NodeJS.ProcessEnv): Promise<RedisOptions | null> {
  const container = readContainer(place);
  return container ? containerOptions(container, env) : { path: place.socket };
}

/** The container of this state folder, running or not; null if the folder has never used one. */
export function readContainer(place: PrivatePlace): Container | null {
  const name = readFolderId(place);
  if (name === null) return null;
  try {
    return { ...JSON.parse(readFileSync(place.containerFile, 'utf8')), name };
  } catch {
    return null;
  }
}

function writeContainer(place: PrivatePlace, { engine, password }: Container): void {
  rmSync(place.containerFile, { force: true });
  writeFileSync(place.containerFile, JSON.stringify({ engine, password }), { mode: 0o600 });
}

type Named = Pick<Container, 'engine' | 'name'>;

/** Whether the engine knows the container. */
export async function containerExists({ engine, name }: Named, env: NodeJS.ProcessEnv): Promise<boolean> {
  return (await runProgram(engine, ['container', 'inspect', name], { env, deadlineMs: inspectMs })).ok;
}

/** Removes the container, even if it does not answer, and waits until it is removed; its volume stays. Never throws. */
export async function removeContainer(container: Named, env: NodeJS.ProcessEnv): Promise<void> {
  // If it is being removed already, the command returns before the removal ends.
  await runProgram(container.engine, ['rm', '--force', container.name], { env, deadlineMs: upMs });
  await waitUntil(async () => !(await containerExists(container, env)), upMs, 50);
}

/** Removes the volume of a container that is removed, with all its data. */
export async function removeVolume({ engine, name }: Named, env: NodeJS.ProcessEnv): Promise<void> {
  await runProgram(engine, ['volume', 'rm', '--force', name], { env, deadlineMs: upMs });
}
