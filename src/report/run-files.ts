import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { auditFacts, readAudit } from '../ledger/audit.ts';
import { type OutcomeRow, readOutcomes } from '../ledger/outcome-rows.ts';
import { isFinalized, type Run } from '../ledger/run.ts';
import { isSuccess, isWorthAnotherRun, type Outcome, outcomes } from '../model/outcome.ts';
import { rehearsalFacts } from '../model/rehearsal.ts';
import type { RedisClient } from '../redis/client.ts';
import { keepUntil } from './file-retention.ts';
import { FailureSamples, renderRun } from './html-report.ts';
import { notWritten, ReportFile, type RowStyle, reportHeader, reportText, writeReportFile } from './report.ts';

/** A file of a run and its number of rows, without the header. */
type RunFile = { path: string; rows: number };

/** The files of a run; `failures` is null if no row needs another run. */
export type RunFiles = { outcomes: RunFile; failures: RunFile | null; groups: FailureGroup[] };

/**
 * Writes `outcomes.csv` with all rows, `failures.csv` with the rows worth another run and `report.html` with a page, in one pass over the ledger.
 * Also writes `audit.ndjson` with the actions on the run. The files of a finalized run are kept for as long as Redis keeps the run. Repeating it
 * replaces them. Throws INTERNAL if a file cannot be written; then the old file of that name is unchanged.
 */
export async function writeRunFiles(redis: RedisClient, run: Run, folder: string): Promise<RunFiles> {
  await makeFolder(folder, run);
  const isRehearsal = run.rehearsalOf !== '';
  const style: RowStyle = { format: 'csv', spreadsheetSafe: false, isRehearsal };
  if (isFinalized(run.state) || isRehearsal) await keepUntil(folder, Date.now() + run.keepMs).catch(() => {}); // without a date they are kept for ever
  await writeAudit(redis, run, join(folder, 'audit.ndjson'));
  const all = new List(await ReportFile.open(join(folder, 'outcomes.csv'), run.id), style);
  try {
    const failed = new List(await ReportFile.open(join(folder, 'failures.csv'), run.id), style);
    try {
      const samples = new FailureSamples();
      const groups = await fillLists(readOutcomes(redis, run), all, failed, samples);
      const page = await renderRun(redis, run, samples);
      await writeReportFile(join(folder, 'report.html'), run.id, (sink) => sink(page));
      return { outcomes: await all.keep(), failures: await keepIfAny(failed), groups };
    } finally {
      await failed.file.discard();
    }
  } finally {
    await all.file.discard();
  }
}

async function makeFolder(folder: string, run: Run): Promise<void> {
  try {
    await mkdir(folder, { recursive: true, mode: 0o700 });
  } catch (error) {
    throw notWritten(folder, run.id, error);
  }
}

async function writeAudit(redis: RedisClient, run: Run, path: string): Promise<void> {
  const lines = (await readAudit(redis, run)).map(
    (entry) => `${JSON.stringify({ ...rehearsalFacts(run), ...auditFacts(entry) })}\n`,
  );
  await writeReportFile(path, run.id, (sink) => sink(lines.join('')));
}

async function fillLists(
  pages: AsyncIterable<OutcomeRow[]>,
  all: List,
  failed: List,
  samples: FailureSamples,
): Promise<FailureGroup[]> {
  const groups = new FailureGroups();
  await all.begin();
  await failed.begin();
  for await (const page of pages) {
    for (const row of page) {
      groups.add(row);
      samples.add(row);
    }
    await all.add(page);
    await failed.add(page.filter((row) => isWorthAnotherRun(row.outcome)));
  }
  return groups.list();
}

/** Keeps a list with rows. Otherwise removes the earlier file, as its failures may have been settled since. */
async function keepIfAny(list: List): Promise<RunFile | null> {
  if (list.rows > 0) return list.keep();
  await rm(list.file.path, { force: true });
  return null;
}

/** A report file and its number of rows. */
class List {
  readonly file: ReportFile;
  readonly #style: RowStyle;
  rows = 0;

  constructor(file: ReportFile, style: RowStyle) {
    this.file = file;
    this.#style = style;
  }

  async begin(): Promise<void> {
    await this.file.write(reportHeader(this.#style));
  }

  async add(page: OutcomeRow[]): Promise<void> {
    this.rows += page.length;
    if (page.length > 0) await this.file.write(reportText(page, this.#style));
  }

  async keep(): Promise<RunFile> {
    await this.file.commit();
    return { path: this.file.path, rows: this.rows };
  }
}

/** Rows with the same outcome for the same reason, and the first three of their ids. */
type FailureGroup = { outcome: Outcome; code: string; count: number; samples: string[] };

const samplesMax = 3;

/** Groups rows that need attention, one by one. The number of reasons bounds its memory. */
export class FailureGroups {
  readonly #groups = new Map<string, FailureGroup>();

  add({ outcome, code, id }: OutcomeRow): void {
    if (outcome === 'pending' || isSuccess(outcome)) return;
    const key = `${outcome} ${code}`;
    const group = this.#groups.get(key) ?? { outcome, code, count: 0, samples: [] };
    group.count += 1;
    if (group.samples.length < samplesMax) group.samples.push(id);
    this.#groups.set(key, group);
  }

  /** The groups by outcome, largest first within each outcome. */
  list(): FailureGroup[] {
    const rank = ({ outcome }: FailureGroup) => outcomes.indexOf(outcome);
    return [...this.#groups.values()].sort((a, b) => rank(a) - rank(b) || b.count - a.count);
  }
}
