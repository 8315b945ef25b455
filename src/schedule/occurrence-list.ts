import { setImmediate } from 'node:timers/promises';
import { ExpungeError } from '../errors.ts';
import { readSpool } from '../input/chunk-ids.ts';
import { toInputOptions } from '../input/input-options.ts';
import { readProtected, toProtectFile } from '../input/read-protected.ts';
import { type Spool, spoolRows } from '../input/spool.ts';
import { readHeldBack, takeIds } from '../input/take-ids.ts';
import { withSpoolFolder } from '../input/with-list.ts';
import { sumIds } from '../model/resource.ts';
import type { Row } from '../model/row.ts';
import { readCarriedOver } from './carried-over.ts';
import { isSameAsLast, type ListFacts } from './guards.ts';
import { findLeftovers, type Leftovers, readLeft } from './leftovers.ts';
import { type ScheduledList, withScheduledList } from './read-scheduled-list.ts';
import { parseStoredSettings, type Schedule } from './schedule.ts';
import type { ScheduleDeps } from './schedule-store.ts';

/** The parts of an occurrence's run. */
export type OccurrenceList = {
  /** The list of the source, and the facts that the guards evaluate. */
  source: ScheduledList;
  facts: ListFacts;
  /** The ids of the run; ids beyond `--at-most` are held back. */
  spool: Spool;
  /** The number of ids that are held back. */
  carriedOver: number;
  /** The ids of the last run that this one sends again, how many of them it may have deleted, that run ('' = none), and the first file that they are in. */
  retried: { of: string; ids: number; mayBeGone: number; file: number };
  /** Whether the source gave the same list as last time, so that only ids that earlier occurrences left are deleted. */
  isRepeated: boolean;
  /** A note on what is left out, and why; '' = nothing. */
  note: string;
};

/**
 * Reads the list of a schedule and the ids that its earlier occurrences left, calls `body` with both as one list, and removes it. The list starts
 * with the carried-over ids, followed by the source, then the retried ids. An id in several of them is sent once. Throws as `withScheduledList`.
 */
export async function withOccurrenceList<T>(
  deps: ScheduleDeps,
  schedule: Schedule,
  stop: AbortSignal,
  body: (list: OccurrenceList) => Promise<T>,
): Promise<T> {
  return withScheduledList(deps, schedule, stop, async (source) => {
    const left = await findLeftovers(deps, schedule, stop);
    const isRepeated = source.nothing === '' && left.ids > 0 && isSameAsLast(source.spool, schedule);
    const context = { source, left, isRepeated };
    if (left.ids === 0)
      return body(await occurrenceListOf(context, { spool: source.spool, retriedFrom: { row: 0, file: 0 } }, schedule));
    return withSpoolFolder(deps.stateDir, async (folder) => {
      const joined = await joinLists(deps, schedule, context, folder, stop);
      return body(await occurrenceListOf(context, joined, schedule));
    });
  });
}

type Context = { source: ScheduledList; left: Leftovers; isRepeated: boolean };

/** A list, and the numbers of its first retried row and of the file of that row. */
type Joined = { spool: Spool; retriedFrom: { row: number; file: number } };

async function occurrenceListOf(
  { source, left, isRepeated }: Context,
  { spool: all, retriedFrom }: Joined,
  { atMost }: Schedule,
): Promise<OccurrenceList> {
  const spool = atMost > 0 ? await takeIds(all, atMost) : all;
  const sends = sumIds(spool.ids);
  const { spool: list } = source;
  const retriedIds = left.retried === null ? 0 : left.retried.ids - (await countHeldBack(spool, retriedFrom.row));
  const facts: ListFacts = {
    rows: list.rows,
    ids: sumIds(list.ids),
    sha256: list.sha256,
    protectedList: list.protectedList,
    protected: list.protected,
    unmatched: list.unmatched,
    nearMiss: list.nearMiss,
    limited: list.limited,
    shapes: list.shapes,
    left: left.ids,
    sends,
  };
  const { run, mayBeGone } = left.retried ?? { run: { id: '' }, mayBeGone: 0 };
  const { file } = retriedFrom;
  const retried =
    retriedIds > 0 ? { of: run.id, ids: retriedIds, mayBeGone, file } : { of: '', ids: 0, mayBeGone: 0, file };
  return { source, facts, spool, carriedOver: sumIds(all.ids) - sends, retried, isRepeated, note: left.note };
}

const rowsAtOnce = 1_000;

async function countHeldBack(spool: Spool, from: number): Promise<number> {
  let rows = 0;
  if (spool.heldBack === undefined) return rows;
  for (const { n } of readHeldBack(spool)) {
    if (n >= from) rows += 1;
    if (n % rowsAtOnce === 0) await setImmediate();
  }
  return rows;
}

async function joinLists(
  deps: ScheduleDeps,
  schedule: Schedule,
  { source, left, isRepeated }: Context,
  folder: string,
  stop: AbortSignal,
): Promise<Joined> {
  const { redis } = deps.ledger;
  const { carriedOver, retried } = left;
  const files: string[] = [];
  let rows = 0;
  let retriedFrom = { row: 0, file: 0 };
  async function* pages(): AsyncGenerator<Row[]> {
    for await (const page of parts()) {
      stop.throwIfAborted();
      yield page;
      rows += page.length;
    }
  }
  async function* parts(): AsyncGenerator<Row[]> {
    const place = { fp: deps.target.fp, name: schedule.name };
    if (carriedOver !== null) yield* placed(readCarriedOver(redis, place, carriedOver), carriedOver.files);
    if (!isRepeated) yield* placed(pagesOf(source.spool), source.spool.files);
    retriedFrom = { row: rows, file: files.length };
    if (retried !== null) yield* placed(readLeft(redis, retried), retried.run.files);
  }
  /** Places the rows of one list, which come file by file. Files with rows are appended to the earlier files, so positions stay in order. */
  async function* placed(list: AsyncIterable<Row[]>, names: string[]): AsyncGenerator<Row[]> {
    let last = -1;
    const place = (row: Row): Row => {
      if (row.file !== last) files.push(names[row.file]!);
      last = row.file;
      return { ...row, file: files.length - 1 };
    };
    for await (const page of list) yield page.map(place);
  }
  const settings = parseStoredSettings(schedule);
  const protectFile = toProtectFile(settings);
  const protectedIds = protectFile && readProtected(protectFile, toInputOptions(settings));
  const spool = await spoolRows(pages(), folder, { files, protectedIds, limit: null });
  if (spool.protectedList?.sha256 === source.spool.protectedList?.sha256) return { spool, retriedFrom };
  throw new ExpungeError('USAGE', `${settings.protect} was changed while the list was read`);
}

async function* pagesOf(spool: Spool): AsyncGenerator<Row[]> {
  let page: Row[] = [];
  for (const { file, line, resource, id, reject } of readSpool(spool)) {
    page.push({ file, line, resource, id, reject });
    if (page.length < rowsAtOnce) continue;
    yield page;
    await setImmediate();
    page = [];
  }
  if (page.length > 0) yield page;
}
