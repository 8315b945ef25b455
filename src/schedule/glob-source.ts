import { glob, stat } from 'node:fs/promises';
import { dirname, isAbsolute, resolve, sep } from 'node:path';
import type { ListSource } from '../config/list-source.ts';
import { ExpungeError } from '../errors.ts';
import { plural } from '../format.ts';
import { openInputs } from '../input/open-inputs.ts';
import type { OpenSource, Surroundings } from './open-source.ts';

type Look = Map<string, { size: number; mtimeMs: number; ino: number }>;

/**
 * The files of the pattern that nobody writes to: those that are the same, in size and time, before and after the settling time. The others
 * are left for the next slot. If no file is left there is nothing to do where files are put away; elsewhere that throws USAGE, as a folder does
 * that is not there.
 */
export async function openGlob(
  name: string,
  { glob: pattern, archive, settleMs }: ListSource & { kind: 'glob' },
  { wait, stop }: Surroundings,
): Promise<OpenSource> {
  const before = await look(pattern, archive);
  if (before.size > 0) await wait(settleMs, stop);
  const after = await look(pattern, archive);
  const paths = [...after.keys()].filter((path) => isSame(before, after, path)).sort();
  if (paths.length === 0) return noFile(name, pattern, archive, after.size);
  const files = await openInputs(paths, noStdin());
  if (archive === null) return { files, read: [], nothing: '' };
  const read = paths.map((path) => ({ path, size: after.get(path)!.size, mtimeMs: after.get(path)!.mtimeMs }));
  return { files, read, nothing: '' };
}

/** What was put away is not read again, also where the pattern reaches into the archive. */
async function look(pattern: string, archive: string | null): Promise<Look> {
  const found: Look = new Map();
  for await (const path of glob(pattern)) {
    if (archive !== null && resolve(path).startsWith(`${resolve(archive)}${sep}`)) continue;
    const facts = await stat(path).catch(() => null); // it may have gone meanwhile
    if (facts?.isFile()) found.set(path, { size: facts.size, mtimeMs: facts.mtimeMs, ino: facts.ino });
  }
  return found;
}

function isSame(before: Look, after: Look, path: string): boolean {
  const [was, is] = [before.get(path), after.get(path)!];
  return was !== undefined && was.size === is.size && was.mtimeMs === is.mtimeMs && was.ino === is.ino;
}

async function noFile(name: string, pattern: string, archive: string | null, half: number): Promise<OpenSource> {
  const written = `${plural(half, 'files')} ${half === 1 ? 'is' : 'are'} still being written, no finished one is there`;
  const words = `${half === 0 ? 'no file is there' : written} (${pattern})`;
  if (archive === null) throw new ExpungeError('USAGE', `source ${name}: ${words}`);
  const folder = folderOf(pattern);
  const isThere = await stat(folder).then(
    (found) => found.isDirectory(),
    () => false,
  );
  // A disk that is not mounted looks like a folder without files.
  if (!isThere) throw new ExpungeError('USAGE', `source ${name}: there is no folder ${folder} (${pattern})`);
  return { files: [], read: [], nothing: words };
}

/** The part of a pattern that is one folder, whatever matches. */
function folderOf(pattern: string): string {
  const parts = dirname(pattern).split(sep);
  const first = parts.findIndex((part) => /[*?[{(!+@]/.test(part));
  return parts.slice(0, first === -1 ? undefined : first).join(sep) || (isAbsolute(pattern) ? sep : '.');
}

async function* noStdin(): AsyncGenerator<Buffer> {}
