import { expect, test } from 'vitest';
import { type Harness, openHarness } from '../support/harness.ts';

const annotations = ['--resource', 'annotations'];

/** What a dry run of these ids says, in seconds, and how long the run then takes. */
async function foretell(harness: Harness, from: number, to: number, more: readonly string[] = []) {
  const ids = Array.from({ length: to - from + 1 }, (_, n) => `a-${String(from + n).padStart(6, '0')}`);
  const list = [harness.list(ids), ...annotations, ...more, '--json'];
  const dryRun = await harness.run([...list, '--dry-run']);
  const { seconds, seconds_from: least } = JSON.parse(dryRun.stdout).expected;
  const { run, seconds: took } = JSON.parse(
    (await harness.run([...list, '--yes'])).stdout.trimEnd().split('\n').at(-1)!,
  );
  const said = (seconds ?? least) as number;
  console.log(`${to - from + 1} ids of run ${run}: forecast ${said} s, took ${took} s`);
  return { said, took: took as number };
}

test('a forecast is within 5 % for a rate that is set', async ({ onTestFinished }) => {
  const harness = await openHarness(onTestFinished, { objects: { annotations: 6_000, views: 0 } });
  const { said, took } = await foretell(harness, 1, 6_000, ['--rate', '100/s']);
  expect(Math.abs(took - said) / said).toBeLessThan(0.05);
});

test('a forecast is within 15 % for a limit that was learned', async ({ onTestFinished }) => {
  const harness = await openHarness(onTestFinished, {
    objects: { annotations: 12_000, views: 0 },
    faults: { rate: { perSecond: 100 } },
  });
  await foretell(harness, 1, 4_000);
  const { said, took } = await foretell(harness, 4_001, 12_000);
  expect(Math.abs(took - said) / said).toBeLessThan(0.15);
});
