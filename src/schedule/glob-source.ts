import { glob, stat } from 'node:fs/promises';
import { resolve, sep } from 'node:path';
import { ExpungeError } from '../errors.ts';
import { openInputs } from '../input/open-inputs.ts';
import type { ListSource } from './list-source.ts';
import type { OpenSource, Surroundings } from './open-source.ts';

type Look = Map<string, { size: number; mtimeMs: number; ino: number }>;

/**
 * The files of the pattern that nobody writes to: those that are the same, in size and time, before and after the settling time. The others
 * are left for the next slot. Throws USAGE if no file is left.
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
  if (paths.length === 0) throw noFile(name, pattern, after.size);
  const files = await openInputs(paths, noStdin());
  if (archive === null) return { files, read: [] };
  const read = paths.map((path) => ({ path, size: after.get(path)!.size, mtimeMs: after.get(path)!.mtimeMs }));
  return { files, read };
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

function noFile(name: string, pattern: string, unfinished: number): ExpungeError {
  const words = unfinished === 0 ? 'no file is there' : `${unfinished} still being written, no finished file is there`;
  return new ExpungeError('USAGE', `source ${name}: ${words} (${pattern})`);
}

async function* noStdin(): AsyncGenerator<Buffer> {}
