import fc from 'fast-check';
import { expect, test } from 'vitest';
import { mergePages } from '../../../src/ledger/merge-pages.ts';
import type { OutcomeRow, Page } from '../../../src/ledger/outcome-row.ts';

type Place = { file: number; line: number; stream: number };

function rowAt({ file, line }: Place): OutcomeRow {
  const fate = { outcome: 'deleted', status: 204, attempts: 1, settledAt: '', code: 'http_204', excerpt: '' } as const;
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
  );
});
