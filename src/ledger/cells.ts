import { chunkSize } from '../model/row.ts';
import { attemptsMax, attemptsOf, type Cell, untouched } from './cell.ts';

/*
 * The bytes of a ledger chunk, all big-endian: when its last pass ended (6 bytes, ms); when its ids were settled (4 bytes a time, in seconds
 * since 1970, rounded up, 0 = not yet); 2 bytes a cell.
 *
 * A time for each id would cost twice what its cell does. Neighbours are settled together as a rule, so ten of them share one: that of the
 * last. Ids that needed more than the quick tries of a first pass are settled much later, and share one with those of their chunk that
 * needed as many.
 */
const timesFrom = 6;
const timeBytes = 4;
const sharing = 10;
const quickAttempts = 3;
const places = Math.ceil(chunkSize / sharing);
export const headerBytes = timesFrom + timeBytes * (places + attemptsMax - quickAttempts);

export type LedgerChunk = { passEndedAt: number; times: Buffer; cells: Cell[] };

/** The ledger chunk of `size` ids nobody has touched. */
export function emptyLedgerChunk(size: number): Buffer {
  return Buffer.alloc(headerBytes + 2 * size, untouched);
}

export function decodeLedgerChunk(bytes: Buffer): LedgerChunk {
  const cells: Cell[] = [];
  for (let at = headerBytes; at < bytes.length; at += 2) cells.push((bytes[at]! << 8) | bytes[at + 1]!);
  return { passEndedAt: bytes.readUIntBE(0, 6), times: bytes.subarray(timesFrom, headerBytes), cells };
}

/** By when a settled id had its outcome, in ms since 1970, and never before it had; 0 = nobody has noted it. */
export function settledAtOf({ times, cells }: Pick<LedgerChunk, 'times' | 'cells'>, index: number): number {
  const attempts = attemptsOf(cells[index]!);
  const place = attempts > quickAttempts ? places + attempts - quickAttempts - 1 : Math.floor(index / sharing);
  return times.readUInt32BE(timeBytes * place) * 1_000;
}

/** Lua, an expression: the place of the time of an id. The same as above. */
export function placeLua(index: string, attempts: string): string {
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
