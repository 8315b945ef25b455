import { copyFile, mkdir, rename, rm, stat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { systemCode } from '../system-errors.ts';
import type { ReadFiles } from './schedule.ts';

/**
 * Moves the files of a run into a folder of their own in the archive, and returns which it moved and which it left. A file that has changed
 * since it was read stays, because its new ids were not deleted. Repeating it is harmless.
 */
export async function archiveFiles(
  archive: string,
  { run, files }: ReadFiles,
): Promise<{ moved: string[]; left: string[] }> {
  const [moved, left]: [string[], string[]] = [[], []];
  const folder = join(archive, run);
  for (const [n, file] of files.entries()) {
    if (!(await isUnchanged(file))) {
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

/** Whether any of the files is on this machine: another machine may have read them. */
export async function isAnyHere({ files }: ReadFiles): Promise<boolean> {
  const looks = await Promise.all(files.map(({ path }) => stat(path).catch(() => null)));
  return looks.some((found) => found !== null);
}

async function isUnchanged({ path, size, mtimeMs }: ReadFiles['files'][number]): Promise<boolean> {
  const now = await stat(path).catch(() => null);
  return now !== null && now.size === size && now.mtimeMs === mtimeMs;
}

/** The name in the archive. Files of several folders may share a name: then all get a number. */
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
