import { createHash } from 'node:crypto';
import { setImmediate } from 'node:timers/promises';
import { countIds, type Resource, sumIds } from '../model/resource.ts';
import type { Row } from '../model/row.ts';
import { readAll, type SpooledRow } from './chunk-ids.ts';
import type { HeldBack, Spool } from './spool.ts';

const rowsAtOnce = 10_000; // a worker that plans a scheduled run must not block its event loop

/**
 * A spool of which only the first `maxIds` ids are sent. Later ids are held back, with their duplicates; rows that are never sent stay. The same
 * spool gives the same result. `rows` of the result does not count rows that are held back.
 */
export async function takeIds(spool: Spool, maxIds: number): Promise<Spool> {
  if (sumIds(spool.ids) <= maxIds) return spool;
  const heldBack = await findFirstHeldBack(spool, maxIds);
  const ids = new Map<Resource, number>();
  const taken = { rows: 0, duplicates: 0, last: null as Spool['last'] };
  const hash = createHash('sha256');
  for (const { n, row, isHeldBack } of readAll({ ...spool, heldBack })) {
    if (n % rowsAtOnce === 0) await setImmediate();
    if (isHeldBack) continue;
    taken.rows += 1;
    hash.update(`${row.resource} ${row.reject ?? row.settled ?? ''} ${row.id}\n`);
    if (row.settled === 'duplicate') taken.duplicates += 1;
    if (!isToSend(row)) continue;
    ids.set(row.resource!, (ids.get(row.resource!) ?? 0) + 1);
    taken.last = { resource: row.resource!, id: row.id };
  }
  const layout = `${spool.layout} first ${maxIds}`;
  const others = { layout, sha256: hash.digest('hex'), heldBack: { ...heldBack, rows: spool.rows - taken.rows } };
  return { ...spool, ...taken, ids: countIds(ids), ...others };
}

/** The rows that `takeIds` held back, in input order, each with its number in the spool. */
export function* readHeldBack(spool: Spool): Generator<{ n: number; row: Row; isDuplicate: boolean }> {
  for (const { n, row, isHeldBack } of readAll(spool)) {
    const { file, line, resource, id, reject, settled } = row;
    if (isHeldBack) yield { n, row: { file, line, resource, id, reject }, isDuplicate: settled === 'duplicate' };
  }
}

async function findFirstHeldBack(spool: Spool, maxIds: number): Promise<HeldBack> {
  let ids = 0;
  for (const { n, row } of readAll(spool)) {
    if (n % rowsAtOnce === 0) await setImmediate();
    if (isToSend(row) && ++ids > maxIds) return { row: n, file: row.file, line: row.line, rows: 0 };
  }
  throw new Error('the spool holds fewer ids than it counts');
}

function isToSend({ reject, settled }: SpooledRow): boolean {
  return reject === null && settled === null;
}
