import { execFileSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { rejectCodes, rejectionMend } from '../../../src/model/row.ts';
import { openHarness } from '../../support/harness.ts';

/** An input that is refused, and the advice that is followed word for word. */
type Case = {
  /** Where it is refused: a file below src, or the code of a rejection. */
  at: string;
  words: RegExp;
  files: Record<string, string | Buffer>;
  args: string[];
  /** Its first group is what to add or, with `isCommand`, to run in a shell; the second one is the list to name then. */
  advice: RegExp;
  isCommand: boolean;
  /** What an advised flag lacks, because only a person knows it. */
  value: string[];
  /** Arguments that the advice replaces. */
  without: string[];
  stdin: string;
  /** How many ids the plan has then; null for advice that only a person can follow. */
  sends: number | null;
};

const ids = ['a-000001', 'a-000002', 'a-000003'];
const lines = `${ids.join('\n')}\n`;
const objects = ids.map((id) => JSON.stringify({ id }));
const notes = ['--resource', 'annotations'];
const thenNamed = /^ {2}(.+)\n {2}then the same command with (.+?)(?: and its --format)?$/m;

/** A list of 12 rows of which each is bad in the same way. */
const bad = (id: (n: number) => string) => Array.from({ length: 12 }, (_, n) => `${id(n)}\n`).join('');

const cases: Case[] = [
  row('input/input-options.ts', /unknown format/, { 'ids.dat': lines }, notes, /(--format lines)/),
  row('input/input-options.ts', /exactly one of/, { 'ids.txt': lines }, [], /add (--resource annotations)/),
  row(
    'input/input-options.ts',
    /exactly one of/,
    { 'ids.csv': `id,kind\n${ids[0]},annotations\n` },
    [...notes, '--resource-column', 'kind'],
    /omit one of them()/,
    { without: ['--resource-column', 'kind'], sends: 1 },
  ),
  row(
    'input/input-options.ts',
    /needs a header/,
    { 'ids.csv': lines },
    ['--resource-column', 'kind', '--no-header'],
    /(--resource annotations)/,
    { without: ['--resource-column', 'kind'] },
  ),
  row(
    'input/input-options.ts',
    /takes the ids from the first column/,
    { 'ids.csv': lines },
    [...notes, '--column', 'key', '--no-header'],
    /(--no-header --column id)/,
    { without: ['--column', 'key', '--no-header'] },
  ),
  row(
    'input/input-options.ts',
    /plain lines have no columns/,
    { 'ids.txt': lines },
    ['--resource-column', 'kind'],
    /(--resource annotations)/,
    { without: ['--resource-column', 'kind'] },
  ),
  row(
    'input/input-options.ts',
    /the column "Resource" says "annotations"/,
    { 'ids.csv': `id,Resource\n${ids[0]},annotations\n` },
    ['--resource', 'views'],
    /(--resource-column Resource)/,
    { without: ['--resource', 'views'], sends: 1 },
  ),
  row(
    'input/header.ts',
    /another list that was joined/,
    { 'ids.txt': `${lines}view_id\n` },
    notes,
    /(--allow-column-names)/,
    { sends: 4 },
  ),
  row('input/header.ts', /looks like JSON/, { 'ids.txt': JSON.stringify(ids) }, notes, /(--format json)/),
  row('input/header.ts', /looks like JSON/, { 'ids.txt': `${objects.join('\n')}\n` }, notes, /(--format ndjson)/),
  row('input/header.ts', /looks like JSON/, { 'old ids.txt': `{\n "id": "${ids[0]}"\n}\n` }, notes, thenNamed, {
    sends: 1,
  }),
  row(
    'input/header.ts',
    /the first row holds "id"/,
    { 'ids.txt': `id\n${lines}` },
    notes,
    /use (--format csv --column id),/,
  ),
  row(
    'input/header.ts',
    /the first row holds "Annotation ID"/,
    { 'ids.txt': `Annotation ID;name\n${ids[0]};x\n` },
    notes,
    /use (--format csv --column 'Annotation ID' --delimiter ';'),/,
    { sends: 1 },
  ),
  row('input/array-splitter.ts', /got nothing/, { 'ids.json': ' ' }, notes, /export or transfer it again()/, {
    sends: null,
  }),
  row('input/array-splitter.ts', /has no end/, { 'ids.json': '["a-000001"' }, notes, /export or transfer it again()/, {
    sends: null,
  }),
  row(
    'input/array-splitter.ts',
    /follows the JSON array/,
    { 'ids.json': `["${ids[0]}"]\n{"id":"${ids[1]}"}\n` },
    notes,
    thenNamed,
    { sends: 2 },
  ),
  row(
    'input/array-splitter.ts',
    /got an object/,
    { "it's ids.json": JSON.stringify({ total: 3, data: ids }) },
    notes,
    thenNamed,
  ),
  row(
    'input/array-splitter.ts',
    /got an object/,
    { 'ids.json': JSON.stringify({ 'old ids': ids, kept: [] }) },
    notes,
    thenNamed,
  ),
  row(
    'input/array-splitter.ts',
    /got an object/,
    { 'ids.json': `${objects.join('\n')}\n` },
    notes,
    /(--format ndjson)/,
  ),
  row('input/array-splitter.ts', /got something else/, { 'ids.json': lines }, notes, /(--format lines)/),
  row(
    'input/array-splitter.ts',
    /longer than 1 MiB/,
    { 'ids.json': `["${'x'.repeat(1_200_000)}"]` },
    notes,
    /export or transfer it again()/,
    { sends: null },
  ),
  row('input/read-json.ts', /got an array/, { 'ids.ndjson': `${JSON.stringify(ids)}\n` }, notes, /(--format json)/),
  row(
    'input/read-json.ts',
    /got an array/,
    { 'ids.ndjson': `["${ids[0]}"]\n["${ids[1]}"]\n` },
    notes,
    /(--format json)/,
    { sends: 2 },
  ),
  row('input/read-json.ts', /got something else/, { 'ids.ndjson': `{\n "id": "${ids[0]}"\n}\n` }, notes, thenNamed, {
    sends: 1,
  }),
  row('input/read-json.ts', /got something else/, { 'ids.ndjson': lines }, notes, /(--format lines)/),
  row('input/read-json.ts', /got something else/, { 'ids.ndjson': `${objects.join(',\n')}\n` }, notes, thenNamed),
  row('input/read-json.ts', /got something else/, { 'ids.ndjson': objects.join('') }, notes, thenNamed),
  row(
    'input/json-record.ts',
    /the field "id" is missing/,
    { 'ids.ndjson': ids.map((id) => `{"result":{"id":"${id}"}}\n`).join('') },
    notes,
    /as in (--column result\.id)/,
  ),
  row('input/read-json.ts', /element 1 of the array/, { 'ids.json': '[a]' }, notes, /export or transfer it again()/, {
    sends: null,
  }),
  row(
    'input/read-lines.ts',
    /longer than 1 MiB/,
    { 'ids.txt': JSON.stringify(Array.from({ length: 100_000 }, (_, n) => `id-${n}`)) },
    notes,
    /(--format json)/,
    { sends: 100_000 },
  ),
  row(
    'input/json-record.ts',
    /both "id" and "annotation_id" could hold the ids/,
    { 'ids.csv': `id,annotation_id\n1,${ids[0]}\n` },
    notes,
    /(--column annotation_id)/,
    { sends: 1 },
  ),
  row(
    'input/json-record.ts',
    /both "id" and "data.id" could hold the ids/,
    { 'page.ndjson': `{"id":77,"data":[${objects.join(',')}]}\n` },
    notes,
    /(--column data\.id)/,
    { sends: objects.length },
  ),
  row(
    'input/kind-column.ts',
    /the column "type" says "view", and another kind above/,
    { 'ids.csv': `id,type\n${ids[0]},annotations\n${ids[1]},view\n` },
    notes,
    /(--resource-column type) in place of --resource/,
    { without: notes, sends: null },
  ),
  row(
    'input/row-numbers.ts',
    /count up from 0/,
    { 'ids.csv': `id,key\n0,${ids[0]}\n1,${ids[1]}\n2,${ids[2]}\n` },
    notes,
    /holds the ids with (--column)/,
    { value: ['key'] },
  ),
  row(
    'input/read-csv.ts',
    /inside a cell/,
    { 'ids.csv': `${ids[0]};"b"\n` },
    [...notes, '--no-header'],
    /(--delimiter ';')/,
    { sends: 1 },
  ),
  row(
    'input/read-csv.ts',
    /expected 2 cells, got 1/,
    { 'ids.csv': `id,a;b\n${ids[0]};1\n` },
    notes,
    /(--delimiter ';')/,
    { sends: null },
  ),
  row(
    'input/read-csv.ts',
    /two columns are named/,
    { 'ids.csv': `id,id\n${ids[0]},1\n` },
    notes,
    /rename one of them()/,
    { sends: null },
  ),
  row(
    'input/read-csv.ts',
    /no column "id"/,
    { 'ids.csv': `name,key id\nx,${ids[0]}\n` },
    notes,
    /as in (--column 'key id');/,
    { sends: 1 },
  ),
  row('input/read-csv.ts', /no column "id"/, { 'ids.csv': lines }, notes, /add (--no-header)/),
  row('input/read-csv.ts', /no column "id"/, { 'ids.csv': `id;name\n${ids[0]};x\n` }, notes, /(--delimiter ';')/, {
    sends: 1,
  }),
  row(
    'input/check-text.ts',
    /got UTF-16/,
    { 'ids.csv': Buffer.from(`\ufeffid\n${ids[0]}\n`, 'utf16le') },
    notes,
    thenNamed,
    { sends: 1 },
  ),
  row(
    'input/check-text.ts',
    /not UTF-8/,
    { 'ids.csv': Buffer.from(`id,n\n${ids[0]},\xfc\n`, 'latin1') },
    notes,
    thenNamed,
    { sends: 1 },
  ),
  row('input/check-text.ts', /holds NUL/, { 'ids.txt': `${ids.join('\0')}\0` }, notes, thenNamed),
  row('input/check-text.ts', /holds NUL/, { 'ids.txt': '7\x008\x009\0' }, notes, thenNamed),
  row(
    'input/read-rows.ts',
    /has no newline/,
    { "a'1.txt": ids[0]!, 'b.txt': lines },
    notes,
    /end the line: (echo >> .*)$/m,
    { isCommand: true, sends: 3 },
  ),
  row('input/read-rows.ts', /has no newline/, { 'a.txt.gz': gzipSync(ids[0]!), 'b.txt': lines }, notes, thenNamed, {
    sends: 3,
  }),
  row('input/read-rows.ts', /has no newline/, { 'ids.txt': lines.trimEnd() }, notes, /(--allow-open-end)/),
  row('input/read-rows.ts', /has no newline: the program/, {}, ['-', ...notes], /set -o pipefail()/, {
    stdin: 'a-1',
    sends: null,
  }),
  row(
    'input/open-inputs.ts',
    /got a folder/,
    { 'my ids/a.csv': `id\n${lines}` },
    ['my ids', ...notes],
    /name the files in it: (.+)$/m,
    { without: ['my ids'] },
  ),
  row('input/open-inputs.ts', /only once/, {}, ['-', '-', ...notes], /name (-) once/, { without: ['-'], stdin: lines }),
  row('input/open-inputs.ts', /not found/, {}, ['nothing.csv', ...notes], /check the name()/, { sends: null }),
  row(
    'input/decompress.ts',
    /cut off/,
    { 'ids.gz': gzipSync(lines).subarray(0, 20) },
    notes,
    /transfer the file again()/,
    { sends: null },
  ),
  row(
    'input/rounded-numbers.ts',
    /look rounded/,
    { 'ids.txt': '1234567890123450\n1234567890123460\n9876543210987600\n' },
    notes,
    /(--allow-damaged-numbers)/,
  ),
  row(
    'input/rounded-numbers.ts',
    /has more digits than most programs keep/,
    { 'ids.ndjson': '1234567890123456800\n' },
    notes,
    /(--allow-damaged-numbers)/,
    { sends: 1 },
  ),
  row('input/with-list.ts', /neither are/, { 'ids.txt': `${lines}a b\nc d\ne f\n` }, notes, /(--expect-rejected)/),
  row(
    'input/with-list.ts',
    /rejected as/,
    { 'ids.txt': `${lines}${bad((n) => `x/${n}`)}` },
    notes,
    /(--expect-rejected)/,
  ),
  row(
    'input/read-protected.ts',
    /would protect no id/,
    { 'ids.txt': lines, 'keep.txt': 'a/1\n' },
    [...notes, '--protect', 'keep.txt', '--expect-unprotected'],
    /(--allow-id-chars \/)/,
  ),
  row(
    'input/read-csv.ts',
    /no column "Annotation ID"/,
    { 'ids.csv': `row,Annotation ID\n1,${ids[0]}\n`, 'keep.csv': 'id,why\nb,x\n' },
    [...notes, '--column', 'Annotation ID', '--protect', 'keep.csv', '--expect-unprotected'],
    /as in (EXPUNGE_PROTECT_COLUMN=id)/,
    { sends: null },
  ),
  row(
    'input/read-protected.ts',
    /at least one id to protect/,
    { 'ids.txt': lines, 'keep.txt': '' },
    [...notes, '--protect', 'keep.txt'],
    /omit --protect()/,
    { without: ['--protect', 'keep.txt'] },
  ),
  row(
    'input/read-protected.ts',
    /protected ids come from a file/,
    { 'ids.txt': lines },
    [...notes, '--protect', '-'],
    /write them to a file first()/,
    { sends: null },
  ),
  row(
    'operations/plan-list.ts',
    /--max-deletes allows 2/,
    { 'ids.txt': lines },
    [...notes, '--max-deletes', '2'],
    /(--max-deletes 3)/,
  ),
  row(
    'operations/plan-list.ts',
    /--max-deletes allows 2/,
    { 'ids.txt': lines },
    [...notes, '--max-deletes', '2'],
    /(--limit 2)/,
    { sends: 2 },
  ),
  row(
    'operations/plan-list.ts',
    /--expect-count is 2/,
    { 'ids.txt': lines },
    [...notes, '--expect-count', '2'],
    /(--expect-count 3)/,
  ),
  row('operations/plan-list.ts', /the list is empty/, { 'ids.txt': '' }, notes, /(--allow-empty)/, { sends: 0 }),
  row(
    'operations/plan-list.ts',
    /none of the 1 protected ids/,
    { 'ids.txt': lines, 'keep.txt': 'b\n' },
    [...notes, '--protect', 'keep.txt'],
    /(--expect-unprotected)/,
  ),
  row(
    'operations/plan-list.ts',
    /1 of the 2 protected ids matches no row/,
    { 'ids.txt': lines, 'keep.txt': `${ids[0]}\nb\n` },
    [...notes, '--protect', 'keep.txt'],
    /(--expect-unprotected)/,
    { sends: 2 },
  ),
  row(
    'operations/plan-list.ts',
    /--expect-protected is 2/,
    { 'ids.txt': lines, 'keep.txt': `${ids[0]}\n` },
    [...notes, '--protect', 'keep.txt', '--expect-protected', '2'],
    /(--expect-protected 1)/,
    { sends: 2 },
  ),
  row(
    'operations/plan-list.ts',
    /1 id does not look like the others/,
    { 'ids.txt': `${Array.from({ length: 30 }, (_, n) => `a-${n}\n`).join('')}Total\n` },
    notes,
    /(--allow-mixed-ids)/,
    { sends: 31 },
  ),
  row(
    'operations/plan-list.ts',
    /1 id does not look like the others/,
    { 'ids.txt': `${Array.from({ length: 30 }, (_, n) => `${100 + n}\n`).join('')}Total\n` },
    notes,
    /(--id-pattern '[^']+')/,
    { sends: 30 },
  ),
  rejected(
    'unsafe_character',
    bad((n) => `x/${n % 2 ? '#' : ';'}${n}`),
    /(--allow-id-chars '[^']+')/,
  ),
  rejected(
    'unsafe_character',
    bad((n) => `https://api.example.com/v2/annotations/a-${n}`),
    thenNamed,
  ),
  rejected(
    'control_character',
    bad((n) => `a-${n}\tx`),
    /(--format csv --delimiter tab --no-header)/,
  ),
  rejected(
    'outer_white_space',
    bad((n) => `\u00a0a-${n} `),
    thenNamed,
  ),
  rejected(
    'outer_white_space',
    bad((n) => `a-${n} `),
    /(--allow-id-chars ' ')/,
  ),
  rejected(
    'spreadsheet_number',
    bad((n) => `${n + 1}.0`),
    /(--allow-damaged-numbers)/,
  ),
  rejected(
    'placeholder',
    bad(() => 'null'),
    /(--allow-placeholders)/,
    { sends: 1 },
  ),
  rejected(
    'table_text',
    bad(() => '+----+'),
    /(--allow-placeholders)/,
    { sends: 1 },
  ),
  rejected(
    'invisible_character',
    bad((n) => `a\u200b${n}`),
    /(--allow-invisible)/,
  ),
  rejected(
    'inner_white_space',
    bad((n) => `a ${n}`),
    /(--allow-id-chars ' ')/,
  ),
  rejected(
    'outer_punctuation',
    bad((n) => `"a-${n}"`),
    /(--format ndjson)/,
  ),
  rejected(
    'outer_punctuation',
    bad((n) => `a-${n},`),
    /(--allow-id-chars ,)/,
  ),
  rejected(
    'unsafe_number',
    bad((n) => `{"id":1.${n + 1}e3}`),
    /(--expect-rejected)/,
    { ending: 'ndjson', sends: 0 },
  ),
  rejected(
    'missing_id',
    bad((n) => `{"key":"a-${n}"}`),
    /with (--column)/,
    { ending: 'ndjson', value: ['key'] },
  ),
  rejected(
    'unknown_resource',
    bad((n) => `{"id":"a-${n}","kind":"annotations"}`),
    /with (--resource-column)/,
    { ending: 'ndjson', args: ['--resource-column', 'x'], value: ['kind'], without: ['--resource-column', 'x'] },
  ),
  rejected(
    'several_values',
    bad((n) => `a-${n}*`),
    /hold such characters: (--allow-id-chars '\*')/,
  ),
  rejected(
    'misspelt_resource',
    bad((n) => `{"id":"a-${n}","kind":"Annotation"}`),
    /write annotations or views in that column()/,
    { ending: 'ndjson', args: ['--resource-column', 'kind'], sends: null },
  ),
  rejected(
    'pattern_mismatch',
    bad((n) => `a-${n}`),
    /check (--id-pattern)/,
    { args: [...notes, '--id-pattern', 'b.*'], value: ['a-\\d+'], without: ['--id-pattern', 'b.*'] },
  ),
];

type More = Partial<Pick<Case, 'isCommand' | 'value' | 'without' | 'stdin' | 'sends'>>;

function row(
  at: string,
  words: RegExp,
  files: Case['files'],
  args: string[],
  advice: RegExp,
  { isCommand = advice === thenNamed, value = [], without = [], stdin = '', sends = 3 }: More = {},
): Case {
  const lists = Object.keys(files).filter((name) => name !== 'keep.txt' && !name.includes('/'));
  return { at, words, files, args: [...lists, ...args], advice, isCommand, value, without, stdin, sends };
}

/** A list of which all rows are rejected. */
function rejected(
  code: string,
  text: string,
  advice: RegExp,
  { ending = 'txt', args = notes, ...more }: Rejected = {},
) {
  const words = new RegExp(`rejected as ${code}|neither are 11 other rows`);
  return row(code, words, { [`my ids.${ending}`]: text }, args, advice, { sends: 12, ...more });
}

type Rejected = More & { ending?: string; args?: string[] };

describe('what a refusal advises leads on:', () => {
  test.for(cases)('$at, $words, $advice', async (given, { onTestFinished }) => {
    const { files, args, stdin: input, words, advice, isCommand, value, sends } = given;
    const { file, folder, run, sandbox } = await openHarness(onTestFinished);
    mkdirSync(join(folder, 'my ids'));
    for (const [name, text] of Object.entries(files)) file(name, text);
    const refused = await run([...args, '--yes'], { input });
    expect(refused.stderr).toMatch(words);
    expect(refused.stderr).toMatch(advice);
    expect([refused.code === 2 || refused.code === 4, sandbox.counts.requests]).toEqual([true, 0]);
    if (sends === null) return;
    const [, found = '', named = ''] = advice.exec(refused.stderr)!;
    if (isCommand) execFileSync('sh', ['-c', found], { cwd: folder });
    const added = isCommand ? wordsOf(named, folder) : [...wordsOf(found, folder), ...value];
    const replaced = [...given.without, ...(named === '' ? [] : args.slice(0, 1))];
    const flags = ['--dry-run', '--json'];
    const mended = await run([...args.filter((arg) => !replaced.includes(arg)), ...added, ...flags], { input });
    const { annotations, views, rejected } = JSON.parse(mended.stdout);
    const code = rejected > 0 ? 3 : 0;
    expect([mended.code, annotations + views], mended.stderr).toEqual([code, sends]);
  });
});

/** The words as a shell reads them. */
function wordsOf(written: string, folder: string): string[] {
  if (written === '') return [];
  const script = `for word in ${written}; do printf '%s\\n' "$word"; done`;
  return execFileSync('sh', ['-c', script], { cwd: folder, encoding: 'utf8' }).split('\n').slice(0, -1);
}

describe('the table has a row for', () => {
  const folder = new URL('../../../src/', import.meta.url).pathname;
  const paths = [...readdirSync(`${folder}input`).map((name) => `input/${name}`), 'operations/plan-list.ts'];
  // In follow-advice.test.ts, for a list that is sent in packed-lists.test.ts, and what is not about the input: a disk that is full, a state folder.
  const elsewhere: Record<string, number> = {
    'input/decompress.ts': 2,
    'input/foreign-format.ts': 1,
    'input/spool.ts': 1,
    'input/with-list.ts': 1,
    'input/open-inputs.ts': 1,
  };

  test.each(paths)('each error of %s', (path) => {
    const places =
      readFileSync(folder + path, 'utf8').match(/(?<!function )\b(?:inputError|new ExpungeError)\(/g)?.length ?? 0;
    const rows = cases.filter(({ at }) => at === path).length + (elsewhere[path] ?? 0);
    if (path !== 'input/input-error.ts') expect(rows).toBeGreaterThanOrEqual(places);
  });

  test.each(rejectCodes.filter((code) => rejectionMend(code, []) !== ''))('the code %s', (code) => {
    expect(cases.map(({ at }) => at)).toContain(code);
  });
});
