import { createHash } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { openInputs } from '../../../src/input/open-inputs.ts';
import { brief, collect, inputOf } from './read-text.ts';

const folder = mkdtempSync(join(tmpdir(), 'expunge-meaning-'));
afterAll(() => rmSync(folder, { recursive: true }));

const read = (name: string, text: string, changes: Parameters<typeof collect>[1] = {}) =>
  collect([inputOf(name, text)], changes);

describe('a row that is a header', () => {
  test.each([
    ['x.csv', 'annotation_id\n140\nview_id\n141\n', 'annotation_id', 3],
    ['x.csv', 'id,name\n144,x\nId,Name\n145,y\n', 'id', 3],
    ['x.csv', 'id,name\n144,x\nname,id\ny,145\n', 'id', 3],
    ['x.csv', 'id,name\n144,x\ntitle,view_id\ny,145\n', 'id', 3],
    ['x.csv', 'id,name\n144,x\nuuid,title\n145,y\n', 'id', 3],
    ['x.txt', '142\nview_id\n143\n', null, 2],
    ['x.txt', '142\nViewID\n143\n', null, 2],
    ['x.ndjson', '{"id":"142"}\n{"id":"view_id"}\n', 'id', 2],
    ['x.json', '["142","view_id"]', null, 2],
  ])('further down refuses the list: %s with %j', async (name, text, column, line) => {
    await expect(read(name, text, { column })).rejects.toMatchObject({
      code: 'USAGE',
      message: expect.stringMatching(new RegExp(`^${name}:${line}: the row holds ".*", the name of a column`)),
      next: expect.stringContaining('--allow-column-names'),
    });
    expect((await read(name, text, { column, allowColumnNames: true })).length).toBeGreaterThan(1);
  });

  test('is a rejected row if it repeats the header exactly', async () => {
    expect(brief(await read('x.csv', 'id,name\na1,x\nid,name\na2,y\n'))).toEqual(['a1', 'id repeated_header', 'a2']);
    expect(brief(await read('x.ndjson', '{"id":"a1"}\n{"id":"id"}\n'))).toEqual(['a1', 'id repeated_header']);
  });

  test.each(['Zm9vYmFyIdId', 'AbCdEf_id', 'wId', 'paid', 'kraken', 'a-id'])(
    'is not seen in %j, which random ids can look like',
    async (id) => {
      for (const [name, text] of [
        ['x.csv', `id\na1\n${id}\n`],
        ['x.txt', `a1\n${id}\n`],
        ['x.json', JSON.stringify(['a1', id])],
      ] as const)
        expect(brief(await read(name, text))).toEqual(['a1', id]);
    },
  );

  test('may have white space around its names', async () => {
    expect(brief(await read('x.csv', 'name, id\nx,a1\n'))).toEqual(['a1']);
    expect(brief(await read('x.csv', 'name, id\nx,a1\n', { column: ' id' }))).toEqual(['a1']);
    await expect(read('x.csv', 'id, id\na1,a2\n')).rejects.toThrow('two columns are named "id"');
  });
});

describe('a column that says what the ids are', () => {
  test.each([
    ['x.csv', 'resource,id\nannotations,120\nviews,7\n', 3],
    ['x.csv', 'Resource,id\nannotation,120\nview,7\n', 3],
    ['x.ndjson', '{"resource":"annotations","id":"120"}\n{"resource":"views","id":"7"}\n', 2],
    ['x.json', '[{"resource":"annotations","id":"120"},{"resource":"views","id":"7"}]', 2],
  ])('refuses %s for --resource annotations if it says views: %j', async (name, text, line) => {
    await expect(read(name, text)).rejects.toMatchObject({
      message: expect.stringMatching(new RegExp(`^${name}:${line}: the column "[Rr]esource" says "views?"`)),
      next: expect.stringMatching(/--resource-column [Rr]esource/),
    });
  });

  test('is read with --resource-column, and passes if it says the same', async () => {
    const text = 'resource,id\nannotations,120\nviews,7\n';
    const rows = await read('x.csv', text, { resource: null, resourceColumn: 'resource' });
    expect(rows.map(({ resource }) => resource)).toEqual(['annotations', 'views']);
    expect(brief(await read('x.csv', 'resource,id\nannotations,120\n'))).toEqual(['120']);
    expect(brief(await read('x.csv', 'resource,id\nserver,120\n'))).toEqual(['120']);
  });

  test.each([
    ['x.csv', 'id,annotation_id,user\n2,121,ann\n', 1],
    ['x.csv', 'id,annotationId\n2,121\n', 1],
    ['x.ndjson', '{"id":"2","annotation_id":"121"}\n', 1],
    ['x.json', '[{"id":"2","AnnotationID":"121"}]', 1],
  ])('beside the default column refuses %s: %j', async (name, text, line) => {
    await expect(read(name, text)).rejects.toMatchObject({
      message: expect.stringMatching(new RegExp(`^${name}:${line}: both "id" and "annotation_?id" could hold`, 'i')),
      next: expect.stringMatching(/--column annotation_?id or --column id/i),
    });
    expect(brief(await read(name, text, { column: 'id' }))).toEqual(['2']);
    expect(brief(await read(name, text, { resource: 'views' }))).toEqual(['2']);
  });
});

describe('numbers that a program rounded', () => {
  const rounded = [
    ...['1234567890123450', '1234567890123460', '9876543210987600'],
    ...['675127116845989900', '675083374680268800', '674990359378829300'],
  ];

  test.each([
    ['x.csv', `id\n${rounded.slice(0, 3).join('\n')}\n`],
    ['x.txt', `${rounded.slice(3).join('\n')}\n`],
    ['x.ndjson', `${rounded.map((id) => JSON.stringify({ id })).join('\n')}\n`],
    ['x.json', JSON.stringify(rounded)],
    ['x.txt', '675127116845990016\n675083374680269440\n674990359378829440\n'],
  ])('refuse %s: %j', async (name, text) => {
    await expect(read(name, text)).rejects.toMatchObject({
      message: expect.stringContaining('the long numbers in this list look rounded'),
      next: expect.stringContaining('--allow-damaged-numbers'),
    });
    expect((await read(name, text, { allowDamagedNumbers: true })).every(({ reject }) => reject === null)).toBe(true);
  });

  test('are not seen in numbers as they come', async () => {
    const numbers = Array.from({ length: 2_000 }, (_, n) => String(675127116845989871n + BigInt(n) * 7_919_113n));
    expect(await read('x.txt', `${numbers.join('\n')}\n`)).toHaveLength(2_000);
    expect(await read('x.txt', `${numbers[1]!.slice(0, 17)}0\n`)).toHaveLength(1);
    expect(await read('x.txt', '1000\n2000\n3000\n4000\n')).toHaveLength(4);
  });

  test('are not seen in snowflake ids of a quiet system, which are multiples of 4,096', async () => {
    const quiet = Array.from({ length: 2_000 }, (_, n) => String((307_445_734_561_825n + BigInt(n) * 7_919n) << 12n));
    expect(await read('x.txt', `${quiet.join('\n')}\n`)).toHaveLength(2_000);
    expect(await read('x.txt', `${quiet.slice(0, 200).join('\n')}\n`)).toHaveLength(200);
    const doubles = Array.from({ length: 200 }, (_, n) => BigInt(Number(675127116845989871n + BigInt(n) * 7_919_113n)));
    await expect(read('x.txt', `${doubles.join('\n')}\n`)).rejects.toThrow('look rounded');
    const joined = [...quiet.slice(0, 200), ...quiet.slice(0, 200).map((id) => `${id.slice(0, 15)}0000`)];
    await expect(read('x.txt', `${joined.join('\n')}\n`)).rejects.toThrow('look rounded');
  });
});

describe('an id that may be cut off', () => {
  const write = (name: string, text: string) => {
    writeFileSync(join(folder, name), text);
    return join(folder, name);
  };

  test.each(['part-aa.txt', 'part-aa.csv', 'part-aa.ndjson'])(
    'refuses %s, which is one of several files',
    async (name) => {
      const text = { txt: '101\n12', csv: 'id\n101\n12', ndjson: '"101"\n"12"' }[name.split('.')[1]!]!;
      const [first, second] = [write(name, text), write('part-ab.txt', '34\n103\n')];
      await expect(collect(await openInputs([first, second]))).rejects.toMatchObject({
        message: expect.stringMatching(/part-aa\.\w+:\d: the last line has no newline/),
        next: expect.stringContaining('echo >> '),
      });
      expect(await collect(await openInputs([first]))).toHaveLength(2);
      write(name, `${text}\n`);
      expect(await collect(await openInputs([first, second]))).toHaveLength(4);
    },
  );
});

test('several JSON arrays one after another are one list', async () => {
  expect(brief(await read('x.json', '[{"id":"a1"}]\n[]\n[{"id":"a2"},"a3"]\n'))).toEqual(['a1', 'a2', 'a3']);
});

test('JSON may be as deep as it likes', async () => {
  const deep = `${'['.repeat(50_000)}${']'.repeat(50_000)}`;
  expect(brief(await read('x.ndjson', `{"id":5,"x":${deep}}\n`))).toEqual(['5']);
  expect((await read('x.ndjson', `{"id":${deep}}\n`))[0]!.reject).toBe('not_a_string');
});

test('ids that do not match --id-pattern are rejected in every format', async () => {
  const idPattern = /^(?:a-\d{6})$/;
  for (const [name, text] of [
    ['x.csv', 'id\na-000001\na-1\n'],
    ['x.txt', 'a-000001\na-1\n'],
    ['x.ndjson', '"a-000001"\n{"id":"a-1"}\n'],
    ['x.json', '["a-000001","a-1"]'],
  ] as const)
    expect(brief(await read(name, text, { idPattern }))).toEqual(['a-000001', 'a-1 pattern_mismatch']);
});

describe('numbers of every length that went through a double', () => {
  const random = (from: bigint, to: bigint, n = 200) =>
    Array.from({ length: n }, (_, i) => {
      const hash = BigInt(`0x${createHash('sha256').update(`${from} ${i}`).digest('hex')}`);
      return from + (hash % (to - from));
    });
  const exact = (id: bigint) => String(BigInt(Number(id)));
  const shortest = (id: bigint) => String(Number(id));
  const ranges: [string, bigint, bigint][] = [
    ['16 digits above 2^53', 9_007_199_254_740_993n, 10n ** 16n],
    ['17 digits, the smallest', 10n ** 16n, 18n * 10n ** 15n],
    ['17 digits', 2n * 10n ** 16n, 8n * 10n ** 16n],
    ['17 digits, the largest', 8n * 10n ** 16n, 99n * 10n ** 15n],
    ['18 digits', 10n ** 17n, 10n ** 18n],
    ['19 digits', 10n ** 18n, 9n * 10n ** 18n],
  ];

  test.each(ranges)('are refused if they have %s, and are none if they are as they were', async (_, from, to) => {
    const ids = random(from, to);
    expect(await read('x.txt', `${ids.join('\n')}\n`)).toHaveLength(200);
    for (const rounded of [exact, shortest]) {
      const text = `${ids.map(rounded).join('\n')}\n`;
      await expect(read('x.txt', text)).rejects.toThrow('look rounded');
      expect(await read('x.txt', text, { allowDamagedNumbers: true })).toHaveLength(200);
      const half = ids.map((id, i) => (i % 5 === 0 ? String(id) : rounded(id)));
      await expect(read('x.txt', `${half.join('\n')}\n`)).rejects.toThrow('look rounded');
    }
  });

  test.each([
    ['multiples of 4,096', 12n],
    ['multiples of 2^22', 22n],
  ])('are not seen in %s, which doubles hold as they are', async (_, bits) => {
    for (const [, from, to] of ranges.slice(2)) {
      const ids = random(from, to).map((id) => (id >> bits) << bits);
      expect(await read('x.txt', `${ids.join('\n')}\n`)).toHaveLength(200);
    }
  });

  test('are found at the end of a long list', async () => {
    const ids = random(10n ** 18n, 9n * 10n ** 18n, 30_000);
    const text = ids.map((id, i) => (i < 15_000 ? String(id) : shortest(id))).join('\n');
    await expect(read('x.txt', `${text}\n`)).rejects.toThrow('look rounded');
  });
});
