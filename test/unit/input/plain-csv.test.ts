import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { InputOptions } from '../../../src/input/input-options.ts';
import { readCsv, readCsvRecords } from '../../../src/input/read-csv.ts';
import type { Row } from '../../../src/model/row.ts';
import { sized } from '../../support/size.ts';
import { options } from './read-text.ts';

type Reading = { rows: Row[]; message: string | null; next: unknown };

// Words that a list may hold, and what separates, quotes and confuses them.
const words = ['id', 'kind', 'a1', 'b-2', 'views', 'annotations', '1.2E+05', 'null', 'ä', '\u{1f600}', '\ufeff', '\0'];
const marks = [
  '\n',
  '\n',
  '\n',
  '\n#',
  '#',
  '//',
  '\r\n',
  '\r\n',
  '\r',
  '\r\r\n',
  ',',
  ',',
  ';',
  '\t',
  ' ',
  '"',
  '""',
  '"x"',
  '"x,\ny"',
];
const anyText = fc
  .array(fc.oneof({ weight: 3, arbitrary: fc.constantFrom(...words) }, fc.constantFrom(...marks)), { maxLength: 60 })
  .map((parts) => parts.join(''));
// As one would write it, but for a few places.
const cell = fc.oneof(
  { weight: 20, arbitrary: fc.stringMatching(/^[a-z0-9-]{0,8}$/) },
  fc.constantFrom(...words, ...marks),
);
const table = fc
  .tuple(
    fc.array(fc.tuple(cell, fc.constantFrom('views', 'annotations')), { maxLength: 40 }),
    fc.constantFrom('\n', '\r\n', '\r'),
  )
  .map(([rows, end]) => ['id,kind', ...rows.map((cells) => cells.join(','))].join(end));

test('reads a CSV without quotes as the parser does: rows, lines and refusals', async () => {
  const anyOptions = fc.record({
    noHeader: fc.boolean(),
    delimiter: fc.constantFrom(',', ',', ';', '\t', 'ä'),
    comments: fc.constantFrom(null, '#', '//'),
    allowIdChars: fc.constantFrom('', ' /'),
    byColumn: fc.boolean(),
  });
  await fc.assert(
    fc.asyncProperty(
      fc.oneof(
        anyText,
        table,
        fc.tuple(table, anyText).map((parts) => parts.join('\n')),
      ),
      anyOptions,
      fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 5 }),
      async (text, { byColumn, ...changes }, sizes) => {
        const kind = byColumn ? { resource: null, resourceColumn: 'kind', noHeader: false } : {};
        const given: InputOptions = { ...options, ...changes, ...kind };
        expect(await readPlain(text, given, sizes)).toEqual(await readParsed(text, given, sizes));
      },
    ),
    { numRuns: sized(200, 3_000) },
  );
}, 120_000);

test('reads lines of any length as the parser does', async () => {
  for (const length of sized([1_048_576, 1_048_577], [65_536, 1_048_575, 1_048_576, 1_048_577, 1_100_000])) {
    const text = `id\na1\n${'x'.repeat(length)}\na2\n`;
    expect(await readPlain(text, options, [65_536])).toEqual(await readParsed(text, options, [65_536]));
  }
});

const facts = { file: 0, name: 'x.csv', format: 'csv' } as const;

/** Without the text of the records: what has no quotes is split. */
function readPlain(text: string, given: InputOptions, sizes: number[]): Promise<Reading> {
  return reading(readCsv(facts, pieces(text, sizes), given));
}

/** With the text of the records, which only the parser gives. */
function readParsed(text: string, given: InputOptions, sizes: number[]): Promise<Reading> {
  async function* rows() {
    for await (const records of readCsvRecords(facts, pieces(text, sizes), given)) {
      yield records.flatMap(({ row }) => row ?? []);
    }
  }
  return reading(rows());
}

async function reading(batches: AsyncIterable<Row[]>): Promise<Reading> {
  const rows: Row[] = [];
  try {
    for await (const batch of batches) rows.push(...batch);
    return { rows, message: null, next: null };
  } catch (error) {
    return { rows, message: (error as Error).message, next: (error as { next?: unknown }).next };
  }
}

/** The text in pieces of these sizes, in turn: of whole characters, as readers get them. */
async function* pieces(text: string, sizes: number[]): AsyncGenerator<Buffer> {
  const characters = [...text];
  for (let at = 0, n = 0; at < characters.length; n++) {
    const size = sizes[n % sizes.length]!;
    yield Buffer.from(characters.slice(at, at + size).join(''));
    at += size;
  }
}
