import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { Config } from '../config.ts';
import { ExpungeError, systemCode } from '../errors.ts';
import { openInputs } from '../input/open-inputs.ts';
import { readProtected } from '../input/read-protected.ts';
import { readRows } from '../input/read-rows.ts';
import type { Row } from '../input/row.ts';
import { type Spool, spoolRows } from '../input/spool.ts';
import { createSpoolFolder, removeSpool, removeStaleSpools } from '../input/spool-folder.ts';
import { writeRejects } from '../input/write-rejects.ts';
import { startProgress } from '../terminal/progress.ts';
import { count } from '../terminal/words.ts';
import type { Invocation } from './command.ts';

/** A list that was read to its end, and where its rejected rows are written out, if there are any. */
export type List = { spool: Spool; rejectsFile: string | null };

/** Reads and validates the whole list, does `body` with it, and removes the spool. Nothing is sent or stored before it is whole. */
export async function withList<T>(invocation: Invocation, body: (list: List) => Promise<T>): Promise<T> {
  const { stateDir } = invocation.config;
  await makeStateDir(stateDir);
  const folder = await inStateDir(stateDir, () => makeSpool(stateDir));
  try {
    const spool = await readList(invocation, folder);
    const rejectsFile = await inStateDir(stateDir, () => writeRejectsFile(spool, stateDir));
    return await body({ spool, rejectsFile });
  } finally {
    await removeSpool(folder);
  }
}

/** Makes the state folder, closed to other users. Throws USAGE where that is impossible. */
export async function makeStateDir(stateDir: string): Promise<void> {
  await inStateDir(stateDir, () => mkdir(stateDir, { recursive: true, mode: 0o700 }));
}

/** Does something with files in the state folder. Throws USAGE, in words, for what the disk refuses; nothing was sent by then. */
async function inStateDir<T>(stateDir: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (systemCode(error) === '') throw error;
    const message = `--state-dir ${stateDir}: expected a folder that can be written (${systemCode(error)}); nothing was sent`;
    throw new ExpungeError('USAGE', message, { cause: error, next: 'name another folder with --state-dir' });
  }
}

async function makeSpool(stateDir: string): Promise<string> {
  await removeStaleSpools(stateDir);
  return createSpoolFolder(stateDir);
}

async function readList({ args, config, stdin, stderr, env }: Invocation, folder: string): Promise<Spool> {
  refuseSilentTerminal(args, stdin);
  const files = await openInputs(args, stdin);
  const names = files.map((file) => file.name);
  let rows = 0;
  const progress = startProgress(stderr, env, () => `Reading ${names.join(', ')}: ${count(rows)} rows`);
  try {
    const batches = countRows(readRows(files, inputOptions(config)), (n) => {
      rows += n;
    });
    const protectedIds = config.protect === undefined ? null : readProtected(config.protect, inputOptions(config));
    return await spoolRows(batches, folder, { files: names, protectedIds, limit: config.limit ?? null });
  } finally {
    progress.stop();
  }
}

function inputOptions(config: Config) {
  return {
    resource: config.resource ?? null,
    resourceColumn: config.resourceColumn ?? null,
    format: config.format ?? null,
    column: config.column,
    noHeader: config.noHeader,
    delimiter: config.delimiter,
    allowIdChars: config.allowIdChars,
  };
}

function refuseSilentTerminal(args: string[], stdin: NodeJS.ReadStream): void {
  if (!args.includes('-') || !stdin.isTTY) return;
  throw new ExpungeError('USAGE', 'ids are expected on stdin, but it is a terminal', {
    next: 'pipe them in, or name a file: expunge run FILE --resource annotations',
  });
}

async function* countRows(batches: AsyncIterable<Row[]>, add: (n: number) => void): AsyncGenerator<Row[]> {
  for await (const rows of batches) {
    add(rows.length);
    yield rows;
  }
}

async function writeRejectsFile(spool: Spool, stateDir: string): Promise<string | null> {
  if (spool.rejected === 0) return null;
  const folder = join(stateDir, 'rejects');
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const path = join(folder, `${spool.sha256.slice(0, 12)}.csv`);
  await writeRejects(spool, path);
  return path;
}
