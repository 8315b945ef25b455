import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { countChunks, readAll, readChunks, readSpool, readTakenChunks } from '../../../src/input/chunk-ids.ts';
import { createSpoolFolder, type Spool, spoolRows } from '../../../src/input/spool.ts';
import { readHeldBack, takeIds } from '../../../src/input/take-ids.ts';
import { sumIds } from '../../../src/model/resource.ts';
import type { Row } from '../../../src/model/row.ts';
import { sized } from '../../support/size.ts';

let stateDir = '';
beforeEach(() => {
  stateDir = mkdtempSync(join(tmpdir(), 'expunge-'));
});
afterEach(() => rmSync(stateDir, { recursive: true }));

/** A spool of these ids, of which those with a bang are rejected; `p` is protected. */
async function spool(ids: string[]): Promise<Spool> {
  const rows = ids.map(
    (id, n): Row => ({
      file: 0,
      line: n + 1,
      resource: id < 'd' ? 'views' : 'annotations',
      id,
      reject: id === '!' ? 'unsafe_character' : null,
    }),
  );
  const protectedIds = (async function* () {
    yield ['p'];
  })();
  const batches = (async function* () {
    yield rows;
  })();
  return spoolRows(batches, await createSpoolFolder(stateDir), { files: ['a.txt'], protectedIds, limit: null });
}

const toSend = (of: Spool) =>
  [...readSpool(of)].filter(({ reject, settled }) => reject === null && settled === null).map(({ id }) => id);

test('a list is cut behind so many ids: each row is taken or held back, and a repeated id goes with its first', async () => {
  const anId = fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f', 'g', 'p', '!');
  await fc.assert(
    fc.asyncProperty(fc.array(anId, { maxLength: 30 }), fc.integer({ min: 1, max: 8 }), async (ids, most) => {
      const all = await spool(ids);
      const taken = await takeIds(all, most);
      const held = [...readHeldBack(taken)];
      const wanted = toSend(all);
      expect(toSend(taken)).toEqual(wanted.slice(0, most));
      expect(held.filter(({ isDuplicate }) => !isDuplicate).map(({ row }) => row.id)).toEqual(wanted.slice(most));
      expect([...readSpool(taken)].length + held.length).toBe(ids.length);
      expect(new Set([...toSend(taken), ...held.map(({ row }) => row.id)]).size).toBe(new Set(wanted).size);
      const { rows, rejected, duplicates, protected: kept } = taken;
      expect([...readSpool(taken)].length).toBe(rows);
      expect(sumIds(taken.ids) + rejected + duplicates + kept).toBe(rows);
      const parts = [...readChunks(taken)];
      const slowly: unknown[] = [];
      for await (const part of readTakenChunks(taken)) slowly.push(part);
      expect(slowly).toEqual(parts);
      const { chunks, blocks } = countChunks(taken);
      expect(parts.length).toBe(chunks + blocks);
      expect([...readAll(taken)].length).toBe(ids.length);
    }),
    { numRuns: sized(3, 12) }, // each writes a spool of some 500 files,
  );
});

test('a list of no more ids is taken as it is; the same cut has the same hash, and another one another', async () => {
  const all = await spool(['a', 'b', 'a', 'c']);
  expect(await takeIds(all, 3)).toBe(all);
  const [two, again, one] = [await takeIds(all, 2), await takeIds(all, 2), await takeIds(all, 1)];
  expect(two).toEqual(again);
  expect(new Set([all.sha256, two.sha256, one.sha256]).size).toBe(3);
  expect(two.last).toEqual({ resource: 'views', id: 'b' });
});
