import { createHash, type Hash } from 'node:crypto';
import { mkdir, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { ExpungeError } from '../errors.ts';
import { countIds, type IdCounts, type Resource } from '../model/resource.ts';
import type { Position, Row } from '../model/row.ts';
import { isStalePath, processName } from '../stale-path.ts';
import { systemCode } from '../system-errors.ts';
import { type DeduplicationResult, deduplicate, type SpooledId } from './deduplicate.ts';
import { joinProfiles, judgeShapes, type ShapeProfile } from './id-shapes.ts';
import { NearMisses } from './near-misses.ts';
import { ResourceNumbers } from './resource-numbers.ts';
import {
  BlockFile,
  bucketCount,
  chooseBucket,
  cutId,
  encodeRow,
  headerBytes,
  maxRowBytes,
  placeBytes,
  spoolFile,
} from './spool-files.ts';

/** One list on disk: every row in order, with duplicates and protected ids marked. */
export type Spool = {
  folder: string;
  files: string[]; // names as shown; a Position's `file` is an index here
  rows: number; // = ids + rejected + duplicates + protected
  ids: IdCounts; // to be sent
  resources: ResourceNumbers;
  rejected: number;
  rejectedByCode: Record<string, number>;
  duplicates: number;
  protected: number;
  protectedList: ProtectedList | null; // the content of the protect file; null without one
  unmatched: number; // protected ids that match no row
  nearMiss: string | null; // a protected id that misses an id of the list only by the way it is written, in words
  shapes: ShapeProfile; // what the ids to be sent look like, also of those that `takeIds` holds back
  limited: boolean; // whether the input had more rows than --limit
  layout: string; // hash of file names and lines: differs if the same rows have other positions
  sha256: string; // hash over resource, id and reject of each row in order, which rows are protected, and the names of configured resources
  first: { resource: Resource; id: string } | null; // the first id to be sent
  last: { resource: Resource; id: string } | null;
  heldBack?: HeldBack; // see `takeIds`
};

/** The first row whose id is not taken, its position, and the number of rows that are held back: this id, later ids, and their duplicates. */
export type HeldBack = Position & { row: number; rows: number };

/** The content of a file of protected ids when it was read. */
export type ProtectedList = { ids: number; sha256: string };

type SpoolOptions = {
  files: string[];
  protectedIds: AsyncIterable<string[]> | null;
  limit: number | null; // takes at most this many rows, including rejected ones
};

/**
 * Reads all rows to a spool in this empty folder, in bounded memory. The same rows give the same spool. Throws what reading throws, and USAGE if the
 * disk is full. The caller has to remove the folder.
 */
export async function spoolRows(batches: AsyncIterable<Row[]>, folder: string, options: SpoolOptions): Promise<Spool> {
  try {
    const writer = new SpoolWriter(folder);
    const protectedList = options.protectedIds && (await writeProtected(options.protectedIds, writer));
    const limited = await writeRows(batches, writer, options.limit ?? Number.POSITIVE_INFINITY);
    writer.flush();
    const found = await deduplicate(folder, hashRow(writer.hash));
    for (const name of writer.resources.configured) writer.hash.update(`resource ${name}\n`);
    const spool = summarise(folder, options.files, writer, found);
    const nearMiss = writer.nearMisses.find(spool.shapes.length !== null);
    return { ...spool, limited, protectedList, nearMiss };
  } catch (error) {
    throw diskFull(folder, error) ?? error;
  }
}

/** Creates a folder for one spool in the state folder, closed to other users; its name shows which process owns it. */
export async function createSpoolFolder(stateDir: string): Promise<string> {
  const folder = join(stateDir, 'spool', processName());
  await mkdir(folder, { recursive: true, mode: 0o700 });
  return folder;
}

/** Removes a spool. Repeating it is harmless. */
export async function removeSpool(folder: string): Promise<void> {
  await rm(folder, { recursive: true, force: true });
}

/** Removes the spools of processes that have ended, and returns how many. Safe while other processes write theirs. */
export async function removeStaleSpools(stateDir: string): Promise<number> {
  const root = join(stateDir, 'spool');
  const names = await readdir(root).catch(() => []);
  const stale: string[] = [];
  for (const name of names) if (await isStalePath(join(root, name), name)) stale.push(name);
  await Promise.all(stale.map((name) => removeSpool(join(root, name))));
  return stale.length;
}

async function writeProtected(batches: AsyncIterable<string[]>, writer: SpoolWriter): Promise<ProtectedList> {
  const hash = createHash('sha256');
  let count = 0;
  for await (const ids of batches) {
    for (const id of ids) {
      writer.addProtected(id);
      hash.update(`${id}\n`);
    }
    count += ids.length;
  }
  return { ids: count, sha256: hash.digest('hex') };
}

/** Writes the rows. Returns whether there are more rows than the limit; it reads one more row to find out. */
async function writeRows(batches: AsyncIterable<Row[]>, writer: SpoolWriter, limit: number): Promise<boolean> {
  for await (const rows of batches) {
    const room = limit - writer.rows;
    for (const row of rows.length > room ? rows.slice(0, room) : rows) writer.add(row);
    if (rows.length > room) return true;
  }
  return false;
}

function summarise(folder: string, files: string[], writer: SpoolWriter, found: DeduplicationResult) {
  const { resources } = writer;
  const ids = countIds(new Map([...found.ids].map(([number, count]) => [resources.nameOf(number)!, count])));
  const { duplicates, protected: kept, unmatched } = found;
  const counts = { rows: writer.rows, ids, duplicates, protected: kept, unmatched };
  const rejected = Object.values(writer.rejected).reduce((sum, count) => sum + count, 0);
  const sha256 = writer.hash.digest('hex');
  const layout = writer.layout.update(JSON.stringify(files)).digest('hex');
  const shapes = joinProfiles([...found.ids.keys()].map((number) => profileOf(found, number, files)));
  const ends = { first: endOf(found.first, resources), last: endOf(found.last, resources) };
  return {
    folder,
    files,
    resources,
    ...counts,
    rejected,
    rejectedByCode: writer.rejected,
    layout,
    sha256,
    shapes,
    ...ends,
  };
}

/** What the ids of one resource look like. Shapes that were not counted can be of any resource. */
function profileOf({ shapes, ids }: DeduplicationResult, resource: number, files: readonly string[]): ShapeProfile {
  const counted = shapes.shapes.filter((shape) => shape.resource === resource);
  return judgeShapes(counted, ids.get(resource)! - counted.reduce((sum, { count }) => sum + count, 0), files);
}

function endOf(kept: SpooledId | null, resources: ResourceNumbers): Spool['first'] {
  return kept && { resource: resources.nameOf(kept.resource)!, id: kept.id };
}

/** Adds protected rows to the hash, so that the run of the same list without protection is not resumed. */
function hashRow(hash: Hash): (row: number) => void {
  return (row) => hash.update(`protected ${row}\n`);
}

function diskFull(folder: string, error: unknown): ExpungeError | null {
  if (!['ENOSPC', 'EDQUOT'].includes(systemCode(error))) return null;
  return new ExpungeError('USAGE', `${folder}: no space left for the rows of this list; nothing was sent`, {
    cause: error,
    next: 'free space, or name a folder on another disk with --state-dir',
  });
}

/** Writes the rows of one spool, in order and to their buckets. Memory: 256 blocks of each kind of bucket. */
class SpoolWriter {
  readonly #rows: BlockFile;
  readonly #positions: BlockFile;
  readonly #buckets: BlockFile[];
  readonly #protect: BlockFile[];
  readonly #scratch = Buffer.alloc(maxRowBytes);
  readonly hash = createHash('sha256');
  readonly resources = new ResourceNumbers();
  readonly layout = createHash('sha256'); // hash over the positions
  rows = 0;
  rejected: Record<string, number> = {};
  readonly nearMisses = new NearMisses();

  constructor(folder: string) {
    const each = (path: (folder: string, n: number) => string) =>
      Array.from({ length: bucketCount }, (_, n) => new BlockFile(path(folder, n), 32 * 1024));
    this.#rows = new BlockFile(spoolFile.rows(folder), 256 * 1024, (block) => this.hash.update(block));
    this.#positions = new BlockFile(spoolFile.positions(folder), 64 * 1024, (block) => this.layout.update(block));
    this.#buckets = each(spoolFile.bucket);
    this.#protect = each(spoolFile.protect);
  }

  add(row: Row): void {
    const id = row.reject === null ? row.id : cutId(row.id);
    const at = this.#rows.room(maxRowBytes);
    const length = encodeRow(this.#rows.block, at, this.resources.numberOf(row.resource), row.reject, id);
    this.#rows.add(length);
    this.#addPosition(row);
    if (row.reject === null) {
      this.nearMisses.compare(row.id);
      this.#addToBucket(row, at, length);
    } else this.rejected[row.reject] = (this.rejected[row.reject] ?? 0) + 1;
    this.rows += 1;
  }

  addProtected(id: string): void {
    this.nearMisses.protect(id);
    const length = encodeRow(this.#scratch, 0, 0, null, id);
    const file = this.#protect[chooseBucket(id, this.#scratch, headerBytes, length)]!;
    const at = file.reserve(length);
    this.#scratch.copy(file.block, at, 0, length);
  }

  /** Writes everything to disk. */
  flush(): void {
    for (const file of [this.#rows, this.#positions, ...this.#buckets, ...this.#protect]) file.flush();
  }

  #addPosition(row: Row): void {
    const at = this.#positions.reserve(8);
    this.#positions.block.writeUInt32LE(row.file, at);
    this.#positions.block.writeUInt32LE(row.line, at + 4);
  }

  /** Adds a row to its bucket. `at`: the place of the row in the block of `rows`. */
  #addToBucket(row: Row, at: number, length: number): void {
    const { block } = this.#rows;
    const bucket = this.#buckets[chooseBucket(row.id, block, at + headerBytes, at + length)]!;
    const start = bucket.reserve(placeBytes + length);
    bucket.block.writeUInt32LE(this.rows, start);
    bucket.block.writeUInt32LE(row.file, start + 4);
    bucket.block.writeUInt32LE(row.line, start + 8);
    block.copy(bucket.block, start + placeBytes, at, at + length);
  }
}
