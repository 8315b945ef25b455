import { gzipSync } from 'node:zlib';
import { describe, expect, onTestFinished, test } from 'vitest';
import { openHarness } from '../../support/harness.ts';

const more = ['--resource', 'annotations', '--dry-run', '--json'];
const cut = 'the last line has no newline: if the file was cut off, this is not the whole id';

async function dryRun(files: Record<string, string | Buffer>, args: string[] = []) {
  const { file, run } = await openHarness(onTestFinished);
  for (const [name, content] of Object.entries(files)) file(name, content);
  const { code, stdout, stderr } = await run([...Object.keys(files), ...more, ...args]);
  const isRejected = stderr.includes('1 rejected');
  expect([code, stderr]).toEqual([isRejected ? 3 : 0, expect.stringContaining('Dry run')]);
  const { last_id: lastId, ends_without_newline: endsWithoutNewline } = JSON.parse(stdout);
  return { lastId, endsWithoutNewline, stderr };
}

describe('the plan of a single file', () => {
  test.each<[string, string | Buffer]>([
    ['ids.txt', 'a-1\na-2\na-3\na-4\na-5'],
    ['ids.csv', 'id\na-1\na-5'],
    ['ids.ndjson', '{"id":"a-1"}\n{"id":"a-5"}'],
    ['ids.txt.gz', gzipSync('a-1\na-5')],
  ])('says of %s, whose last line has no newline, that the last id may be cut off', async (name, content) => {
    const { stderr, ...shown } = await dryRun({ [name]: content });
    expect(shown).toEqual({ lastId: 'a-5', endsWithoutNewline: true });
    expect(stderr).toContain(`  Last id   a-5; ${cut}\n`);
  });

  test.each([
    ['ids.txt', 'a-1\na-5\n', 'a-5', 'its last line is whole'],
    ['ids.json', '["a-1","a-5"]', 'a-5', 'the bracket ends an array'],
    ['ids.txt', 'a-1\na-5\na-1', 'a-5', 'the last line is a duplicate'],
    ['ids.txt', 'a-1\na-5\nnull', 'a-5', 'the last line is rejected'],
  ])('shows the last id of %s: %j, %s, and no more: %s', async (name, content, lastId) => {
    const { stderr, ...shown } = await dryRun({ [name]: content });
    expect(shown).toEqual({ lastId, endsWithoutNewline: false });
    expect(stderr).toContain('  Last id   a-5\n');
    expect(stderr).not.toContain('no newline');
  });

  test('does not warn where --limit leaves the last line out', async () => {
    expect(await dryRun({ 'ids.txt': 'a-1\na-5' }, ['--limit', '1'])).toMatchObject({
      lastId: 'a-1',
      endsWithoutNewline: false,
    });
  });

  test('is the only one that shows a last id', async () => {
    const shown = await dryRun({ 'a.txt': 'a-1\n', 'b.txt': 'a-5\n' });
    expect(shown).toMatchObject({ lastId: null, endsWithoutNewline: false });
    expect(shown.stderr).not.toContain('Last id');
  });

  test('shows invisible characters of ids as their codes', async () => {
    const { stderr } = await dryRun({ 'ids.txt': 'a\u200bb\nc\u2060d\n' }, ['--allow-invisible']);
    expect(stderr).toContain('  Ids       a\\u200bb');
    expect(stderr).toContain('  Last id   c\\u2060d\n');
    expect(stderr).not.toMatch(/[\u200b\u2060]/);
  });
});
