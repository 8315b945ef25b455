import { expect, onTestFinished, test } from 'vitest';
import { openHarness } from '../../support/harness.ts';
import { annotations, makeIds } from '../../support/ids.ts';

const ids = makeIds('a', 4);
const kind = ['--resource', 'annotations', '--yes'];

async function open() {
  const harness = await openHarness(onTestFinished, { objects: annotations(ids) });
  return { harness, list: harness.list(ids) };
}

test.each([
  ['a comma behind the id', `${ids[0]},\n`],
  ['quotes', `"${ids[0]}"\n`],
  ['two ids on a line', `${ids[0]} ${ids[1]}\n`],
  ['a note', `${ids[0]} # keep\n`],
  ['no newline at the end', `${ids[0]}`],
])('a protect file with %s deletes nothing, neither by run nor by plan: exit 2', async (_, text) => {
  const { harness, list } = await open();
  const keep = harness.file('keep.txt', text);
  for (const args of [
    ['run', list, ...kind, '--protect', keep],
    ['plan', list, '--resource', 'annotations', '--protect', keep, '--output', 'plan.json'],
  ]) {
    const { code, stderr } = await harness.expunge(args);
    expect(stderr).toMatch(/keep\.txt:1: .*; nothing was sent/);
    expect(code).toBe(2);
  }
  expect(harness.sandbox.counts.requests).toBe(0);
});

test.each(['yes', 'dry-run'])(
  'a protected id in another form than in the list is refused with --%s, unless expected',
  async (flag) => {
    const { harness, list } = await open();
    const keep = harness.file('keep.txt', `${ids[0]}\n(${ids[1]})\n`);
    const args = [list, '--resource', 'annotations', `--${flag}`, '--protect', keep];
    const refused = await harness.run(args);
    expect(refused.stderr).toContain(
      `the protected id "(${ids[1]})" is written "${ids[1]}" in the list, so it protects nothing`,
    );
    expect([refused.code, harness.sandbox.counts.requests]).toEqual([4, 0]);
    expect((await harness.run([...args, '--expect-unprotected'])).code).toBe(0);
  },
);

test('a clean protect file protects its ids', async () => {
  const { harness, list } = await open();
  const { code } = await harness.run([list, ...kind, '--protect', harness.file('keep.txt', `${ids[0]}\n`)]);
  expect([code, harness.sandbox.exists('annotations', ids[0]!)]).toEqual([0, true]);
  expect(harness.sandbox.exists('annotations', ids[1]!)).toBe(false);
});

test.each([
  ['123.0', '--allow-damaged-numbers'],
  ['a\u200bb', '--allow-invisible'],
  ['view_id', '--allow-column-names'],
  ['null', '--allow-placeholders'],
])('a retry and a probe read a file that protects %s with %s', async (id, flag) => {
  const { harness, list } = await open();
  await harness.run([list, ...kind, '--detach']);
  const run = (await harness.onlyRun()).id;
  await harness.expunge(['cancel', run, '--yes']);
  const keep = ['--protect', harness.file('keep.txt', `a-0\n${id}\n`)];
  const probe = ['check', '--resource', 'annotations', '--probe-id', 'a-0', ...keep];
  for (const [line, accepted] of [
    [['retry', run, '--dry-run', ...keep], 'to delete'],
    [probe, 'protects this id'],
  ] as const) {
    expect((await harness.expunge(line)).stderr).toMatch(/keep\.txt:[12]: /);
    expect((await harness.expunge([...line, flag])).stderr).toContain(accepted);
  }
});

test('protected ids of which none is in the list are refused with --yes, unless that is expected: exit 4, then 0', async () => {
  const { harness, list } = await open();
  const args = [list, ...kind, '--protect', harness.file('keep.txt', 'other-1\nother-2\n')];
  const refused = await harness.run(args);
  expect(refused.stderr).toContain('none of the 2 protected ids is in the list; nothing was sent');
  expect(refused.stderr).toContain('--expect-unprotected');
  expect([refused.code, harness.sandbox.counts.requests]).toEqual([4, 0]);
  const dry = await harness.run([...args, '--dry-run']);
  const words =
    'warning: with --yes the run is refused: none of the 2 protected ids is in the list; --expect-unprotected';
  expect([dry.code, dry.stderr]).toEqual([0, expect.stringContaining(words)]);
  expect((await harness.run([...args, '--dry-run', '--expect-unprotected'])).stderr).not.toContain('is refused');
  expect((await harness.run([...args, '--expect-unprotected'])).code).toBe(0);
});
