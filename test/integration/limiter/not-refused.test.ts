import { expect, onTestFinished, test } from 'vitest';
import { readTargetState } from '../../../src/limiter/read-target.ts';
import { openHarness } from '../../support/harness.ts';
import { annotations, makeIds } from '../../support/ids.ts';

const ids = makeIds('t', 150);

test.each([
  [10, []],
  [150, ['--rate', '50/s']],
] as const)('a trial of %i ids that was never refused leaves no rate above what was answered', async (limit, args) => {
  const harness = await openHarness(onTestFinished, { objects: annotations(ids) });
  const list = harness.list(ids);
  const trial = ['--resource', 'annotations', '--yes', '--limit', String(limit), ...args];
  expect(await harness.run([list, ...trial])).toMatchObject({ code: 0 });
  const [target] = await readTargetState(harness.redis, harness.target.fp);
  const seconds = (harness.arrivals.at(-1)! - harness.arrivals[0]!) / 1_000;
  expect(target!.learned).toBeLessThanOrEqual(Math.max(limit, (1.2 * limit) / seconds));
  expect(target!.learned).toBeLessThan(60);
  const next = await harness.run([list, '--resource', 'annotations', '--yes', '--detach']);
  expect(next.stderr).toMatch(/Pace +not refused up to \d/);
  expect(next.stderr).not.toContain('as learned');
});
