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

test('protected ids of which none is in the list are refused with --yes, unless that is expected: exit 4, then 0', async () => {
  const { harness, list } = await open();
  const args = [list, ...kind, '--protect', harness.file('keep.txt', 'other-1\nother-2\n')];
  const refused = await harness.run(args);
  expect(refused.stderr).toContain('none of the 2 protected ids is in the list; nothing was sent');
  expect(refused.stderr).toContain('--expect-unprotected');
  expect([refused.code, harness.sandbox.counts.requests]).toEqual([4, 0]);
  expect((await harness.run([...args, '--expect-unprotected'])).code).toBe(0);
});
