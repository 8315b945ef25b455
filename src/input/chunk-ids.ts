import { type Resource, resources } from '../model/outcome.ts';
import { type Chunk, chunkSize, type SettledBlock, type SettledRow } from '../model/row.ts';
import { readSpool, type SpooledRow } from './read-spool.ts';
import type { Spool } from './spool.ts';
import { cutId } from './spool-files.ts';

/** How many chunks and blocks `readChunks` will make of a spool. */
export function countChunks(spool: Spool, size = chunkSize): { chunks: number; blocks: number } {
  const chunks = resources.reduce((sum, resource) => sum + Math.ceil(spool.ids[resource] / size), 0);
  return { chunks, blocks: Math.ceil((spool.rejected + spool.duplicates + spool.protected) / size) };
}

/**
 * The chunks and settled blocks of a spool, each kind numbered from 0. A chunk holds one resource, in input order; each comes
 * when it is full, the rests come last. The same spool gives the same chunks. Reading is synchronous: await between them.
 */
export function* readChunks(spool: Spool, size = chunkSize): Generator<Chunk | SettledBlock> {
  const open = new OpenChunks();
  for (const row of readSpool(spool)) {
    const sent = row.reject === null && row.settled === null;
    const length = sent ? open.addId(row) : open.addSettled(row);
    if (length === size) yield sent ? open.takeChunk(row.resource!) : open.takeBlock();
  }
  for (const resource of resources) if (open.ids[resource].length > 0) yield open.takeChunk(resource);
  if (open.settled.length > 0) yield open.takeBlock();
}

/** What is not full yet: one chunk a resource and one block. */
class OpenChunks {
  #chunks = 0;
  #blocks = 0;
  ids: Record<Resource, SpooledRow[]> = { annotations: [], views: [] };
  settled: SettledRow[] = [];

  addId(row: SpooledRow): number {
    return this.ids[row.resource!].push(row);
  }

  addSettled(row: SpooledRow): number {
    return this.settled.push(settle(row));
  }

  takeChunk(resource: Resource): Chunk {
    const rows = this.ids[resource];
    this.ids[resource] = [];
    const positions = rows.map(({ file, line }) => ({ file, line }));
    return { n: this.#chunks++, resource, ids: rows.map((row) => row.id), positions };
  }

  takeBlock(): SettledBlock {
    const rows = this.settled;
    this.settled = [];
    return { n: this.#blocks++, rows };
  }
}

function settle({ file, line, resource, id, reject, settled, first }: SpooledRow): SettledRow {
  const row = { file, line, resource, id: cutId(id) };
  if (reject !== null) return { ...row, outcome: 'rejected', code: reject, first: null };
  return { ...row, outcome: settled!, code: settled!, first };
}
