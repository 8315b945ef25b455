import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { decodeCursor, encodeCursor, type FollowCursor, firstCursor } from '../../../src/report/follow-cursor.ts';

const run = '20261120-1602-m4tz';
const size = 20_000;

/** Cursors of runs of any size: of chunks written in stretches, or here and there. */
const cursor: fc.Arbitrary<FollowCursor> = fc
  .record({
    blocks: fc.nat(1e9),
    corrections: fc.nat(1e9),
    rows: fc.nat(1e9),
    written: fc.oneof(
      fc.array(fc.nat(1), { maxLength: 300 }),
      fc
        .array(fc.tuple(fc.nat(1), fc.nat(500)), { maxLength: 10 })
        .map((parts) => parts.flatMap(([bit, length]) => new Array<number>(length).fill(bit))),
    ),
    seed: fc.nat(),
  })
  .map(({ written, seed, ...others }) => {
    const left = [...written.keys()].filter((n) => written[n] === 0);
    const chunk = left.length === 0 || seed % 2 === 0 ? null : left[seed % left.length]!;
    return { ...others, chunk, written: Uint8Array.from(written) };
  });

describe('a cursor', () => {
  it('is read back as it was, whatever was written', () => {
    fc.assert(
      fc.property(cursor, (given) => {
        expect(decodeCursor(run, given.written.length, encodeCursor(run, given))).toEqual(given);
      }),
      { numRuns: 500 },
    );
  });

  it('counts the rows behind its +', () => {
    const { rows } = decodeCursor(run, 3, `${encodeCursor(run, { ...firstCursor(3), rows: 7 })}+12`);
    expect(rows).toBe(19);
  });

  it('takes at most 3.5 KB for 10 million ids, and a few letters where chunks were written in turn', () => {
    const length = (isWritten: (n: number) => boolean) => {
      const written = Uint8Array.from({ length: size }, (_, n) => (isWritten(n) ? 1 : 0));
      return encodeCursor(run, { ...firstCursor(size), blocks: 1e6, corrections: 1e6, rows: 500, written }).length;
    };
    expect(length((n) => n % 2 === 0)).toBeLessThan(3_500);
    expect(length((n) => (n * 7_919) % 13 < 6)).toBeLessThan(3_500);
    expect(length((n) => n < 15_000 || (n > 15_010 && n < 15_020))).toBeLessThan(40);
  });

  it.each([
    ['of another run', encodeCursor('other', firstCursor(4)), 'it does not belong to run 20261120-1602-m4tz'],
    ['of more chunks', encodeCursor(run, { ...firstCursor(9), written: new Uint8Array(9).fill(1) }), 'it is damaged'],
    ['in a chunk that is not there', encodeCursor(run, { ...firstCursor(9), chunk: 7 }), 'it is damaged'],
    ['that was cut', encodeCursor(run, { ...firstCursor(4), blocks: 1e6 }).slice(0, 8), 'it is damaged'],
    ['of another text', 'next please', 'expected a cursor'],
    ['of no text', '', 'expected a cursor'],
  ])('%s is refused', (_, text, words) => {
    expect(() => decodeCursor(run, 4, text)).toThrow(words);
  });

  it('that is damaged anywhere is refused or is another one, and never ends the process', () => {
    fc.assert(
      fc.property(cursor, fc.nat(), fc.nat(255), (given, at, byte) => {
        const bytes = Buffer.from(encodeCursor(run, given), 'base64url');
        bytes[at % bytes.length] = byte;
        try {
          const { written } = decodeCursor(run, given.written.length, bytes.toString('base64url'));
          expect(written).toHaveLength(given.written.length);
        } catch (error) {
          expect(error).toMatchObject({ code: 'USAGE' });
        }
      }),
    );
  });
});
