import { createHash, randomBytes } from 'node:crypto';
import {
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import type { RedisOptions } from 'ioredis';
import { ExpungeError } from '../../errors.ts';
import { describeFileError } from '../../system-errors.ts';
import type { PrivatePlace } from '../address.ts';

/** A Redis server program on this machine; `env`: its whole environment. */
export type ServerProgram = { path: string; version: string; env: NodeJS.ProcessEnv };

/** The dependencies of a start method. `say` prints a line about what changes on the user's machine. */
export type StartDeps = { place: PrivatePlace; env: NodeJS.ProcessEnv; say: (line: string) => void };

/** A server that answers, and how it was started; or the reason why this method does not work here. */
export type StartResult = { options: RedisOptions; how: string } | { closed: string };

/**
 * A method to start a private Redis. A failed start leaves nothing behind. `store`: where the data are. A state folder keeps the first kind that it
 * used, so that no run disappears.
 */
export type StartMethod = { store: 'folder' | 'container'; start: (deps: StartDeps) => Promise<StartResult> };

const maxSocketPathBytes = 100; // the kernel takes 107 bytes, macOS 103

/** The paths of the private Redis of a state folder; creates nothing. */
export function privatePlace(stateDir: string): PrivatePlace {
  const folder = join(realFolder(stateDir), 'redis');
  const near = join(folder, 'redis.sock');
  const fits = Buffer.byteLength(near) <= maxSocketPathBytes;
  return {
    folder,
    socket: fits ? near : movedSocket(near, folder),
    socketLink: fits ? null : near,
    pidFile: join(folder, 'redis.pid'),
    logFile: join(folder, 'redis.log'),
    containerFile: join(folder, 'container.json'),
    folderIdFile: join(folder, 'identity'),
  };
}

/** Creates the folders, not accessible to other users. Repeating it is harmless. Throws USAGE if it fails. */
export function makePlace(place: PrivatePlace): void {
  try {
    mkdirSync(dirname(place.folder), { recursive: true, mode: 0o700 });
    mkdirSync(place.folder, { recursive: true, mode: 0o700 });
    if (place.socketLink) moveSocket(place.socketLink, place.socket);
  } catch (error) {
    throw new ExpungeError(
      'USAGE',
      `the state folder ${dirname(place.folder)} cannot be used: ${describeFileError(error)}`,
      {
        next: 'name a writable folder with --state-dir',
      },
    );
  }
}

/** The id that identifies the private Redis of this folder; null before its first start. */
export function readFolderId(place: PrivatePlace): string | null {
  try {
    return /^expunge-[0-9a-f]{16}$/.exec(readFileSync(place.folderIdFile, 'utf8'))?.[0] ?? null;
  } catch {
    return null;
  }
}

/** Returns the same id, and creates it if there is none. Call it under the start lock. */
export function makeFolderId(place: PrivatePlace): string {
  const known = readFolderId(place);
  if (known !== null) return known;
  const folderId = `expunge-${randomBytes(8).toString('hex')}`;
  writeFileSync(place.folderIdFile, folderId, { mode: 0o600 });
  return folderId;
}

/** The error for a server that answers in place of the private Redis and does not show its id: it is neither used nor stopped. */
export function foreignServerError(place: PrivatePlace, { path, host, port }: RedisOptions): ExpungeError {
  const where = path ?? `${host}:${port}`;
  const message = `another server answers at ${where}, which is for the private Redis of ${place.folder}`;
  return new ExpungeError('UNREACHABLE', message, {
    next: 'end that server, or name another folder with --state-dir',
  });
}

/** Whether a private Redis has data in the folder itself. */
export function hasData(place: PrivatePlace): boolean {
  return existsSync(join(place.folder, 'appendonlydir')) || existsSync(join(place.folder, 'appendonly.aof'));
}

// The link stores the path, because a process with another TMPDIR has to find the same socket.
function movedSocket(link: string, folder: string): string {
  try {
    return readlinkSync(link);
  } catch {
    const name = `expunge-${createHash('sha256').update(folder).digest('hex').slice(0, 12)}`;
    return join(tmpdir(), `${name}-${process.getuid?.() ?? 0}`, 'redis.sock');
  }
}

function moveSocket(link: string, socket: string): void {
  const folder = dirname(socket);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const found = lstatSync(folder);
  const isOurs = found.isDirectory() && (found.mode & 0o077) === 0 && found.uid === process.getuid?.();
  if (!isOurs) throw new Error(`${folder} belongs to another user`);
  rmSync(link, { force: true });
  symlinkSync(socket, link);
}

function realFolder(stateDir: string): string {
  try {
    return realpathSync(stateDir);
  } catch {
    return resolve(stateDir);
  }
}
