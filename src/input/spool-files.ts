import { join } from 'node:path';
import { type Resource, resources } from '../model/outcome.ts';
import { type RejectCode, rejectCodes } from '../model/row.ts';

// A spool is a folder with:
//   rows          per row: resource, reject, length of the id (header below), the id; hashed, it names the list
//   positions     per row: file, line
//   bucket-<nn>   per row that can be sent, by hash of its id: number of the row, file, line, then as in `rows`
//   protect-<nn>  per protected id, by the same hash: as in `rows`; both kinds are gone once their bucket is settled
//   settled-<n>   per duplicate or protected row among the nth 262,144 rows: number of the row, first file, first line
export const spoolFile = {
  rows: (folder: string) => join(folder, 'rows'),
  positions: (folder: string) => join(folder, 'positions'),
  bucket: (folder: string, n: number) => join(folder, `bucket-${n}`),
  protect: (folder: string, n: number) => join(folder, `protect-${n}`),
  settled: (folder: string, n: number) => join(folder, `settled-${n}`),
} as const;

export const bucketCount = 256;
export const rowsPerSettledFile = 2 ** 18;
export const headerBytes = 4;
export const placeBytes = 12; // number of the row, file, line
/** The first line of a protected row: real lines count from 1. */
export const protectedLine = 0;

/** Writes a row as it stands in `rows` to the beginning of `into` and returns how many bytes it took. */
export function encodeRow(into: Buffer, resource: Resource | null, reject: RejectCode | null, id: string): number {
  const length = into.write(id, headerBytes);
  if (length > into.length - headerBytes - 4) throw new Error('a row does not fit: its id would be cut'); // 4: one character
  into[0] = resource === null ? 0 : resources.indexOf(resource) + 1;
  into[1] = reject === null ? 0 : rejectCodes.indexOf(reject) + 1;
  into.writeUInt16LE(length, 2);
  return headerBytes + length;
}

export function resourceAt(bytes: Buffer, at: number): Resource | null {
  return resources[bytes[at]! - 1] ?? null;
}

export function rejectAt(bytes: Buffer, at: number): RejectCode | null {
  return rejectCodes[bytes[at + 1]! - 1] ?? null;
}

/** Which bucket an id goes to: the same for annotations and views, so that one protected id meets both. */
export function bucketOf(id: string): number {
  let hash = id.length;
  for (let i = 0; i < id.length; i++) hash = (Math.imul(hash, 31) + id.charCodeAt(i)) | 0;
  return Math.imul(hash, 0x9e3779b1) >>> 24;
}

/** Cut to 200 characters, as rows that are never sent are kept; never in the middle of a character. */
export function cutId(id: string): string {
  return id.length <= 200 ? id : id.slice(0, 200).replace(/[\ud800-\udbff]$/, '');
}
