import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  decodeBlock,
  decodeChunk,
  decodeIdsOfChunk,
  encodeBlock,
  encodeChunk,
  indexOfId,
} from '../../../src/ledger/manifest.ts';
import { checkId, strictRules } from '../../../src/model/check-id.ts';
import { resources } from '../../../src/model/resource.ts';
import type { Chunk, Position, SettledBlock } from '../../../src/model/row.ts';
import { sized } from '../../support/size.ts';

/** Ids the guard lets through, from everything Unicode has. */
const hostileId = fc
  .oneof(
    fc.string({ unit: 'binary', minLength: 1, maxLength: 40 }),
    fc.string({ unit: 'grapheme', minLength: 1, maxLength: 40 }),
    fc.constantFrom('=1+1', '"quoted"', 'a,b', 'é', 'e\u0301', '\u2028', '日本', '😀', '__proto__', "'", '~', '!'),
  )
  .filter((id) => checkId(id, { ...strictRules, allowIdChars: '/\\%?#; ' }) === null);

const anyPosition = fc.record({ file: fc.nat(3), line: fc.integer({ min: 1, max: 2 ** 31 }) });

const inOrder = (positions: Position[]) => positions.toSorted((a, b) => a.file - b.file || a.line - b.line);

function chunkOf(ids: fc.Arbitrary<string>): fc.Arbitrary<Chunk> {
  return fc.array(fc.tuple(ids, anyPosition), { minLength: 1, maxLength: 500, size: 'max' }).chain((rows) =>
    fc.record({
      n: fc.nat(),
      resource: fc.constantFrom(...resources),
      ids: fc.constant(rows.map(([id]) => id)),
      positions: fc.constant(inOrder(rows.map(([, position]) => position))),
    }),
  );
}

describe('a chunk', () => {
  test.each([
    ['of any characters and lengths', hostileId],
    ['of equal length', fc.integer({ min: 0, max: 999 }).map((n) => `a-${String(n).padStart(3, '0')}`)],
  ])('finds each of its ids %s, and no other', (_, anyId) => {
    fc.assert(
      fc.property(chunkOf(anyId), anyId, ({ n, resource, ...chunk }, other) => {
        const bytes = encodeChunk({ n, resource, ...chunk });
        const find = (id: string, of = resource) => indexOfId(n, bytes, of, id);
        expect(chunk.ids.map((id) => find(id))).toEqual(chunk.ids.map((id) => chunk.ids.indexOf(id)));
        expect(find(other)).toBe(chunk.ids.indexOf(other));
        expect(find(`${chunk.ids[0]}x`)).toBe(chunk.ids.indexOf(`${chunk.ids[0]}x`));
        expect(
          find(
            chunk.ids[0]!,
            resources.find((word) => word !== resource),
          ),
        ).toBe(-1);
      }),
      { numRuns: sized(5, 30) },
    );
  });

  test('comes back byte for byte with ids of any characters and lengths', () => {
    fc.assert(
      fc.property(chunkOf(hostileId), (chunk) => {
        expect(decodeChunk(chunk.n, encodeChunk(chunk))).toEqual(chunk);
      }),
      { numRuns: sized(10, 100) },
    );
  });

  test('comes back byte for byte with ids of one length, which are stored by column', () => {
    const sameLength = fc
      .string({ minLength: 12, maxLength: 12 })
      .filter((id) => checkId(id, { ...strictRules, allowIdChars: '/\\%?#; ' }) === null);
    fc.assert(
      fc.property(chunkOf(sameLength), (chunk) => {
        expect(decodeChunk(chunk.n, encodeChunk(chunk))).toEqual(chunk);
      }),
      { numRuns: sized(10, 100) },
    );
  });

  test('costs at most 17 bytes for a random UUID, positions included', () => {
    const ids = Array.from({ length: 500 }, () => randomUUID());
    const positions = ids.map((_, i) => ({ file: 0, line: 2 + i }));
    const bytes = encodeChunk({ n: 0, resource: 'views', ids, positions });
    expect(bytes.length / ids.length).toBeLessThanOrEqual(17);
  });

  test.each([
    ['those of a block', encodeBlock({ n: 7, rows: [] }), 'expected a resource, got other bytes'],
    ['bytes of something else', Buffer.from('[]'), 'expected zstd, got other bytes'],
  ])('refuses %s', (_, bytes, why) => {
    const refusal = expect.objectContaining({ code: 'INTERNAL', message: `manifest chunk 7: ${why}` });
    expect(() => decodeChunk(7, bytes)).toThrow(refusal);
  });

  test('refuses another number of ids than its ledger has', () => {
    const positions = [2, 3].map((line) => ({ file: 0, line }));
    const bytes = encodeChunk({ n: 7, resource: 'views', ids: ['a', 'b'], positions });
    expect(decodeIdsOfChunk(7, bytes, 2).idAt(1)).toBe('b');
    expect(() => decodeIdsOfChunk(7, bytes, 3)).toThrow('expected 3 ids, as the ledger has, got 2');
  });
});

test('a block of settled rows comes back as it was', () => {
  const anyRow = fc.record({
    file: fc.nat(3),
    line: fc.nat(),
    resource: fc.constantFrom(...resources, null),
    id: fc.string({ unit: 'binary', maxLength: 200 }),
    outcome: fc.constantFrom('rejected' as const, 'duplicate' as const, 'protected' as const),
    code: fc.constantFrom('empty_id' as const, 'duplicate' as const, 'protected' as const),
    first: fc.option(anyPosition),
  });
  const anyBlock: fc.Arbitrary<SettledBlock> = fc.record({ n: fc.nat(), rows: fc.array(anyRow) });
  fc.assert(
    fc.property(anyBlock, (block) => {
      expect(decodeBlock(block.n, encodeBlock(block))).toEqual(block);
    }),
  );
});
