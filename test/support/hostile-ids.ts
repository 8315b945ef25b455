import fc from 'fast-check';
import { expect } from 'vitest';
import { type Resource, resources } from '../../src/model/resource.ts';
import type { SandboxObject } from '../../src/sandbox/objects.ts';
import { requestOf } from './checker.ts';
import { summaryIn } from './command.ts';
import { openHarness } from './harness.ts';
import { configOf, configuredResources, know, type WrittenResources } from './resources.ts';

/** How hostile ids are written into a list, which characters the command is told to let pass, and which resources are configured. */
export type HostileWay = { format: 'ndjson' | 'csv'; allowed: string; kinds: keyof typeof kindsOf };

/** Of the configured ones, an id stands at the end of a path or before its end, and one path is the beginning of another. */
const kindsOf = { 'built in': {}, configured: configuredResources } satisfies Record<string, WrittenResources>;

const everything = '/\\%?#; ';

export const hostileWays: readonly HostileWay[] = (['built in', 'configured'] as const).flatMap((kinds) => [
  { format: 'ndjson', allowed: '', kinds },
  { format: 'ndjson', allowed: everything, kinds },
  { format: 'csv', allowed: '', kinds },
  { format: 'csv', allowed: everything, kinds },
]);

/**
 * Sends `count` hostile ids through the command to a sandbox that holds all of them, and everything they could be mistaken for, under
 * each resource. Checks that exactly the accepted ids were requested, each once, at the path that is theirs, and nothing else is gone.
 */
export async function sendHostileIds(count: number, seed: number, way: HostileWay): Promise<void> {
  know(kindsOf[way.kinds]);
  try {
    await sendKnown(count, seed, way);
  } finally {
    know({});
  }
}

async function sendKnown(count: number, seed: number, { format, allowed, kinds }: HostileWay): Promise<void> {
  const listed = makeHostileIds(count, seed).filter(({ id }) => format === 'ndjson' || isUnicode(id));
  const objects = [...listed, ...mistakable(listed)];
  const harness = await openHarness(null, { account: '', objects, record: true });
  Object.assign(harness.env, configOf(harness, kindsOf[kinds]));
  try {
    const before = harness.sandbox.remaining();
    const file = `hostile.${format}`;
    harness.file(file, format === 'csv' ? asCsv(listed) : asNdjson(listed));
    const flags = ['--allow-column-names', ...(allowed === '' ? [] : ['--allow-id-chars', allowed])];
    const ended = await harness.run([file, '--resource-column', 'resource', '--yes', '--json', ...flags]);
    expect(ended.stderr).not.toContain('error:');
    const summary = summaryIn(ended);
    expect(summary).toMatchObject({
      state: 'completed',
      rows: listed.length,
      pending: 0,
      failed: 0,
      unknown: 0,
      absent: 0,
    });

    const report = await harness.expunge(['report', summary.run, '--format', 'ndjson']);
    const rows: ReportRow[] = report.stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line));
    expect(rows).toHaveLength(listed.length);
    const accepted = listed.filter((_, i) => rows[i]!.outcome === 'deleted');
    for (const [i, { id, resource }] of listed.entries())
      if (rows[i]!.outcome === 'deleted') expect([rows[i]!.resource, rows[i]!.id]).toEqual([resource, id]);

    expect(accepted.filter(({ id }) => mustBeRejected(id, allowed))).toEqual([]);
    expect(accepted.length).toBeGreaterThan(count / 20);
    expect(summary.rejected).toBeGreaterThan(count / 20);
    const targets = accepted.map(({ resource, id }) => requestOf(resource, id));
    expect(difference(harness.sandbox.seen, targets)).toEqual([]);
    expect(difference(targets, harness.sandbox.seen)).toEqual([]);
    expect(harness.sandbox.seen).toHaveLength(accepted.length);
    expect(difference([...harness.sandbox.executed], accepted.map(nameOf))).toEqual([]);
    expect(harness.sandbox.remaining()).toBe(before - accepted.length);
  } finally {
    await harness.close();
  }
}

type ReportRow = { resource: Resource | null; id: string; outcome: string };

/** What the design says is never sent, in other words than the program's. */
function mustBeRejected(id: string, allowed: string): boolean {
  const characters = [...id];
  const isControl = (code: number) => code < 0x20 || (code >= 0x7f && code < 0xa0);
  return (
    ['', '.', '..'].includes(id) ||
    !isUnicode(id) ||
    characters.some((character) => isControl(character.codePointAt(0)!)) ||
    characters.some((character) => '/\\%?#;'.includes(character) && !allowed.includes(character)) ||
    (!allowed.includes(' ') && id !== id.trim()) ||
    new TextEncoder().encode(id).length > 1_024
  );
}

/** False for lone surrogates, which UTF-8 cannot hold. */
function isUnicode(id: string): boolean {
  return Buffer.from(id).toString() === id;
}

/** Whatever a careless client, proxy or parser could turn the ids into, under each resource; none of it is listed itself. */
function mistakable(listed: SandboxObject[]): SandboxObject[] {
  const known = new Set(listed.map(nameOf));
  const others: SandboxObject[] = [];
  for (const { id } of listed) {
    for (const other of [id, ...confusions(id)]) {
      for (const resource of resources) {
        const name = `${resource}/${other}`;
        if (known.has(name)) continue;
        known.add(name);
        others.push({ resource, id: other });
      }
    }
  }
  return others;
}

function confusions(id: string): string[] {
  const encoded = isUnicode(id)
    ? [encodeURIComponent(id), encodeURI(id), new URL(`http://h/${id}`).pathname.slice(1)]
    : [];
  const parts = id.split(/[/\\?#;%\s]+/);
  const forms = [
    id.trim(),
    id.toLowerCase(),
    id.normalize('NFC'),
    id.normalize('NFKC'),
    id.replaceAll('\0', ''),
    String(Number(id)),
  ];
  return [id.slice(0, -1), id.slice(1), decoded(id), decoded(decoded(id)), ...encoded, ...parts, ...forms];
}

function decoded(id: string): string {
  try {
    return decodeURIComponent(id);
  } catch {
    return id.replaceAll('+', ' ');
  }
}

const pieces = [
  ...[
    '.',
    '..',
    '%2e',
    '%2E%2E',
    '/',
    '//',
    '\\',
    '%2F',
    '%2f..',
    '%5c',
    '?',
    '#',
    ';',
    ':',
    '@',
    '&',
    '=',
    '+',
    '%',
    '%%',
  ],
  ...[
    '%25',
    '%00',
    '%0d%0a',
    '%zz',
    '%u002e',
    ' ',
    '\t',
    '\n',
    '\r\n',
    '\0',
    '\u007f',
    '\u0085',
    '\u00a0',
    '\u2028',
    '\u200b',
  ],
  ...[
    '\u202e',
    '\ufeff',
    '\u3000',
    '\u00e9',
    'e\u0301',
    '\u212b',
    '\ud83d\ude00',
    '\ud800',
    '\udfff',
    '\uff0e\uff0e',
    '\uff0f',
  ],
  ...[
    "'",
    '"',
    '""',
    ',',
    '$',
    '{}',
    '|',
    '^',
    '`',
    '<b>',
    '~',
    '!',
    '*',
    '(1)',
    '[0]',
    '\ud83d\udc68\u200d\ud83d\udc69',
  ],
  ...['/file', 'file', 'v3', 'exports', '{id}'],
  ...[
    'a-000001',
    'v2',
    'views',
    'annotations',
    '__proto__',
    'constructor',
    'null',
    'NaN',
    'true',
    '0',
    '-0',
    '007',
    '1e3',
  ],
  ...[
    '1.2E+05',
    '9007199254740993',
    'id',
    'resource',
    '=1+1',
    '@SUM',
    ' HTTP/1.1\r\nHost: x',
    'http://x',
    '//x',
    '?q=1',
    '#f',
  ],
  ...['x'.repeat(1_024), '\u00e9'.repeat(512), '\u20ac'.repeat(342)],
];

/** So many listed objects with ids as hostile as we can think of; the same for the same seed. Some stand twice. */
function makeHostileIds(count: number, seed: number): SandboxObject[] {
  const piece = fc.constantFrom(...pieces);
  const joined = fc.array(piece, { minLength: 1, maxLength: 4 }).map((list) => list.join(''));
  const numbered = fc.tuple(piece, fc.nat()).map(([text, n]) => `${n}${text}${n}`);
  const text = fc.oneof(fc.string({ unit: 'binary', maxLength: 12 }), fc.string({ unit: 'grapheme', maxLength: 12 }));
  const id = fc.oneof(joined, numbered, text);
  return fc.sample(fc.record({ resource: fc.constantFrom(...resources), id }), { numRuns: count, seed });
}

function asNdjson(listed: SandboxObject[]): string {
  return listed.map((row) => `${JSON.stringify(row)}\n`).join('');
}

function asCsv(listed: SandboxObject[]): string {
  return ['resource,id', ...listed.map(({ resource, id }) => `${resource},"${id.replaceAll('"', '""')}"`), ''].join(
    '\n',
  );
}

function nameOf({ resource, id }: SandboxObject): string {
  return `${resource}/${id}`;
}

/** The first few of `some` that are not in `others`: a list of thousands would be no message. */
function difference(some: readonly string[], others: readonly string[]): string[] {
  const known = new Set(others);
  return some.filter((text) => !known.has(text)).slice(0, 5);
}
