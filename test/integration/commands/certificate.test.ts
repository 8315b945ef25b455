import { createHmac, generateKeyPairSync } from 'node:crypto';
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { readRun } from '../../../src/ledger/run.ts';
import { summaryIn } from '../../support/command.ts';
import { type AtEnd, openHarness } from '../../support/harness.ts';

const ids = ['a-1', 'a-2', 'a-3'];
const objects = ids.map((id) => ({ resource: 'annotations' as const, id }));

/** A run of three ids and a repeated one that has ended, and a pair of keys. */
async function openEnded(atEnd: AtEnd) {
  const harness = await openHarness(atEnd, { objects });
  const list = harness.list([...ids, 'a-1']);
  const { run } = summaryIn(await harness.run([list, '--resource', 'annotations', '--yes', '--json']));
  const { privateKey, publicKey } = generateKeyPairSync('ed25519');
  const secret = privateKey.export({ type: 'pkcs8', format: 'pem' }) as string;
  harness.file('key.pem', secret);
  harness.file('public.pem', publicKey.export({ type: 'spki', format: 'pem' }) as string);
  const certify = (...more: string[]) =>
    harness.expunge(['report', run, '--certificate', '--output', 'proof.ndjson', ...more]);
  // Verified with a Redis that is not there.
  const verify = (...more: string[]) =>
    harness.expunge(['certificate', 'verify', 'proof.ndjson', ...more], { env: { REDIS_URL: 'redis://127.0.0.1:1' } });
  const path = join(harness.folder, 'proof.ndjson');
  return { harness, run, list, secret, certify, verify, path, text: () => readFileSync(path, 'utf8') };
}

describe('the certificate of a run', () => {
  test('has a line for each row, one root that is told, and is whole without a Redis', async ({ onTestFinished }) => {
    const { run, certify, verify, path, text } = await openEnded(onTestFinished);
    const made = await certify('--json');
    const { root } = JSON.parse(made.stdout);
    expect(JSON.parse(made.stdout)).toMatchObject({ v: 1, type: 'certificate', run, rows: 4, signed: false });
    expect([made.code, made.stderr]).toEqual([0, expect.stringContaining(root)]);
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(text().trimEnd().split('\n')).toHaveLength(6);
    const verified = await verify('--json');
    expect([verified.code, JSON.parse(verified.stdout)]).toMatchObject([
      0,
      { ok: true, root, deleted: 3, duplicate: 1 },
    ]);
    expect(verified.stderr).toContain('It is not signed: compare the root');
  });

  test('goes to stdout, too, and is the same there', async ({ onTestFinished }) => {
    const { harness, run, certify, text } = await openEnded(onTestFinished);
    await certify();
    const { code, stdout } = await harness.expunge(['report', run, '--certificate']);
    expect([code, stdout]).toEqual([0, text()]);
  });

  test('is signed with a key that stands in no file of it, and is that of nobody else', async ({ onTestFinished }) => {
    const { harness, secret, certify, verify, text } = await openEnded(onTestFinished);
    expect((await certify('--sign-key', 'key.pem')).code).toBe(0);
    expect(text()).not.toContain(secret.split('\n')[1]);
    expect(await verify('--public-key', 'public.pem')).toMatchObject({ code: 0 });
    const other = generateKeyPairSync('ed25519').publicKey.export({ type: 'spki', format: 'pem' });
    harness.file('other.pem', other as string);
    const refused = await verify('--public-key', 'other.pem');
    expect([refused.code, refused.stderr]).toEqual([
      1,
      expect.stringContaining('proof.ndjson:6: it is signed with a key other than'),
    ]);
  });

  test('names the line that was changed', async ({ onTestFinished }) => {
    const { certify, verify, path, text } = await openEnded(onTestFinished);
    await certify();
    writeFileSync(path, text().replace('"id":"a-2"', '"id":"a-9"'));
    const found = await verify('--json');
    expect([found.code, found.stderr]).toEqual([1, 'proof.ndjson:3: it was changed\n']);
    expect(JSON.parse(found.stdout)).toMatchObject({ type: 'certificate', ok: false, line: 3 });
  });

  test('hashes ids with a salt that is made once and can show a single id', async ({ onTestFinished }) => {
    const { harness, certify, verify, text } = await openEnded(onTestFinished);
    await certify('--hash-ids', 'salt');
    const first = text();
    await certify('--hash-ids', 'salt');
    expect(text()).toBe(first);
    const path = join(harness.folder, 'salt');
    expect(statSync(path).mode & 0o777).toBe(0o600);
    const salt = readFileSync(path, 'utf8').trim();
    const id = createHmac('sha256', Buffer.from(salt, 'hex')).update('annotations/a-2').digest('hex');
    expect(first).toContain(`"id_hash":"${id}"`);
    expect(first).not.toMatch(new RegExp(`"a-[123]"|${salt}`));
    expect((await verify()).code).toBe(0);
  });

  test('does not count as the report of its run', async ({ onTestFinished }) => {
    const { harness, run, certify } = await openEnded(onTestFinished);
    const before = await readRun(harness.redis, run);
    await certify();
    expect(await readRun(harness.redis, run)).toMatchObject({
      reportIn: before!.reportIn,
      delivered: before!.delivered,
    });
  });
});

describe('a certificate is refused', () => {
  test.for<[args: string, words: string]>([
    ['--sign-key list.txt', 'expected an Ed25519 private key'],
    ['--sign-key public.pem', 'expected an Ed25519 private key'],
    ['--sign-key none.pem', 'not found'],
    ['--hash-ids list.txt', 'expected a salt of 64 hex digits'],
    ['--only failed', 'has all rows'],
    ['--format csv', 'has all rows'],
    ['--verify', 'has all rows'],
  ])('with %s', async ([args, words], { onTestFinished }) => {
    const { certify } = await openEnded(onTestFinished);
    const refused = await certify(...args.split(' '));
    expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining(words)]);
  });

  test('of a run that has not ended', async ({ onTestFinished }) => {
    const harness = await openHarness(onTestFinished, { objects });
    const list = harness.list(ids);
    const { run } = summaryIn(await harness.run([list, '--resource', 'annotations', '--detach', '--yes', '--json']));
    const refused = await harness.expunge(['report', run, '--certificate']);
    expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining('only a run that has ended')]);
  });

  test('with a key or a salt but no --certificate', async ({ onTestFinished }) => {
    const { harness, run } = await openEnded(onTestFinished);
    const refused = await harness.expunge(['report', run, '--sign-key', 'key.pem', '--output', 'x']);
    expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining('add --certificate')]);
  });
});
