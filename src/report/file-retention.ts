import { lstat, readdir, readFile, rm, rmdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { isoTime } from '../format.ts';
import { removeDrafts } from './report.ts';

/*
 * How long the files in a state folder are kept.
 *
 * The report may be the only record of what happened to the ids of a run. A folder may be used with several Redis servers, so none of them decides.
 * The file `kept-until` in a run's folder holds the date. It is written with the report of a finalized run, and users may change or remove it. After
 * that date, only files that expunge writes are removed, and the folder if nothing else is in it. Each plan of the same list writes the lists of
 * rejected rows again, so they are removed by their age.
 */

const dateFile = 'kept-until';
const reportFiles = ['outcomes.csv', 'failures.csv', 'audit.ndjson', 'report.html'];
const minRejectsKeepMs = 30 * 86_400_000; // other lists may have been read with another --keep

/** The folder of the report files of a run. */
export function runFolder(stateDir: string, run: string): string {
  return join(stateDir, 'runs', run);
}

/** The folder of the report files of a rehearsal. */
export function rehearsalFolder(stateDir: string, run: string): string {
  return join(stateDir, 'rehearsals', run);
}

/** Finds the folders of report files here for a run id, or for the end or the beginning of an id. */
export async function keptFolders(stateDir: string, text: string): Promise<string[]> {
  const found = await readdir(join(stateDir, 'runs')).catch(() => []);
  const named = text === '' ? [] : found.filter((run) => run.startsWith(text) || run.endsWith(text));
  return named.map((run) => runFolder(stateDir, run));
}

/** Writes the time until which the files of a finalized run are kept, in ms since 1970. Throws errors of the file system. */
export async function keepUntil(folder: string, until: number): Promise<void> {
  await writeFile(join(folder, dateFile), `${isoTime(until)}\n`, { mode: 0o600 });
}

/** Reads the time until which the files in a run's folder are kept, in ms since 1970; null = for ever. */
export async function readKeptUntil(folder: string): Promise<number | null> {
  const text = (await readFile(join(folder, dateFile), 'utf8').catch(() => '')).trim();
  return /^\d{4}-\d\d-\d\dT\S+Z$/.test(text) ? Date.parse(text) || null : null;
}

/**
 * Removes expired reports, and lists of rejected rows older than `keepMs` (at least 30 days). Never throws: files that can't be removed stay. `now`:
 * ms since 1970.
 */
export async function removeOldFiles(stateDir: string, keepMs: number, now: number): Promise<void> {
  await Promise.all([removeOldReports(stateDir, now), removeOldRejects(stateDir, keepMs, now)]).catch(() => {});
}

async function removeOldReports(stateDir: string, now: number): Promise<void> {
  for (const folderOf of [runFolder, rehearsalFolder]) await removeExpired(dirname(folderOf(stateDir, 'x')), now);
}

async function removeExpired(parent: string, now: number): Promise<void> {
  const found = await readdir(parent, { withFileTypes: true }).catch(() => []);
  for (const entry of found) {
    const folder = join(parent, entry.name);
    const until = entry.isDirectory() ? await readKeptUntil(folder) : null; // a link leads to a folder elsewhere, which is not ours
    if (until !== null && until < now) await removeReport(folder);
  }
}

/** Removes a report, the date last, so that an interrupted removal continues the next time. */
async function removeReport(folder: string): Promise<void> {
  for (const name of reportFiles) {
    await removeDrafts(join(folder, name));
    await rm(join(folder, name), { force: true });
  }
  await rm(join(folder, dateFile), { force: true });
  await rmdir(folder).catch(() => {}); // fails if other files are in it
}

async function removeOldRejects(stateDir: string, keepMs: number, now: number): Promise<void> {
  const folder = join(stateDir, 'rejects');
  const names = (await readdir(folder).catch(() => [])).filter((name) => /^[0-9a-f]{12}\.csv$/.test(name));
  for (const name of names) {
    const { mtimeMs } = await lstat(join(folder, name));
    if (now - mtimeMs > Math.max(keepMs, minRejectsKeepMs)) await rm(join(folder, name), { force: true });
  }
}
