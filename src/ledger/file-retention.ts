import { lstat, readdir, readFile, rm, rmdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { removeDrafts } from './report.ts';

/*
 * How long the files in a state folder are kept.
 *
 * The report of a run may be all that tells what became of its ids, and a folder may serve several Redis: so a run is never asked for. Its
 * folder says itself, in `kept-until`, which is written with the report of a run that is sealed, and which anybody may change or remove.
 * Only the files that we write go then, and the folder if nothing else is in it. Lists of rejected rows are made anew with each plan of the
 * same list; they go by their age.
 */

const dateFile = 'kept-until';
const reportFiles = ['outcomes.csv', 'failures.csv', 'audit.ndjson'];
const rejectsAtLeastMs = 30 * 86_400_000; // other lists may have been read with another --keep

/** Where the report files of a run stand. */
export function runFolder(stateDir: string, run: string): string {
  return join(stateDir, 'runs', run);
}

/** Notes that the files in the folder of a sealed run are kept until then, in ms since 1970. */
export async function keepUntil(folder: string, until: number): Promise<void> {
  await writeFile(join(folder, dateFile), `${new Date(until).toISOString()}\n`, { mode: 0o600 });
}

/** Until when the files in a run's folder are kept; null where nothing says so: for ever. */
export async function readKeptUntil(folder: string): Promise<number | null> {
  const text = (await readFile(join(folder, dateFile), 'utf8').catch(() => '')).trim();
  return /^\d{4}-\d\d-\d\dT\S+Z$/.test(text) ? Date.parse(text) || null : null;
}

/** Removes what has been kept for long enough. Never throws: what can't be removed stays. `now`: ms since 1970. */
export async function removeOldFiles(stateDir: string, keepMs: number, now: number): Promise<void> {
  await Promise.all([removeOldReports(stateDir, now), removeOldRejects(stateDir, keepMs, now)]).catch(() => {});
}

async function removeOldReports(stateDir: string, now: number): Promise<void> {
  const found = await readdir(join(stateDir, 'runs'), { withFileTypes: true }).catch(() => []);
  for (const entry of found) {
    const folder = runFolder(stateDir, entry.name);
    const until = entry.isDirectory() ? await readKeptUntil(folder) : null; // a link to a folder elsewhere is somebody's own
    if (until !== null && until < now) await removeReport(folder);
  }
}

/** The date goes last: a removal that was cut short goes on the next time. */
async function removeReport(folder: string): Promise<void> {
  for (const name of reportFiles) {
    await removeDrafts(join(folder, name));
    await rm(join(folder, name), { force: true });
  }
  await rm(join(folder, dateFile), { force: true });
  await rmdir(folder).catch(() => {}); // somebody has put something of their own there
}

async function removeOldRejects(stateDir: string, keepMs: number, now: number): Promise<void> {
  const folder = join(stateDir, 'rejects');
  const names = (await readdir(folder).catch(() => [])).filter((name) => /^[0-9a-f]{12}\.csv$/.test(name));
  for (const name of names) {
    const { mtimeMs } = await lstat(join(folder, name));
    if (now - mtimeMs > Math.max(keepMs, rejectsAtLeastMs)) await rm(join(folder, name), { force: true });
  }
}
