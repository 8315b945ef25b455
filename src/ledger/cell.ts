import {
  inDoubt,
  type Outcome,
  rankOf,
  type SentOutcome,
  sentOutcomes,
  statusOfCode,
  textOfCode,
} from '../model/outcome.ts';
import { chunkSize } from '../model/row.ts';
import { cancelCode } from '../model/selection.ts';
import { isFinalized, type Run } from './run.ts';

/**
 * The state of one id as a 16-bit number. `max` merges two results for an id, so results can arrive twice, late and in any order, and the ledger is
 * the same.
 *
 *   open     000 d mmmmmmmm aaaa   doubt (in doubt), marks, attempts
 *   settled  rrr aaaa ccccccccc    rank of the outcome, attempts, code
 *
 * An odd number of marks means that a request may be in flight, without a result in the ledger yet.
 */
export type Cell = number;

const rankShift = 13;
const settledFrom = 1 << rankShift;
const attemptsShift = 9; // in a settled cell; the code is in the bits below
const codeMax = (1 << attemptsShift) - 1;
export const doubt = 0x1000;
const markShift = 4;
const marksMax = 255;
const attemptsMax = 15;
const manyMarks = 128;

/** Attempts in an id's first pass. */
export const quickAttempts = 3;

/** Lua: the numbers above as divisors. By rank: the field of the run record that counts an outcome, and the rank of that outcome in doubt. */
export const cellConstants = `
local rankStep, settledFrom, attemptsStep, doubt, markStep = ${1 << rankShift}, ${settledFrom}, ${1 << attemptsShift}, ${doubt}, ${1 << markShift}
local marksSize, attemptsSize = ${marksMax + 1}, ${attemptsMax + 1}
local outcomes = {${sentOutcomes.map((outcome) => `'${outcome}'`).join(', ')}}
local inDoubt = {${sentOutcomes.map((outcome) => rankOf(inDoubt(outcome))).join(', ')}}
`;

/** The number that marks are reset to: enough to show that the id has waited often. */
export const marksKept = 16;

export const untouched: Cell = 0;

export function isSettled(cell: Cell): boolean {
  return cell >= settledFrom;
}

/** Requests sent for the id. Counting stops at 15. */
export function countAttempts(cell: Cell): number {
  return (isSettled(cell) ? cell >> attemptsShift : cell) & attemptsMax;
}

/** Whether an earlier request for an open id may have been executed. */
export function isDoubtful(cell: Cell): boolean {
  return (cell & doubt) !== 0;
}

/** Whether a request for an open id may be in flight. */
export function isMarked(cell: Cell): boolean {
  return !isSettled(cell) && marksOf(cell) % 2 === 1;
}

function marksOf(cell: Cell): number {
  return (cell >> markShift) & marksMax;
}

/** The number of times the id was marked since its marks were last reset. */
export function timesMarked(cell: Cell): number {
  return Math.ceil(marksOf(cell) / 2);
}

/** Whether the marks of an open id should be reset now. Done in time: no pass adds as many marks as there is room for above this number. */
export function hasManyMarks(cell: Cell): boolean {
  return !isSettled(cell) && marksOf(cell) >= manyMarks;
}

/**
 * Resets the marks of a cell when a chunk is returned with `resetsMarks`, unless a request for the id may be in flight. The script does the same in
 * Lua.
 */
export function resetMarks(cell: Cell): Cell {
  const marks = marksOf(cell);
  return isSettled(cell) || marks % 2 === 1 || marks <= marksKept ? cell : cell - ((marks - marksKept) << markShift);
}

/**
 * Sets the mark that is written before a request is sent: the number of marks becomes odd. If the cell is already marked, its holder died while the
 * request was in flight, so the cell becomes doubtful. The update script does the same in Lua.
 */
export function mark(cell: Cell): Cell {
  const marks = marksOf(cell);
  if (marks % 2 === 1) return cell | doubt;
  const marked = cell + (1 << markShift);
  return marks + 1 === marksMax ? marked | doubt : marked;
}

/** The cell once all requests of a marked id have ended, none with a final answer. `ambiguous`: one of them may have been executed. */
export function unmark(marked: Cell, attempts: number, ambiguous: boolean): Cell {
  const marks = Math.min(marksMax, marksOf(marked) + 1);
  return (marked & doubt) | (ambiguous ? doubt : 0) | (marks << markShift) | Math.min(attemptsMax, attempts);
}

/** The final cell of an id. */
export function settle(outcome: SentOutcome, attempts: number, code: number): Cell {
  return (rankOf(outcome) << rankShift) | (Math.min(attemptsMax, attempts) << attemptsShift) | code;
}

/** Merges two results for one id: the result with the better evidence wins. */
export function merge(a: Cell, b: Cell): Cell {
  return Math.max(a, b);
}

/**
 * Merges a result into the ledger's cell. A former holder cannot be sure of an outcome, because the next holder may have sent a request since. So its
 * outcome becomes the outcome in doubt. Nor does it know whether a request is in flight, so of its open cells only the doubt counts. The update
 * script does the same in Lua.
 */
export function mergeResult(known: Cell, result: Cell, isHolder: boolean): Cell {
  if (!isHolder && !isSettled(result)) return isSettled(known) ? known : known | (result & doubt);
  if (isHolder || !isSettled(result)) return merge(known, result);
  const outcome = toSentOutcome(result);
  return merge(known, result + ((rankOf(inDoubt(outcome)) - rankOf(outcome)) << rankShift));
}

/** The part of a report that is about one id. */
export type IdState = { outcome: Outcome | 'pending'; status: number | null; code: string; attempts: number };

/** The state in a cell of a run that is not finalized: an open cell is `pending`. */
export function readCell(cell: Cell): IdState {
  const attempts = countAttempts(cell);
  if (!isSettled(cell)) return { outcome: 'pending', status: null, code: '', attempts };
  const code = cell & codeMax;
  return { outcome: toSentOutcome(cell), status: statusOfCode(code), code: textOfCode(code), attempts };
}

/** The outcome in a settled cell. */
export function toSentOutcome(cell: Cell): SentOutcome {
  return sentOutcomes[(cell >> rankShift) - 1]!;
}

/**
 * The state in a cell of a run that was finalized before all ids were settled. In a run in doubt no open id reads as never sent: Redis may have lost
 * its mark.
 */
export function readFinalCell(cell: Cell, isRunInDoubt = false): IdState {
  if (isSettled(cell)) return readCell(cell);
  const attempts = countAttempts(cell);
  const finalized = (outcome: Outcome): IdState => ({ outcome, status: null, code: cancelCode, attempts });
  if (isRunInDoubt || isDoubtful(cell) || isMarked(cell)) return finalized('unknown');
  return finalized(attempts > 0 ? 'failed' : 'not_attempted');
}

/*
 * The bytes of a ledger chunk, all big-endian:
 * - the time when its last pass ended (6 bytes, ms);
 * - the times when its ids were settled (4 bytes per time, in seconds since 1970, rounded up, 0 = not yet);
 * - 2 bytes per cell.
 *
 * A time for each id would cost twice as much as its cell. Neighbouring ids are usually settled together, so each ten ids share the time of the last
 * of them. Ids that needed more than the quick attempts of the first pass are settled much later. They share a time with the ids of their chunk that
 * needed as many attempts.
 */
const timesFrom = 6;
const timeBytes = 4;
const sharing = 10;
const places = Math.ceil(chunkSize / sharing);
export const headerBytes = timesFrom + timeBytes * (places + attemptsMax - quickAttempts);

export type LedgerChunk = { passEndedAt: number; times: Buffer; cells: Cell[] };

/** The ledger chunk of `size` untouched ids. */
export function emptyLedgerChunk(size: number): Buffer {
  return Buffer.alloc(headerBytes + 2 * size, untouched);
}

export function decodeLedgerChunk(bytes: Buffer): LedgerChunk {
  const cells: Cell[] = [];
  for (let at = headerBytes; at < bytes.length; at += 2) cells.push((bytes[at]! << 8) | bytes[at + 1]!);
  return { passEndedAt: bytes.readUIntBE(0, 6), times: bytes.subarray(timesFrom, headerBytes), cells };
}

/** The latest time at which a settled id got its outcome, in ms since 1970; 0 = not recorded. */
export function readSettledAt({ times, cells }: Pick<LedgerChunk, 'times' | 'cells'>, index: number): number {
  return times.readUInt32BE(timeBytes * timePlace(index, countAttempts(cells[index]!))) * 1_000;
}

/** The place of an id's time. */
export function timePlace(index: number, attempts: number): number {
  return attempts > quickAttempts ? places + attempts - quickAttempts - 1 : Math.floor(index / sharing);
}

/** Lua, an expression: the same as `timePlace`. */
export function timePlaceLua(index: string, attempts: string): string {
  const late = `${places - quickAttempts - 1} + ${attempts}`;
  return `${attempts} > ${quickAttempts} and ${late} or (${index} - ${index} % ${sharing}) / ${sharing}`;
}

/** Lua: writes the time to a set of places. */
export const writeTimesFunction = `
local function writeTimes(key, noted)
  local seconds = redis.call('TIME')[1] + 1
  local time = struct.pack('>I4', seconds)
  local first
  for place = 0, ${places + attemptsMax - quickAttempts} do
    if noted[place] then
      first = first or place
    elseif first then
      redis.call('SETRANGE', key, ${timesFrom} + ${timeBytes} * first, string.rep(time, place - first))
      first = nil
    end
  end
end
`;

/** Reads the cells of a run in its current state. */
export function cellReader({ state, doubtSince }: Pick<Run, 'state' | 'doubtSince'>): (cell: Cell) => IdState {
  return isFinalized(state) ? (cell) => readFinalCell(cell, doubtSince > 0) : readCell;
}

/** A result for one id: its index in the chunk and its new cell. */
export type CellResult = { index: number; cell: Cell };

// Byte by byte: this runs for every id, and a call for each number would cost several times as much.

export function packResults(results: readonly CellResult[]): Buffer {
  const bytes = Buffer.allocUnsafe(4 * results.length);
  let at = 0;
  for (const { index, cell } of results) {
    bytes[at++] = index >> 8;
    bytes[at++] = index & 255;
    bytes[at++] = cell >> 8;
    bytes[at++] = cell & 255;
  }
  return bytes;
}

export function packIndexes(indexes: readonly number[]): Buffer {
  const bytes = Buffer.allocUnsafe(2 * indexes.length);
  let at = 0;
  for (const index of indexes) {
    bytes[at++] = index >> 8;
    bytes[at++] = index & 255;
  }
  return bytes;
}

export function unpackCells(bytes: Buffer): Cell[] {
  const cells: Cell[] = [];
  for (let at = 0; at < bytes.length; at += 2) cells.push((bytes[at]! << 8) | bytes[at + 1]!);
  return cells;
}
