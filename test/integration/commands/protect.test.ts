import { writeFileSync } from 'node:fs';
import { expect, onTestFinished, test } from 'vitest';
import { announceProtection } from '../../../src/ledger/protection.ts';
import { isFinalized } from '../../../src/ledger/run.ts';
import { keys } from '../../../src/redis/keys.ts';
import { openHarness } from '../../support/harness.ts';
import { annotations, makeIds } from '../../support/ids.ts';
import { until } from '../../support/processes.ts';

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
    ['run', list, ...kind],
    ['plan', list, '--resource', 'annotations'],
  ]) {
    const { code, stderr } = await harness.expunge(args, { env: { EXPUNGE_PROTECT: keep } });
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
    const { stdout, stderr } = await harness.expunge([...line, flag]);
    expect(stdout + stderr).toContain(accepted);
  }
});

test('protected ids of which none is in the list are refused with --yes, unless that is expected: exit 4, then 0', async () => {
  const { harness, list } = await open();
  const args = [list, ...kind, '--protect', harness.file('keep.txt', 'other-1\nother-2\n')];
  const refused = await harness.run(args);
  expect(refused.stderr).toContain('none of the 2 protected ids is in the list; nothing was sent');
  expect(refused.stderr).toContain('--expect-unprotected');
  expect([refused.code, harness.sandbox.counts.requests]).toEqual([4, 0]);
  expect(await harness.run([...args, '--dry-run'])).toMatchObject({ code: 4, stderr: refused.stderr });
  const dry = await harness.run([...args.filter((word) => word !== '--yes'), '--dry-run']);
  const words = 'warning: with --yes the run is refused: none of the 2 protected ids is in the list';
  expect([dry.code, dry.stderr]).toEqual([0, expect.stringContaining(words)]);
  expect(dry.stderr).toContain('--expect-unprotected');
  expect((await harness.run([...args, '--dry-run', '--expect-unprotected'])).stderr).not.toContain('is refused');
  expect((await harness.run([...args, '--expect-unprotected'])).code).toBe(0);
});

test('what was protected once is not taken for protected now: a retry that is left to workers is read with the ids of now', async () => {
  const { harness, list } = await open();
  const keep = harness.file('keep.txt', `${ids[0]}\n`);
  const worker = await harness.worker([], { EXPUNGE_PROTECT: keep });
  await until('it has told its ids', () => harness.redis.exists(keys.protection(harness.target.fp)));
  await harness.run([list, ...kind, '--protect', keep, '--detach', '--window', closedWindow()]);
  const { id } = await harness.onlyRun();
  await harness.expunge(['cancel', id, '--yes']);
  writeFileSync(keep, `${ids[0]}\n${ids[2]}\n`);
  const told = await harness.redis.strlen(keys.protection(harness.target.fp));
  await until(
    'it tells them again',
    async () => (await harness.redis.strlen(keys.protection(harness.target.fp))) > told,
  );
  const retry = (...more: string[]) =>
    harness.expunge(['retry', id, '--detach', '--yes', '--window', 'always', '--expect-unprotected', ...more]);
  const refused = await retry();
  expect([refused.code, refused.stderr]).toEqual([4, expect.stringContaining('the list protects no ids')]);
  const fewer = await retry('--protect', harness.file('fewer.txt', `${ids[1]}\n`));
  expect([fewer.code, fewer.stderr]).toEqual([4, expect.stringContaining(`${ids[2]} would be deleted`)]);
  expect(await harness.runs()).toHaveLength(1);
  expect((await retry('--protect', keep)).code).toBe(0);
  await until('the retry has ended', async () => (await harness.runs()).every(({ state }) => isFinalized(state)));
  expect([0, 1, 2, 3].map((i) => harness.sandbox.exists('annotations', ids[i]!))).toEqual([true, false, true, false]);
  worker.signal('SIGTERM');
});

test('resume --detach leaves to workers only what none of them protects by now', async () => {
  const { harness, list } = await open();
  const keep = harness.file('keep.txt', `${ids[0]}\n`);
  const start = harness.start(['run', list, ...kind, '--protect', keep, '--window', closedWindow()]);
  await until('the run is there', async () => (await harness.runs()).some(({ state }) => state === 'running'));
  start.signal('SIGINT');
  await start.ended;
  const { id } = await harness.onlyRun();
  const { redis, target } = harness;
  const announce = (...kept: string[]) =>
    announceProtection(
      redis,
      target.fp,
      (async function* () {
        yield kept;
      })(),
    );
  await announce(ids[0]!, ids[3]!);
  const resume = () => harness.expunge(['resume', id, '--detach']);
  const refused = await resume();
  expect([refused.code, refused.stderr]).toEqual([4, expect.stringContaining(`${ids[3]} would be deleted`)]);
  expect((await harness.onlyRun()).detached).toBe(false);
  await announce(ids[0]!, 'elsewhere');
  expect((await resume()).code).toBe(0);
  expect((await harness.onlyRun()).detached).toBe(true);
});

/** A time of day that is not now. */
function closedWindow(): string {
  const hour = (new Date().getUTCHours() + 12) % 24;
  return `${String(hour).padStart(2, '0')}:00-${String(hour).padStart(2, '0')}:30`;
}
