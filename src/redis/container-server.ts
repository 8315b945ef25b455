import { randomBytes } from 'node:crypto';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import type { RedisOptions } from 'ioredis';
import { findOnPath } from './find-server.ts';
import type { PrivatePlace } from './private-place.ts';
import { probe } from './probe.ts';
import type { Route, RouteResult, Surroundings } from './route.ts';
import { lastLine, type ProgramResult, runProgram } from './run-program.ts';
import { storeArguments } from './server-process.ts';
import { waitUntil } from './wait-until.ts';

/**
 * Redis in a container of Docker or Podman, on a random loopback port and with a password, its data in a volume of its
 * own. The container removes itself when Redis stops; the volume stays.
 */
export const containerServer: Route = { store: 'container', start: startContainer };

/** What a state folder remembers of its container. Readable by its owner only: it holds the password. */
export type ContainerRecord = { engine: string; name: string; port: number; password: string };

const images = ['redis:8-alpine', 'redis:8'];
const answerMs = 3_000; // a docker command without a daemon behind it is common
const pullMs = 180_000;
const upMs = 30_000;

async function startContainer({ place, env, say }: Surroundings): Promise<RouteResult> {
  const known = readContainer(place);
  const engine = await findEngine(known ? [known.engine] : ['docker', 'podman'], env);
  if (!engine) return { closed: `${known?.engine ?? 'docker or podman'} does not answer` };
  const image = await findImage(engine, env, say);
  if (!image) return { closed: `${engine} has no image ${images[0]} and cannot pull it` };
  return runContainer(engine, image, known?.password ?? randomBytes(18).toString('hex'), { place, env, say });
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

async function runContainer(
  engine: string,
  image: string,
  password: string,
  { place, env }: Surroundings,
): Promise<RouteResult> {
  const engineRun = (args: string[]) =>
    runProgram(engine, args, { env: { ...env, REDIS_PASSWORD: password }, deadlineMs: upMs });
  await removeContainer({ engine, name: place.name }, env); // one that is left over does not answer, or we would use it
  const started = await startNamed(engineRun, place.name, image);
  const port = started.ok ? await publishedPort(engineRun, place.name) : 0;
  const options = containerOptions({ engine, name: place.name, port, password });
  const up = port > 0 && (await waitUntil(async () => (await probe(options)) === 'ready', upMs, 50));
  if (!up) {
    await removeContainer({ engine, name: place.name }, env);
    return { closed: `${engine} could not run ${image}: ${lastLine(started.stderr) || 'its port does not answer'}` };
  }
  writeContainer(place, { engine, name: place.name, port, password });
  return {
    options,
    how: `started ${image} with ${engine} (container ${place.name}, data in the volume ${place.name})`,
  };
}

async function startNamed(
  engineRun: (args: string[]) => Promise<ProgramResult>,
  name: string,
  image: string,
): Promise<ProgramResult> {
  // The password comes by the environment and standard input: the arguments of a process are for all to read.
  const script = `exec docker-entrypoint.sh redis-server "$@" - <<end\nrequirepass $REDIS_PASSWORD\nend\n`;
  const published = ['--publish', '127.0.0.1::6379', '--volume', `${name}:/data`, '--env', 'REDIS_PASSWORD'];
  const command = ['--entrypoint', 'sh', image, '-c', script, 'sh', ...storeArguments];
  return engineRun(['run', '--detach', '--rm', '--name', name, ...published, ...command]);
}

async function publishedPort(engineRun: (args: string[]) => Promise<ProgramResult>, name: string): Promise<number> {
  const { stdout } = await engineRun(['port', name, '6379/tcp']);
  return Number(/:(\d+)\s*$/m.exec(stdout)?.[1] ?? 0);
}

/** How to connect to the container. */
export function containerOptions({ port, password }: ContainerRecord): RedisOptions {
  return { host: '127.0.0.1', port, password };
}

/** How to connect to the private Redis of a state folder, wherever it lives. */
export function serverOptions(place: PrivatePlace): RedisOptions {
  const container = readContainer(place);
  return container ? containerOptions(container) : { path: place.socket };
}

/** The container this state folder has used, running or not; null where it never used one. */
export function readContainer(place: PrivatePlace): ContainerRecord | null {
  try {
    return JSON.parse(readFileSync(place.containerFile, 'utf8')) as ContainerRecord;
  } catch {
    return null;
  }
}

function writeContainer(place: PrivatePlace, record: ContainerRecord): void {
  rmSync(place.containerFile, { force: true });
  writeFileSync(place.containerFile, JSON.stringify(record), { mode: 0o600 });
}

type Named = Pick<ContainerRecord, 'engine' | 'name'>;

/** True while the engine knows the container. */
export async function containerExists({ engine, name }: Named, env: NodeJS.ProcessEnv): Promise<boolean> {
  return (await runProgram(engine, ['container', 'inspect', name], { env, deadlineMs: answerMs })).ok;
}

/** Ends the container whether it answers or not, and waits until it is gone; its volume stays. */
export async function removeContainer(container: Named, env: NodeJS.ProcessEnv): Promise<void> {
  // Where it is removing itself already, the command comes back before that is done.
  await runProgram(container.engine, ['rm', '--force', container.name], { env, deadlineMs: upMs });
  await waitUntil(async () => !(await containerExists(container, env)), upMs, 50);
}
