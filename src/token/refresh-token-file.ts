import { randomBytes } from 'node:crypto';
import { constants } from 'node:fs';
import { type FileHandle, open, readFile, realpath, rename, rm, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { systemCode } from '../errors.ts';
import { readSecret } from './secret-text.ts';

/** Where a refresh token is kept. Most servers replace it with each use, and the old one is worth nothing from then on. */
export type RefreshTokenFile = {
  path: string;
  /** Throws SecretMissing. */
  read(): Promise<string>;
  /** Stores what is there already, in the way of `store`: a place that takes no writes is found before the token is spent. Throws if it is one. */
  rehearse(): Promise<void>;
  /** Returns when it is on the disk, in place of the old one. Throws if it isn't: then the old one still stands. */
  store(refreshToken: string): Promise<void>;
};

export function refreshTokenFile(path: string): RefreshTokenFile {
  return {
    path,
    read: () => readSecret(path),
    rehearse: async () => put(path, await readFile(path)),
    store: (refreshToken) => put(path, Buffer.from(`${refreshToken}\n`)),
  };
}

/** What a rename over the file, or a new file beside it, fails with where the file itself can be written all the same. */
const onlyInPlace = ['EBUSY', 'EXDEV', 'EACCES', 'EPERM', 'EROFS'];

/** By a new file that takes its name, so that a crash leaves the old or the new one; in place where it is a mount or its folder is closed to us. */
async function put(path: string, content: Buffer): Promise<void> {
  const target = await realpath(path); // a link stays a link
  try {
    await replace(target, content);
  } catch (error) {
    if (!onlyInPlace.includes(systemCode(error))) throw error;
    await overwrite(target, content);
  }
}

async function replace(target: string, content: Buffer): Promise<void> {
  const beside = `${target}.${randomBytes(6).toString('hex')}`;
  try {
    await writeBeside(target, beside, content);
    await rename(beside, target);
  } catch (error) {
    await rm(beside, { force: true }).catch(() => {});
    throw error;
  }
  await syncFolder(dirname(target));
}

/** With the owner and the rights of the other. */
async function writeBeside(target: string, beside: string, content: Buffer): Promise<void> {
  const { uid, gid, mode } = await stat(target);
  await using(await open(beside, 'wx', 0o600), async (file) => {
    await file.chown(uid, gid);
    await file.chmod(mode & 0o777);
    await file.writeFile(content);
    await file.sync();
  });
}

/** Cut off behind the new content only: at no time the file is empty. */
async function overwrite(target: string, content: Buffer): Promise<void> {
  await using(await open(target, constants.O_WRONLY), async (file) => {
    await file.write(content, 0, content.length, 0);
    await file.truncate(content.length);
    await file.sync();
  });
}

async function using(file: FileHandle, work: (file: FileHandle) => Promise<void>): Promise<void> {
  try {
    await work(file);
  } finally {
    await file.close();
  }
}

/** Makes the new name last through a loss of power. Some file systems cannot; then the name is as safe as they make it. */
async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, 'r').catch(() => null);
  await folder?.sync().catch(() => {});
  await folder?.close();
}
