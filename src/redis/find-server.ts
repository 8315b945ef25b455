import { accessSync, constants } from 'node:fs';
import { delimiter, isAbsolute, join } from 'node:path';
import type { PrivatePlace } from './private/place.ts';
import { startProcess } from './private/server-process.ts';
import type { Route, RouteResult, ServerProgram, Surroundings } from './route.ts';
import { runProgram } from './run-program.ts';
import { isOldVersion, oldestVersion } from './version.ts';

/** `valkey-server` or `redis-server` as installed on this machine. */
export const serverOnPath: Route = { store: 'folder', start: startFromPath };

async function startFromPath({ place, env }: Surroundings): Promise<RouteResult> {
  const reasons: string[] = [];
  for (const name of ['valkey-server', 'redis-server']) {
    const found = await findServer(name, env);
    const closed = 'closed' in found ? found.closed : await startProcess(found, place);
    if (closed === null) return { options: { path: place.socket }, how: describe(found as ServerProgram, place) };
    reasons.push(closed);
  }
  return { closed: reasons.join('; ') };
}

function describe(program: ServerProgram, place: PrivatePlace): string {
  return `started ${program.path} ${program.version} on ${place.folder}`;
}

/** The server of this name on PATH with its version, or why there is none to use. */
export async function findServer(name: string, env: NodeJS.ProcessEnv): Promise<ServerProgram | { closed: string }> {
  const path = findOnPath(name, env);
  if (!path) return { closed: `${name} is not on PATH` };
  return knowServer(path, {});
}

/** The server at this path with its version, or why it is of no use. `env` is all of its environment. */
export async function knowServer(path: string, env: NodeJS.ProcessEnv): Promise<ServerProgram | { closed: string }> {
  const ran = await runProgram(path, ['--version'], { env, deadlineMs: 5_000 });
  const version = /\bv=(\d+\.\d+\.\d+)/.exec(ran.stdout)?.[1];
  if (!version) return { closed: `${path} does not run: ${ran.stderr.trim() || 'it tells no version'}` };
  if (isOldVersion(version)) return { closed: `${path} is ${version}, older than ${oldestVersion}` };
  return { path, version, env };
}

/** The first executable of this name in PATH, or null. Relative entries of PATH are not searched. */
export function findOnPath(name: string, env: NodeJS.ProcessEnv): string | null {
  const folders = (env.PATH ?? '').split(delimiter).filter(isAbsolute);
  return folders.map((folder) => join(folder, name)).find(isExecutable) ?? null;
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
