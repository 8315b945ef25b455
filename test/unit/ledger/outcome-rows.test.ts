import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { headerBytes, settle } from '../../../src/ledger/cell.ts';
import { mergePages, type OutcomeRow, type Page, rowsOfBlock, rowsOfChunk } from '../../../src/ledger/outcome-rows.ts';
import { parseRun } from '../../../src/ledger/run.ts';
import { checkId, strictRules } from '../../../src/model/check-id.ts';
import { codeOfStatus } from '../../../src/model/outcome.ts';
import type { SettledRow } from '../../../src/model/row.ts';
import { sized } from '../../support/size.ts';

describe('merge pages', () => {
  type Place = { file: number; line: number; stream: number };

  function rowAt({ file, line }: Place): OutcomeRow {
    const fate = {
      outcome: 'deleted',
      status: 204,
      attempts: 1,
      settledAt: '',
      code: 'http_204',
      excerpt: '',
    } as const;
    return { file: `${file}.csv`, line, resource: 'views', id: `${file}.${line}`, ...fate };
  }

  async function* streamOf(places: Place[], pageSize: number): AsyncGenerator<Page> {
    for (let at = 0; at < places.length; at += pageSize) {
      const positions = places.slice(at, at + pageSize);
      yield { positions, rows: positions.map(rowAt) };
    }
    yield { positions: [], rows: [] };
  }

  async function merged(streams: AsyncGenerator<Page>[]): Promise<string[]> {
    const ids: string[] = [];
    for await (const rows of mergePages(streams)) ids.push(...rows.map((row) => row.id));
    return ids;
  }

  test('gives every row of every stream once, in input order, however they interleave', async () => {
    const anyPlaces = fc.uniqueArray(fc.record({ file: fc.nat(2), line: fc.nat(3_000), stream: fc.nat(2) }), {
      selector: ({ file, line }) => `${file}.${line}`,
      maxLength: 2_000,
      size: 'max',
    });
    await fc.assert(
      fc.asyncProperty(anyPlaces, fc.integer({ min: 1, max: 40 }), async (places, pageSize) => {
        const ordered = places.toSorted((a, b) => a.file - b.file || a.line - b.line);
        const streams = [0, 1, 2].map((n) =>
          streamOf(
            ordered.filter(({ stream }) => stream === n),
            pageSize,
          ),
        );
        expect(await merged(streams)).toEqual(ordered.map(({ file, line }) => `${file}.${line}`));
      }),
      { numRuns: sized(10, 100) },
    );
  });
});

describe('the pages of a report', () => {
  test('have a thousand rows or a little more, but the last, and none is empty', async () => {
    const sizes = async (chunks: number, size: number) => {
      async function* rows(): AsyncGenerator<Page> {
        for (let n = 0; n < chunks; n++) {
          const positions = Array.from({ length: size }, (_, i) => ({ file: 0, line: n * size + i }));
          yield { positions, rows: positions.map(() => ({}) as OutcomeRow) };
        }
      }
      const lengths: number[] = [];
      for await (const page of mergePages([rows()])) lengths.push(page.length);
      return lengths;
    };
    expect(await sizes(6, 400)).toEqual([1_200, 1_200]);
    expect(await sizes(5, 500)).toEqual([1_000, 1_000, 500]);
    expect(await sizes(0, 500)).toEqual([]);
  });
});

describe('outcome row', () => {
  const running = parseRun('r', { state: 'running', files: '["a.csv","b.csv"]' });
  const cancelled = { ...running, state: 'cancelled' as const, endedAt: Date.UTC(2026, 10, 20, 16) };

  const chunk = {
    n: 0,
    resource: 'views' as const,
    ids: ['v-1', 'v-2'],
    positions: [1, 2].map((line) => ({ file: 1, line })),
  };
  const cells = [settle('failed', 2, codeOfStatus(403)), 0];

  const times = Buffer.alloc(headerBytes);
  for (let at = 0; at < times.length - 3; at += 4) times.writeUInt32BE(Date.UTC(2026, 10, 20, 15, 49) / 1_000, at);

  function blockId(row: Partial<SettledRow>): string {
    const settled = {
      file: 0,
      line: 9,
      resource: null,
      id: 'x',
      outcome: 'rejected',
      code: 'empty_id',
      first: null,
      ...row,
    };
    return rowsOfBlock(running, [settled as SettledRow]).rows[0]!.id;
  }

  describe('rows of a chunk', () => {
    test('tell file, line, fate, time and excerpt', () => {
      const { rows } = rowsOfChunk(running, chunk, { times, cells }, ['not yours']);
      const place = { file: 'b.csv', line: 1, resource: 'views', id: 'v-1' };
      const fate = { outcome: 'failed', status: 403, attempts: 2, code: 'http_403' };
      expect(rows[0]).toEqual({ ...place, ...fate, settledAt: '2026-11-20T15:49:00Z', excerpt: 'not yours' });
    });

    test('have no time behind the end of the run, though the ledger rounds up, nor finer than it is known', () => {
      const endedAt = Date.UTC(2026, 10, 20, 15, 48, 59, 400);
      const ended = { ...running, state: 'completed' as const, endedAt };
      const { rows } = rowsOfChunk(ended, chunk, { times, cells }, []);
      expect(rows[0]!.settledAt).toBe('2026-11-20T15:48:59Z');
    });

    test('are pending without a time while the run goes on, and not attempted once it is cancelled', () => {
      const ledger = { times, cells };
      expect(rowsOfChunk(running, chunk, ledger, []).rows[1]).toMatchObject({ outcome: 'pending', settledAt: '' });
      const settledAt = '2026-11-20T16:00:00Z';
      expect(rowsOfChunk(cancelled, chunk, ledger, []).rows[1]).toMatchObject({ outcome: 'not_attempted', settledAt });
    });
  });

  describe('rows settled while reading', () => {
    test('say where a duplicate stood first', () => {
      const row: SettledRow = {
        file: 1,
        line: 9,
        resource: 'views',
        id: 'v-1',
        outcome: 'duplicate',
        code: 'duplicate',
        first: { file: 0, line: 3 },
      };
      expect(rowsOfBlock(running, [row]).rows[0]).toMatchObject({ code: 'duplicate', excerpt: 'first at a.csv:3' });
    });

    test('keep an id that is whole as it is', () => {
      expect(blockId({ id: 'a/b', code: 'unsafe_character' })).toBe('a/b');
      expect(blockId({ id: 'x'.repeat(198), outcome: 'duplicate', code: 'duplicate' })).toBe('x'.repeat(198));
    });

    test.each([
      ['may have been cut', { id: 'x'.repeat(200), outcome: 'duplicate', code: 'duplicate' }],
      ['lost a surrogate', { id: 'x\ufffd', code: 'lone_surrogate' }],
      ['was a record that said its id twice', { id: '{"id":1,"id":2}', code: 'duplicate_key' }],
      ['was a number with lost digits', { id: '12345678901234567000', code: 'unsafe_number' }],
      ['was no text', { id: 'null', code: 'not_a_string' }],
      ['was a header', { id: 'user_id', code: 'repeated_header' }],
    ] as const)('show an id that %s so that it is never sent, whatever --allow-id-chars says', (_, row) => {
      expect(checkId(blockId(row), { ...strictRules, allowIdChars: '/\\%?#; ' })).toBe('control_character');
    });
  });
});
