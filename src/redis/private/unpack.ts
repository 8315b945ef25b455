import { randomBytes } from 'node:crypto';
import { accessSync, constants, existsSync, mkdirSync, readFileSync, renameSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { messageOf } from '../../errors.ts';
import type { PrivatePlace } from '../address.ts';
import { libraryPath, missingTools, unpackPackages } from './apt-packages.ts';
import type { ServerProgram, StartDeps, StartMethod, StartResult } from './place.ts';
import { readServerProgram, startProcess } from './server-process.ts';

/** Redis from the packages of this Debian or Ubuntu, unpacked into a cache folder: needs no root and installs nothing. */
export const unpackedServer: StartMethod = { store: 'folder', start: startUnpacked };

async function startUnpacked(deps: StartDeps): Promise<StartResult> {
  const { place } = deps;
  const program = await unpackServer(deps);
  if ('closed' in program) return program;
  const closed = await startProcess(program, place);
  if (closed) return { closed };
  return { options: { path: place.socket }, how: `started ${program.path} ${program.version} on ${place.folder}` };
}

/** The unpacked server, downloaded if it is not in the cache yet; or why there is none. Never throws for a failed download. */
export async function unpackServer({ place, env, say }: StartDeps): Promise<ServerProgram | { closed: string }> {
  const release = readRelease();
  if (!release) return { closed: 'this is neither Debian nor Ubuntu, so no packages can be unpacked' };
  const folder = join(cacheFolder(env, place), `${release}-${process.arch}`);
  const closed = (await isUsable(folder)) ? null : await unpackInto(folder, env, say);
  return closed ? { closed } : unpackedProgram(folder);
}

// False, for example, if a machine with more libraries shares the home: then it is unpacked again.
async function isUsable(folder: string): Promise<boolean> {
  return existsSync(folder) && !('closed' in (await unpackedProgram(folder)));
}

function unpackedProgram(folder: string): Promise<ServerProgram | { closed: string }> {
  return readServerProgram(join(folder, 'usr/bin/redis-server'), { LD_LIBRARY_PATH: libraryPath(folder) });
}

/** Fills the folder in one step: a killed process leaves only a draft, and if two run at once, the first wins. Returns why it failed, or null. */
async function unpackInto(folder: string, env: NodeJS.ProcessEnv, say: (line: string) => void): Promise<string | null> {
  const missing = missingTools(env);
  if (missing.length > 0) return `unpacking packages needs ${missing.join(', ')}`;
  const draft = `${folder}.${process.pid}-${randomBytes(3).toString('hex')}`;
  say('Redis: not on this machine; fetching it from your distribution (no root, nothing is installed) …');
  try {
    const bytes = await unpackPackages(draft, env);
    replaceBy(draft, folder);
    say(`Redis: unpacked into ${folder} (${(bytes / 1e6).toFixed(1)} MB fetched)`);
    return null;
  } catch (error) {
    return messageOf(error);
  } finally {
    rmSync(draft, { recursive: true, force: true });
  }
}

function replaceBy(draft: string, folder: string): void {
  rmSync(folder, { recursive: true, force: true }); // a running server keeps its open files
  try {
    renameSync(draft, folder);
  } catch (error) {
    if (!existsSync(folder)) throw error; // otherwise another process was first, with the same content
  }
}

/** The cache folder that all state folders of a user share; a folder in the state folder if this user has no writable home. */
function cacheFolder(env: NodeJS.ProcessEnv, place: PrivatePlace): string {
  const base = env.XDG_CACHE_HOME || (env.HOME && join(env.HOME, '.cache'));
  const shared = base ? join(base, 'expunge', 'redis') : null;
  if (shared?.startsWith('/') && isOurs(shared)) return shared;
  const own = join(place.folder, 'program');
  mkdirSync(own, { recursive: true, mode: 0o700 });
  return own;
}

// Its files are executed, so a folder that belongs to another user (sudo keeps HOME) is not used.
function isOurs(folder: string): boolean {
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    accessSync(folder, constants.W_OK);
    return statSync(folder).uid === process.getuid?.();
  } catch {
    return false;
  }
}

/** The name of the system: `debian-12`, `ubuntu-24.04`, …; null on a system without their packages. */
function readRelease(file = '/etc/os-release'): string | null {
  if (!existsSync(file)) return null;
  const text = readFileSync(file, 'utf8');
  const field = (name: string) => new RegExp(`^${name}="?([^"\n]*)`, 'm').exec(text)?.[1] ?? '';
  const family = `${field('ID')} ${field('ID_LIKE')}`.split(' ');
  if (!family.includes('debian') && !family.includes('ubuntu')) return null;
  return `${field('ID')}-${field('VERSION_ID') || field('VERSION_CODENAME') || 'rolling'}`;
}
