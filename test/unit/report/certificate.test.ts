import { createHash, createHmac, createPrivateKey, createPublicKey, generateKeyPairSync } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import type { OutcomeRow } from '../../../src/ledger/outcome-rows.ts';
import { parseRun } from '../../../src/ledger/run.ts';
import { canonicalJson } from '../../../src/model/canonical.ts';
import {
  type CertificateLine,
  type CertificateOptions,
  firstPrevious,
  hashLine,
  writeCertificate,
} from '../../../src/report/certificate.ts';
import { certificateLines, verifyCertificate } from '../../../src/report/verify-certificate.ts';

const rows = ['a-1', 'a-2', 'ä-"3\u2028', 'a-4'].map((id, i): OutcomeRow => {
  const isLast = i === 3;
  return {
    file: 'old.csv',
    line: i + 2,
    resource: 'annotations',
    id,
    attempts: 1,
    settledAt: '2026-11-20T19:13:09.000Z',
    outcome: isLast ? 'failed' : 'deleted',
    status: isLast ? 403 : 204,
    code: isLast ? 'http_403' : 'http_204',
    excerpt: `no right to ${id}`,
  };
});

const run = parseRun('20261120-1913-mxmm', {
  state: 'completed',
  rows: '4',
  deleted: '3',
  failed: '1',
  sha256: 'list',
  baseUrl: 'https://api.example.com',
  createdAt: '1',
  endedAt: '1000',
  createdBy: 'ana',
});

const unsigned: CertificateOptions = { key: null, salt: null };
const { privateKey, publicKey } = generateKeyPairSync('ed25519');
const signed: CertificateOptions = { key: privateKey, salt: null };

async function* pagesOf(all: OutcomeRow[]): AsyncGenerator<OutcomeRow[]> {
  for (let at = 0; at < all.length; at += 3) yield all.slice(at, at + 3);
}

async function certify(options = unsigned) {
  let text = '';
  const { root, rows: written } = await writeCertificate(pagesOf(rows), run, options, async (more) => {
    text += more;
    return true;
  });
  return { text, root, written, lines: text.trimEnd().split('\n') };
}

async function* blocksOf(bytes: Buffer, size: number): AsyncGenerator<Buffer> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

function check(text: string | Buffer, key = null as typeof publicKey | null, size = 64) {
  return verifyCertificate(certificateLines(blocksOf(Buffer.from(text), size)), key);
}

/** The line with other facts, and with the hash that belongs to them. */
function changed(line: string, facts: CertificateLine): string {
  const { hash: _, signature, ...content } = { ...JSON.parse(line), ...facts };
  return canonicalJson({ ...content, hash: hashLine(content), ...(signature === undefined ? {} : { signature }) });
}

describe('a certificate', () => {
  test('chains every row: each line has its number, the hash of the one before, and its own', async () => {
    const { lines, root, written } = await certify();
    let previous = firstPrevious;
    for (const [i, line] of lines.entries()) {
      const { hash, signature: _, ...content } = JSON.parse(line);
      expect(canonicalJson(JSON.parse(line))).toBe(line);
      expect(content).toMatchObject({ n: i + 1, previous });
      expect(hash).toBe(createHash('sha256').update(canonicalJson(content)).digest('hex'));
      previous = hash;
    }
    expect([root, written]).toEqual([previous, 4]);
    expect(JSON.parse(lines.at(-1)!)).toMatchObject({
      type: 'end',
      run: run.id,
      rows: 4,
      counts: { deleted: 3, failed: 1 },
      list_sha256: 'list',
      ended_at: '1970-01-01T00:00:01.000Z',
      public_key: null,
      signature: null,
    });
  });

  test('is the same each time, and holds no answer of the server', async () => {
    const { text } = await certify(signed);
    expect((await certify(signed)).text).toBe(text);
    expect(text).not.toContain('no right');
  });

  test.for([1, 7, 100_000])('is found to be whole in blocks of %i bytes', async (size) => {
    const { text, root } = await certify();
    const found = await check(text, null, size);
    expect(found).toMatchObject({ run: run.id, root, rows: 4, counts: { deleted: 3, failed: 1 }, publicKey: null });
  });

  test('with hashed ids has no id in it, and who has the salt can show that an id is', async () => {
    const salt = Buffer.alloc(32, 7);
    const { text, lines } = await certify({ key: null, salt });
    for (const { id } of rows) expect(text).not.toContain(JSON.stringify(id).slice(1, -1));
    expect(text).not.toContain(salt.toString('hex'));
    const proof = createHmac('sha256', salt).update('annotations/a-2').digest('hex');
    expect(JSON.parse(lines[2]!)).toMatchObject({ line: 3, id_hash: proof });
    expect(JSON.parse(lines.at(-1)!)).toMatchObject({ list_sha256: null }); // nor anything else that a guess can be tested with
    expect(await check(text)).toMatchObject({ rows: 4 });
  });

  test('is signed: its root with the key of its last line', async () => {
    const { text } = await certify(signed);
    const named = publicKey.export({ type: 'spki', format: 'der' }).toString('base64');
    expect(await check(text, publicKey)).toMatchObject({ rows: 4, publicKey: named });
    expect(await check(text)).toMatchObject({ publicKey: named });
    expect(text).not.toContain(privateKey.export({ type: 'pkcs8', format: 'der' }).toString('base64').slice(-40));
  });
});

describe('an edit is found, and its line named:', () => {
  test('of any byte', async () => {
    const { text } = await certify(signed);
    const bytes = Buffer.from(text);
    let line = 1;
    for (const [at, byte] of bytes.entries()) {
      for (const other of [byte ^ 1, byte ^ 32, 10].filter((value) => value !== byte)) {
        const edited = Buffer.from(bytes);
        edited[at] = other;
        expect(await check(edited), `byte ${at} is ${other}`).toMatchObject({ line, problem: expect.any(String) });
      }
      if (byte === 10) line += 1;
    }
    expect(line).toBe(7);
  });

  test('of a file that is cut off anywhere', async () => {
    const bytes = Buffer.from((await certify()).text);
    for (let end = 0; end < bytes.length; end++) {
      const line = bytes.subarray(0, end).toString().split('\n').length;
      expect(await check(bytes.subarray(0, end)), `${end} bytes`).toMatchObject({ line });
    }
  });

  test.for([
    [
      'id,outcome,code\na-1,deleted,http_204\n',
      /^the file is not a certificate: it looks like CSV, as report writes it/,
    ],
    ['a-1\na-2\n', /^the file is not a certificate$/],
    [Buffer.from([0x1f, 0x8b, 8, 0, 10]), /gzip/],
    ['{"type":"row"}\n', /line/],
  ] as const)('in a file of another kind: %j', async ([text, problem]) => {
    expect(await check(text)).toMatchObject({ line: 1, problem: expect.stringMatching(problem) });
  });

  test.for<[what: string, edit: (lines: string[]) => string[], line: number]>([
    ['a line is removed', (lines) => lines.toSpliced(2, 1), 3],
    ['the first line is removed', (lines) => lines.slice(1), 1],
    ['two lines are swapped', ([a, b, c, ...more]) => [a!, c!, b!, ...more], 2],
    ['a line is there twice', ([a, b, ...more]) => [a!, b!, b!, ...more], 3],
    ['a line is added at the end', (lines) => [...lines, lines[2]!], 7],
    ['an empty line is added at the end', (lines) => [...lines, ''], 7],
    ['the end is removed', (lines) => lines.slice(0, -1), 6],
    ['a line has another id', (lines) => lines.with(2, lines[2]!.replace('a-2', 'a-9')), 3],
    ['a line has another id and the hash of it', (lines) => lines.with(2, changed(lines[2]!, { id: 'a-9' })), 3],
    [
      'the first line has another run and the hash of it',
      (lines) => lines.with(0, changed(lines[0]!, { run: 'x' })),
      1,
    ],
    ['a space is added', (lines) => lines.with(3, lines[3]!.replace(',', ', ')), 4],
    ['a line is very long', (lines) => lines.with(3, 'x'.repeat(200_000)), 4],
    ['a line is no object', (lines) => lines.with(3, 'null'), 4],
  ])('%s', async ([, edit, line]) => {
    const { lines } = await certify();
    const edited = edit(lines);
    expect(await check(edited.map((text) => `${text}\n`).join(''))).toMatchObject({
      line,
      problem: expect.any(String),
    });
  });

  test('without a signature, whoever makes all hashes anew makes another root', async () => {
    const { lines, root } = await certify();
    const end = changed(lines.at(-1)!, { submitted_by: 'eve' });
    const found = await check(`${lines.with(-1, end).join('\n')}\n`);
    expect(found).toMatchObject({ rows: 4 });
    expect(found).not.toMatchObject({ root });
  });

  test.for<[what: string, facts: CertificateLine, problem: string]>([
    ['other facts', { submitted_by: 'eve' }, 'its signature does not match its root'],
    ['no signature', { signature: null }, 'missing'],
    ['no public key', { public_key: null }, 'missing'],
    ['neither', { public_key: null, signature: null }, 'it is not signed'],
    ['another count', { rows: 5 }, 'its counts do not match the rows'],
    ['a key of another kind', { public_key: 'AAAA' }, 'not an Ed25519 key'],
  ])('an end with a signature has %s', async ([, facts, problem]) => {
    const { lines } = await certify(signed);
    const end = changed(lines.at(-1)!, facts);
    const found = await check(`${lines.with(-1, end).join('\n')}\n`, publicKey);
    expect(found).toEqual({ line: 6, problem: expect.stringContaining(problem) });
  });

  test('another key has signed it', async () => {
    const { text } = await certify(signed);
    const other = createPublicKey(
      createPrivateKey(generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' })),
    );
    expect(await check(text, other)).toEqual({
      line: 6,
      problem: expect.stringContaining('a key other than the one in --public-key'),
    });
    expect(await check((await certify()).text, publicKey)).toEqual({ line: 6, problem: 'it is not signed' });
  });
});
