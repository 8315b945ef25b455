import { execFileSync, spawnSync } from 'node:child_process';
import { stringify } from 'csv-stringify/sync';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { collect, inputOf } from '../../unit/input/read-text.ts';

type Ids = readonly string[];

/** How a program writes lists: the ending of its files, and their texts. */
type Writer = { name: string; needs: string | null; isQuoting: boolean; ending: string; write(lists: Ids[]): Buffer[] };

const writers: Writer[] = [
  {
    name: 'csv-stringify',
    needs: null,
    isQuoting: true,
    ending: 'csv',
    write: (lists) => lists.map((ids) => Buffer.from(stringify([['id'], ...ids.map((id) => [id])]))),
  },
  {
    name: 'jq -c, one object a line',
    needs: 'jq',
    isQuoting: true,
    ending: 'ndjson',
    write: (lists) => texts(filter('jq', ['-c', '.[] | (.[] | {id: ., name: "x"}), null'], lists), 'null\n'),
  },
  {
    name: 'jq -c, one array',
    needs: 'jq',
    isQuoting: true,
    ending: 'json',
    write: (lists) => texts(filter('jq', ['-c', '.[]'], lists), '\n'),
  },
  {
    name: "Python's csv module",
    needs: 'python3',
    isQuoting: true,
    ending: 'csv',
    write: (lists) => JSON.parse(filter('python3', ['-c', python], lists)).map(Buffer.from),
  },
  {
    name: 'printf, one id a line',
    needs: 'printf',
    isQuoting: false,
    ending: 'txt',
    write: (lists) => lists.map((ids) => execFileSync('printf', ['%s\\n', ...ids])),
  },
];

const python = `
import csv, io, json, sys
texts = []
for ids in json.load(sys.stdin):
    text = io.StringIO(newline='')
    rows = csv.writer(text)
    rows.writerow(['id', 'name'])
    rows.writerows([id, 'a, "b"'] for id in ids)
    texts.append(text.getvalue())
json.dump(texts, sys.stdout)
`;

function filter(program: string, args: string[], value: unknown): string {
  return execFileSync(program, args, { input: JSON.stringify(value), encoding: 'utf8', maxBuffer: 2 ** 26 });
}

/** The texts of the lists, each of which this ends. */
function texts(written: string, end: string): Buffer[] {
  return written
    .split(end)
    .slice(0, -1)
    .map((text) => Buffer.from(text));
}

function has(program: string | null): boolean {
  return program === null || spawnSync('sh', ['-c', `command -v ${program}`]).status === 0;
}

const digit = fc.constantFrom(...'0123456789');
const base64url = fc.constantFrom(...'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_');
/** Printable ASCII without what an id holds only with --allow-id-chars; the marks quote and separate values where nothing quotes them. */
const plain = [...'!$&()+-.:=@[]^_{}~', ...'abcXYZ0123456789'];
const marks = [...'"\'`|<>'];

/** What an id is only with a flag, among the texts that the generators make. */
const placeholders = new Set(['0', '-', '--', '.', '..']);

/** Ids of 1 to 512 bytes, as random as the programs that make them. */
function kindsOfIds(isQuoting: boolean): Record<string, fc.Arbitrary<string>> {
  const mixed = fc.constantFrom(...plain, ...(isQuoting ? marks : []));
  const time = fc.nat(2 ** 30);
  const machine = fc.nat(31);
  return {
    uuid: fc.uuid(),
    compactUuid: fc.uuid().map((uuid) => uuid.replaceAll('-', '').toUpperCase()),
    number: text(digit, 512),
    longNumber: fc.string({ unit: digit, minLength: 16, maxLength: 20 }),
    shortNumber: fc.nat(100_000).map((n) => String(n + 1)),
    snowflake: fc.tuple(time, machine, fc.nat(2 ** 12 - 1)).map(snowflake),
    quietSnowflake: fc.tuple(time, machine, fc.constant(0)).map(snowflake),
    base64url: text(base64url, 512),
    base64urlOf16Bytes: fc.string({ unit: base64url, minLength: 22, maxLength: 22 }),
    urn: fc.oneof(
      fc.uuid().map((uuid) => `urn:uuid:${uuid}`),
      text(mixed, 500).map((name) => `urn:x-1:${name}`),
    ),
    mixed: text(mixed, 512),
    shortMixed: fc.string({ unit: mixed, minLength: 4, maxLength: 12 }),
  };
}

function text(unit: fc.Arbitrary<string>, maxLength: number): fc.Arbitrary<string> {
  return fc.string({ unit, minLength: 1, maxLength, size: 'max' });
}

/** 41 bits of time, 10 of the machine, 12 of a number that starts again with each millisecond: a quiet system never counts past 0. */
function snowflake([time, machine, sequence]: [number, number, number]): string {
  return String(((300_000_000_000n + BigInt(time)) << 22n) | (BigInt(machine) << 12n) | BigInt(sequence));
}

describe('lists of opaque ids come back byte for byte, in order, with no row rejected,', () => {
  test.for(writers)('as written by $name (skipped without the program)', async (writer, { skip }) => {
    const { needs, isQuoting, ending, write } = writer;
    if (!has(needs)) skip(`${needs} is not installed`);
    const list = (id: fc.Arbitrary<string>) =>
      fc.array(
        fc.noBias(id).filter((text) => !placeholders.has(text)),
        { minLength: 1, maxLength: 40, size: 'max' },
      );
    const lists = fc.array(fc.oneof(...Object.values(kindsOfIds(isQuoting)).map(list)), {
      minLength: 40,
      maxLength: 40,
    });
    // With any seed, one of a thousand lists of long numbers would look rounded by chance.
    const check = async (given: Ids[]) => {
      for (const [n, text] of write(given).entries()) {
        const rows = await collect([inputOf(`ids.${ending}`, text)]);
        const bad = rows.filter(({ reject }) => reject !== null).map(({ id, reject }) => `${id} ${reject}`);
        expect(bad).toEqual([]);
        expect(rows.map(({ id }) => id)).toEqual(given[n]);
      }
    };
    await fc.assert(fc.asyncProperty(lists, check), { seed: 1, numRuns: 2, endOnFailure: true });
  });
});
