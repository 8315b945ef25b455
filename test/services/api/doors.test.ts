import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { noteTarget } from '../../../src/ledger/known-targets.ts';
import { type RejectCode, rejectCodes } from '../../../src/model/row.ts';
import type { Schedule } from '../../../src/schedule/schedule.ts';
import { readSchedule } from '../../../src/schedule/schedule-store.ts';
import { type Api, openApi, overServer } from '../../support/api.ts';
import { atEndOfTests } from '../../support/harness.ts';
import { annotations } from '../../support/ids.ts';
import { isFull } from '../../support/size.ts';

// A list comes in through a local command, through --server, through the API, and through a schedule. Each reads it the same way.

/** A list that is refused. `flags`: with these it is accepted; null: nothing accepts it. `more`: what the command says of it anyway. */
type Case = { file: string; text: string | Buffer; says: RegExp; flags: string[] | null; more?: string[] };

/** More than half of these rows are rejected. */
const csv = (cell: string) => `id,n\nfine-1,1\n${Array.from({ length: 12 }, (_, n) => `${cell},${n}`).join('\n')}\n`;
const lines = (line: string) => `fine-1\n${`${line}\n`.repeat(12)}`;
const ndjson = (line: string) => `{"id":"fine-1"}\n${`${line}\n`.repeat(12)}`;

const allowed = ['--expect-rejected'];

/** A list that is mostly rejected with each code. No list is known in which an id has an unstable path. */
const rejected: Record<Exclude<RejectCode, 'path_not_stable'>, Omit<Case, 'says'>> = {
  empty_id: { file: 'empty_id.csv', text: csv('""'), flags: allowed },
  dot_segment: {
    file: 'dot_segment.csv',
    text: csv('a/../../views/v-1'),
    flags: allowed,
    more: ['--allow-id-chars', '/'],
  },
  lone_surrogate: { file: 'lone_surrogate.ndjson', text: ndjson('{"id":"a\\ud800"}'), flags: allowed },
  control_character: { file: 'control_character.csv', text: csv('a\u0007b'), flags: allowed },
  unsafe_character: { file: 'unsafe_character.csv', text: csv('a/b'), flags: ['--allow-id-chars', '/'] },
  outer_white_space: { file: 'outer_white_space.csv', text: csv('a '), flags: ['--allow-id-chars', ' '] },
  too_long: { file: 'too_long.csv', text: csv('a'.repeat(1_025)), flags: allowed },
  spreadsheet_number: { file: 'spreadsheet_number.csv', text: csv('123.0'), flags: ['--allow-damaged-numbers'] },
  not_a_string: { file: 'not_a_string.ndjson', text: ndjson('{"id":true}'), flags: allowed },
  unsafe_number: { file: 'unsafe_number.ndjson', text: ndjson('{"id":1.5e3}'), flags: allowed },
  missing_id: { file: 'missing_id.ndjson', text: ndjson('{"name":"a"}'), flags: allowed },
  unknown_resource: {
    file: 'unknown_resource.csv',
    text: csv('a-1').replace('id,n', 'id,kind').replace(/,1\n/, ',annotations\n'),
    flags: allowed,
    more: ['--resource-column', 'kind'],
  },
  misspelt_resource: {
    file: 'misspelt_resource.csv',
    text: csv('a-1')
      .replace('id,n', 'id,kind')
      .replace(/,1\n/, ',annotations\n')
      .replace(/,\d+\n/g, ',Annotation\n'),
    flags: allowed,
    more: ['--resource-column', 'kind'],
  },
  several_values: { file: 'several_values.csv', text: csv('"a,b"'), flags: ['--allow-id-chars', ','] },
  repeated_header: { file: 'repeated_header.ndjson', text: ndjson('{"id":"id"}'), flags: allowed },
  duplicate_key: { file: 'duplicate_key.ndjson', text: ndjson('{"id":"a","id":"b"}'), flags: allowed },
  placeholder: { file: 'placeholder.csv', text: csv('NULL'), flags: ['--allow-placeholders'] },
  invisible_character: { file: 'invisible.csv', text: csv('a\u200bb'), flags: ['--allow-invisible'] },
  inner_white_space: { file: 'inner.txt', text: lines('a b'), flags: ['--allow-id-chars', ' '] },
  outer_punctuation: { file: 'outer.txt', text: lines("'a'"), flags: ['--allow-id-chars', "'"] },
  table_text: { file: 'table_text.csv', text: csv('+----+'), flags: ['--allow-placeholders'] },
  pattern_mismatch: {
    file: 'pattern.csv',
    text: csv('a-1'),
    flags: allowed,
    more: ['--id-pattern', 'fine-[0-9]{1,3}'],
  },
};

/** A list that is refused as a whole. */
const refused: Record<string, Case> = {
  'an empty list': { file: 'empty.csv', text: 'id\n', says: /the list is empty: 0 rows/, flags: ['--allow-empty'] },
  'a header in the middle': {
    file: 'joined.csv',
    text: 'id,n\n1,2\nview_id,n\n3,4\n',
    flags: ['--allow-column-names'],
    says: /:3: the row holds "view_id", the name of a column/,
  },
  'a header in plain lines': {
    file: 'header.txt',
    text: 'view_id\n1\n',
    flags: ['--allow-column-names'],
    says: /:1: the first row holds "view_id"/,
  },
  'a column that names the other resource': {
    file: 'resource.csv',
    text: 'resource,id\nviews,7\n',
    flags: ['--resource-column', 'resource'],
    says: /:2: the column "resource" says "views", but --resource is annotations/,
  },
  'two columns that could hold the ids': {
    file: 'columns.csv',
    text: 'id,annotation_id\n1,2\n',
    flags: ['--column', 'annotation_id'],
    says: /:1: both "id" and "annotation_id"/,
  },
  'rounded numbers': {
    file: 'rounded.txt',
    text: '1234567890123450\n1234567890123460\n9876543210987600\n',
    says: /:1: the long numbers in this list look rounded/,
    flags: ['--allow-damaged-numbers'],
  },
  'text among plain lines': {
    file: 'foreign.txt',
    text: 'a-1\nno such id\nnor this\nor that\n',
    flags: ['--expect-rejected'],
    says: /:2: "no such id" is not an id/,
  },
  'more ids than --max-deletes': {
    file: 'long.txt',
    text: 'l-1\nl-2\nl-3\n',
    flags: ['--partial'],
    more: ['--max-deletes', '2'],
    says: /the list holds 3 ids, --max-deletes allows 2/,
  },
  'another number than --expect-count': {
    file: 'count.txt',
    text: 'n-1\nn-2\n',
    flags: ['--expect-count', '2'],
    more: ['--expect-count', '3'],
    says: /the list holds 2 ids, --expect-count is 3/,
  },
  'JSON in plain lines': { file: 'json.txt', text: '{"id":"a"}\n', says: /looks like JSON/, flags: null },
  'another encoding': { file: 'wide.csv', text: Buffer.from('\ufeffid\na\n', 'utf16le'), says: /UTF-16/, flags: null },
};

const cases: [string, Case][] = [
  ...Object.entries(rejected).map(([code, given]): [string, Case] => [
    `rows that are ${code}`,
    { ...given, says: new RegExp(`12 of 13 rows are rejected as ${code}`) },
  ]),
  ...Object.entries(refused),
];

/** Flags as what a request has: a query, or the body of a schedule. */
function fieldsOf(flags: readonly string[]): [name: string, value: string | true][] {
  return flags.flatMap((flag, n) => {
    if (!flag.startsWith('--')) return [];
    const value = flags[n + 1];
    return [[flag.slice(2).replaceAll('-', '_'), value === undefined || value.startsWith('--') ? true : value]];
  });
}

const types: Record<string, string> = {
  csv: 'text/csv',
  txt: 'text/plain',
  ndjson: 'application/x-ndjson',
  json: 'application/json',
};

let api: Api;
let env: NodeJS.ProcessEnv;
const folder = mkdtempSync(join(tmpdir(), 'expunge-doors-'));
const atEnd = atEndOfTests();
atEnd(async () => rmSync(folder, { recursive: true }));

const config = join(folder, 'config.json');

beforeAll(async () => {
  const source = ([, { file }]: [string, Case], n: number) => [`source-${n}`, { command: ['cat', join(folder, file)] }];
  const sources = Object.fromEntries([...cases.map(source), ['cut', { glob: join(folder, 'cut.txt') }]]);
  writeFileSync(join(folder, 'cut.txt'), 'c-1\nc-22');
  writeFileSync(config, JSON.stringify({ sources }));
  for (const [, { file, text }] of cases) writeFileSync(join(folder, file), text);
  api = await openApi(atEnd, {
    objects: annotations(['a-1']),
    env: { EXPUNGE_CONFIG: config },
    args: ['worker', '--http', '0'],
  });
  await noteTarget(api.redis, api.harness.target, Date.now());
  env = await overServer(api);
});

const inWords = (text: string) => text.replace(/\s+/g, ' ');

const doors = ['here', 'server', 'api'];
const namesOf = ({ flags, more = [] }: Pick<Case, 'flags' | 'more'>) =>
  [...(flags ?? ['none']), ...more].filter((word) => !/^\d/.test(word)).join();

describe.each(cases)('%s', (_, { file, text, says, flags, more = [] }) => {
  const path = join(folder, file);
  const kindFor = (words: readonly string[]) =>
    words.includes('--resource-column') ? words : ['--resource', 'annotations', ...words];
  const index = cases.findIndex(([, given]) => given.file === file);
  const name = `source-${index}`;
  const withFlags = [...more.filter((__, n) => !(more[0] === flags?.[0] && n < 2)), ...(flags ?? [])];

  test('is refused in the same words beside Redis, over a server and by the API, and accepted with the flag', async () => {
    const { harness } = api;
    const plan = (words: readonly string[]) => harness.expunge(['run', path, ...kindFor(words), '--dry-run']);
    const here = await plan(more);
    expect([here.code === 2 || here.code === 4, inWords(here.stderr)]).toEqual([true, expect.stringMatching(says)]);
    const send = (words: readonly string[]) =>
      harness.expunge(['run', path, ...kindFor(words), '--detach', '--confirm', '999'], { env }); // no list has so many
    const over = await send(more);
    expect([over.code, inWords(over.stderr)]).toEqual([here.code, expect.stringMatching(says)]);
    if (here.stderr.includes(`${file}:`)) expect(over.stderr).toContain(`${path}:`);
    const advice = (told: string) => inWords(told).match(/--[a-z][a-z-]+/g);
    expect(advice(over.stderr)).toEqual(advice(here.stderr));
    const post = (words: readonly string[]) => {
      const given = fieldsOf(kindFor(words)).map(([field, value]): [string, string] => [field, String(value)]);
      const query = new URLSearchParams([['target', harness.target.fp], ['name', file.split('.')[0]!], ...given]);
      const headers = { 'content-type': types[file.split('.')[1]!]! };
      return api.call('operate', `/plans?${query}`, { method: 'POST', raw: text as string, headers });
    };
    const posted = await post(more);
    expect([[409, 422].includes(posted.status), posted.body.detail]).toEqual([true, expect.stringMatching(says)]);
    const fields = fieldsOf(flags ?? []).map(([field]) => field);
    if (posted.body.next?.includes(flags?.[0] ?? '?'))
      expect(posted.body.fields).toEqual(expect.arrayContaining(fields));
    if (flags === null) return;
    expect(await plan(withFlags)).toMatchObject({ code: flags.includes('--expect-rejected') ? 3 : 0 });
    const accepted = await send(withFlags);
    expect(accepted.stderr).toMatch(/not confirmed|expected \d+|of 0 ids|--confirm/);
    expect(accepted.stderr).not.toMatch(says);
    expect((await post(withFlags)).body).toMatchObject({ confirm: expect.any(Number) });
  });

  // In short, one list for each set of flags, through one of the doors by which a schedule is added; all of them store it the same.
  const isFirst = cases.findIndex(([, given]) => namesOf(given) === namesOf({ flags, more })) === index;
  if (flags?.[0] === '--partial' || !(isFull || isFirst)) return;
  test('is refused the same in an occurrence, and accepted with the flag', async () => {
    const { harness, redis } = api;
    const { fp } = harness.target;
    const add = async (door: string, words: readonly string[]) => {
      const bound = words.includes('--max-deletes') ? [] : ['--max-deletes', '100'];
      const format = { csv: 'csv', txt: 'lines', ndjson: 'ndjson' }[file.split('.')[1]!]!;
      const given = ['--cron', '0 3 1 1 *', '--from', name, ...bound, '--format', format, ...kindFor(words)];
      if (door === 'api') {
        const fields = fieldsOf(given).map(([field, value]) => [
          field,
          field === 'max_deletes' ? Number(value) : value,
        ]);
        const named = { target: fp, name: `${name}-api`, replace: true, resource: null };
        const body = { ...named, ...Object.fromEntries(fields) };
        expect(await api.call('operate', '/schedules', { method: 'POST', body })).toMatchObject({ status: 201 });
      } else {
        const line = ['schedule', 'add', `${name}-${door}`, '--replace', ...given];
        expect(await harness.expunge(line, { env: door === 'server' ? env : {} })).toMatchObject({ code: 0 });
      }
      return (await readSchedule(redis, fp, `${name}-${door}`))!;
    };
    const chosen = isFull ? doors : [doors[index % doors.length]!];
    for (const words of flags === null ? [more] : [more, withFlags]) {
      const stored = new Map<string, Schedule>();
      for (const door of doors) stored.set(door, await add(door, words));
      expect(new Set([...stored.values()].map(({ settings }) => JSON.stringify(settings))).size).toBe(1);
      for (const door of chosen) {
        if (words === withFlags) {
          const dry = ['schedule', 'run', `${name}-${door}`, '--dry-run', '--json'];
          const { stdout } = await harness.expunge(dry, { env: { EXPUNGE_CONFIG: config } });
          expect(JSON.parse(stdout)).toMatchObject({ dry_run: true, guard: null });
          continue;
        }
        const body = { seen: stored.get(door)!.revision };
        const ran = await api.call('operate', `/schedules/${fp}/${name}-${door}/run`, { method: 'POST', body });
        expect(ran.text.replaceAll('\\"', '"')).toMatch(says);
      }
    }
    expect(await harness.runs()).toEqual([]);
  });
});

test('there is a list for every code of rejection', () => {
  expect([...Object.keys(rejected), 'path_not_stable'].sort()).toEqual([...rejectCodes].sort());
});

describe('a list whose last id may be cut off', () => {
  const line = ['run', '-', '--resource', 'annotations', '--detach', '--confirm', '999'];

  test('is refused from a pipe over --server as by a local command, by the name that it has there', async () => {
    const { harness } = api;
    const here = await harness.expunge(line, { input: 'c-1\nc-22' });
    const there = await harness.expunge(line, { input: 'c-1\nc-22', env });
    expect([here.code, here.stderr]).toEqual([2, expect.stringContaining('(stdin):2: the last line has no newline')]);
    expect([there.code, there.stderr]).toEqual([2, expect.stringContaining('(stdin):2: the last line has no newline')]);
    const whole = await harness.expunge(line, { input: 'c-1\nc-22\n', env });
    expect([whole.code, whole.stderr]).toEqual([2, expect.stringContaining('expected 2')]);
  });

  test('is refused by the API, unless its caller says that it is whole', async () => {
    const query = `/plans?target=${api.harness.target.fp}&resource=annotations`;
    const post = (more: string, raw: string) =>
      api.call('operate', query + more, { method: 'POST', raw, headers: { 'content-type': 'text/plain' } });
    for (const more of ['', '&piped=true']) {
      expect((await post(more, 'c-1\nc-22')).body).toMatchObject({ status: 422, fields: ['allow_open_end'] });
      expect((await post(more, 'c-1\nc-22\n')).body).toMatchObject({ confirm: 2 });
      expect((await post(`${more}&allow_open_end=true`, 'c-1\nc-22')).body).toMatchObject({ confirm: 2 });
    }
  });

  test('is refused in an occurrence', async () => {
    const { harness } = api;
    const add = ['--cron', '0 3 1 1 *', '--from', 'cut', '--max-deletes', '9', '--resource', 'annotations'];
    expect(await harness.expunge(['schedule', 'add', 'cut', ...add], { env })).toMatchObject({ code: 0 });
    const done = await harness.expunge(['schedule', 'run', 'cut'], { env });
    expect([done.code, done.stderr]).toEqual([2, expect.stringContaining('cut.txt:2: the last line has no newline')]);
  });
});

test('several arrays in one JSON are one list over --server and for the API', async () => {
  const { harness } = api;
  const list = harness.file('arrays.json', '["b-1"]\n["b-2","b-3"]\n');
  const done = await harness.expunge(['run', list, '--resource', 'views', '--detach', '--confirm', '999'], { env });
  expect(done.stderr).toContain('expected 3');
  const path = `/plans?target=${harness.target.fp}&resource=views`;
  const headers = { 'content-type': 'application/json' };
  const { body } = await api.call('operate', path, { method: 'POST', raw: '["b-1"]\n["b-2","b-3"]\n', headers });
  expect(body).toMatchObject({ confirm: 3 });
});

test('a file of protected ids is refused in words by every door that does not have it', async () => {
  const { harness } = api;
  const list = harness.list(['b-1']);
  const kind = ['--resource', 'views'];
  const flags = ['--protect', list];
  const run = await harness.expunge(['run', list, ...kind, '--detach', '--yes', ...flags], { env });
  const add = ['schedule', 'add', 'p', '--cron', '0 3 1 1 *', '--from', 'cut', '--max-deletes', '9', ...kind];
  const added = await harness.expunge([...add, ...flags], { env });
  for (const { code, stderr } of [run, added])
    expect([code, stderr]).toEqual([2, expect.stringMatching(new RegExp(`${flags.join(' ')}: .* not have this file`))]);
  const [[field, value]] = fieldsOf(flags) as [[string, string]];
  const asked = `/plans?target=${harness.target.fp}&resource=views&${field}=${encodeURIComponent(value)}`;
  const upload = { method: 'POST', raw: 'b-1\n', headers: { 'content-type': 'text/plain' } };
  expect((await api.call('operate', asked, upload)).body.detail).toContain(`"${field}"`);
  const body = {
    target: harness.target.fp,
    name: 'p',
    cron: '0 3 1 1 *',
    from: 'cut',
    max_deletes: 9,
    [field]: value,
  };
  expect((await api.call('operate', '/schedules', { method: 'POST', body })).body.detail).toContain(`"${field}"`);
});
