import { parse } from 'csv-parse/sync';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { OutcomeRow } from '../../../src/ledger/outcome-rows.ts';
import { outcomes } from '../../../src/model/outcome.ts';
import { resources } from '../../../src/model/resource.ts';
import { reportHeader, reportText } from '../../../src/report/report.ts';

describe('report line', () => {
  const csv = { format: 'csv', spreadsheetSafe: false } as const;
  const safe = { format: 'csv', spreadsheetSafe: true } as const;
  const ndjson = { format: 'ndjson', spreadsheetSafe: false } as const;

  const formulaHeads = ['=', '+', '-', '@', '\t', '\r', '\0'];

  const hostile = fc.oneof(
    fc.string({ unit: 'binary' }),
    fc.constantFrom('=1+1', ' a ', 'a\r\nb', '"', '""', ',', '', '\ufeffa', 'a\t', '\n'),
    fc.tuple(fc.constantFrom(...formulaHeads), fc.string()).map((parts) => parts.join('')),
  );

  const anyRow: fc.Arbitrary<OutcomeRow> = fc.record({
    file: hostile,
    line: fc.integer({ min: 1 }),
    resource: fc.constantFrom(...resources, null),
    id: hostile,
    outcome: fc.constantFrom(...outcomes, 'pending' as const),
    status: fc.option(fc.integer({ min: 200, max: 599 })),
    attempts: fc.nat(15),
    settledAt: fc.constantFrom('', '2026-11-20T15:49:00.000Z'),
    code: fc.constantFrom('http_404', 'timeout', ''),
    excerpt: hostile,
  });

  const example: OutcomeRow = {
    file: 'ids.csv',
    line: 2,
    resource: 'views',
    id: 'v-1',
    outcome: 'failed',
    status: 403,
    attempts: 1,
    settledAt: '2026-11-20T15:49:00.000Z',
    code: 'http_403',
    excerpt: 'not yours',
  };

  function readBack(rows: OutcomeRow[], style: typeof csv | typeof safe): Record<string, string>[] {
    return parse(reportHeader(style) + reportText(rows, style), {
      columns: true,
      record_delimiter: ['\r\n', '\n', '\r'],
    });
  }

  describe('a CSV', () => {
    test('has the columns that scripts rely on', () => {
      expect(reportHeader(csv)).toBe('file,line,resource,id,outcome,status,attempts,settled_at,code,excerpt\n');
      expect(reportText([example], csv)).toBe(
        'ids.csv,2,views,v-1,failed,403,1,2026-11-20T15:49:00.000Z,http_403,not yours\n',
      );
    });

    test('gives back every id byte for byte, and no row more or less', () => {
      fc.assert(
        fc.property(fc.array(anyRow), (rows) => {
          const read = readBack(rows, csv);
          expect(read.map((row) => row.id)).toEqual(rows.map((row) => row.id));
          expect(read.map((row) => row.outcome)).toEqual(rows.map((row) => row.outcome));
        }),
      );
    });

    test('never begins a formula in file or excerpt, and leaves other text as it was', () => {
      fc.assert(
        fc.property(anyRow, (row) => {
          const [read] = readBack([row], csv);
          for (const column of ['file', 'excerpt'] as const) {
            expect(formulaHeads).not.toContain(read![column]![0]);
            expect([row[column], `'${row[column]}`]).toContain(read![column]);
          }
        }),
      );
    });

    test('that is safe for spreadsheets begins no formula at all and says so in its header', () => {
      fc.assert(
        fc.property(anyRow, (row) => {
          const [read] = readBack([row], safe);
          expect(read).not.toHaveProperty('id');
          for (const cell of Object.values(read!)) expect(formulaHeads).not.toContain(cell[0]);
        }),
      );
    });

    test.each(['a,b', 'a"b', 'a\nb', 'a\rb', ' a', 'a ', 'a\t'])('quotes the id %j', (id) => {
      expect(reportText([{ ...example, id }], csv)).toContain(`,"${id.replace('"', '""')}",`);
    });
  });

  test('NDJSON holds every row without loss, under the same names', () => {
    fc.assert(
      fc.property(anyRow, (row) => {
        const text = reportText([row], ndjson);
        expect(text.trimEnd()).not.toContain('\n');
        const { settled_at, ...rest } = JSON.parse(text);
        expect({ ...rest, settledAt: settled_at }).toEqual(row);
        expect(Object.keys(JSON.parse(text)).join()).toBe(reportHeader(csv).trimEnd());
      }),
    );
  });
});
