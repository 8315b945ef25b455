import { randomBytes } from 'node:crypto';
import { open, realpath, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { readSecret } from './secret-text.ts';

/** Where a refresh token is kept. Most servers replace it with each use, and the old one is worth nothing from then on. */
export type RefreshTokenFile = {
  path: string;
  /** Throws SecretMissing. */
  read(): Promise<string>;
  /** Returns when it is on the disk, in place of the old one, for its owner only. Throws if it isn't: then the old one still stands. */
  store(refreshToken: string): Promise<void>;
};

export function refreshTokenFile(path: string): RefreshTokenFile {
  return { path, read: () => readSecret(path), store: (refreshToken) => replace(path, refreshToken) };
}

async function replace(path: string, refreshToken: string): Promise<void> {
  const target = await realpath(path); // a link stays a link
  const beside = `${target}.${randomBytes(6).toString('hex')}`;
  try {
    await write(beside, `${refreshToken}\n`);
    await rename(beside, target);
  } catch (error) {
    await rm(beside, { force: true });
    throw error;
  }
  await syncFolder(dirname(target));
}

async function write(path: string, text: string): Promise<void> {
  const file = await open(path, 'wx', 0o600);
  try {
    await file.writeFile(text);
    await file.sync();
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
