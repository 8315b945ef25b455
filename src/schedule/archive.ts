import { copyFile, mkdir, rename, rm, stat } from 'node:fs/promises';
import { basename, join, resolve } from 'node:path';
import type { ListSource } from '../config/list-source.ts';
import { systemCode } from '../system-errors.ts';
import { scanFiles } from './open-source.ts';
import type { ReadFiles } from './schedule.ts';

/** The folder for the files of a source, and the absolute paths that its pattern matches now. */
export type Archive = { folder: string; known: ReadonlySet<string> };

/** Finds the archive of a source for files of a run on this machine; null if it has none of them, since another machine may have read them. */
export async function findArchive(source: ListSource, { files }: ReadFiles): Promise<Archive | null> {
  if (source.kind !== 'glob' || source.archive === null) return null;
  const looks = await Promise.all(files.map(({ path }) => stat(path).catch(() => null)));
  if (looks.every((found) => found === null)) return null;
  const known = new Set([...(await scanFiles(source.glob, source.archive)).keys()].map((path) => resolve(path)));
  return files.some(({ path }) => known.has(resolve(path))) ? { folder: source.archive, known } : null;
}

/**
 * Moves the files of a run into a folder of their own in the archive, and returns which files it moved and which it left. A file that has changed
 * since it was read stays, because its new ids were not deleted. Repeating it is harmless. `files` comes from Redis, and anyone who can write there
 * must not be able to have other files moved, or files moved to another place.
 */
export async function archiveFiles(
  { folder: archive, known }: Archive,
  { run, files }: ReadFiles,
): Promise<{ moved: string[]; left: string[] }> {
  const isRun = /^[a-z0-9-]+$/.test(run);
  const [moved, left]: [string[], string[]] = [[], []];
  const folder = join(archive, run);
  for (const [n, file] of files.entries()) {
    if (!(isRun && known.has(resolve(file.path)) && (await isUnchanged(file)))) {
      left.push(file.path);
      continue;
    }
    await mkdir(folder, { recursive: true, mode: 0o700 });
    const target = join(folder, nameOf(files, n));
    await move(file.path, target);
    moved.push(target);
  }
  return { moved, left };
}

async function isUnchanged({ path, size, mtimeMs }: ReadFiles['files'][number]): Promise<boolean> {
  const now = await stat(path).catch(() => null);
  return now !== null && now.size === size && now.mtimeMs === mtimeMs;
}

/** The name in the archive. Files of several folders may share a name; then all get a number. */
function nameOf(files: ReadFiles['files'], n: number): string {
  const names = files.map(({ path }) => basename(path));
  return new Set(names).size === names.length ? names[n]! : `${n + 1}-${names[n]}`;
}

/** Moves a file, also to another disk. */
async function move(from: string, to: string): Promise<void> {
  try {
    await rename(from, to);
  } catch (error) {
    if (systemCode(error) !== 'EXDEV') throw error;
    await copyFile(from, to);
    await rm(from);
  }
}
