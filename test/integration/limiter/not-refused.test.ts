import { expect, onTestFinished, test } from 'vitest';
import { readTargetState } from '../../../src/limiter/read-target.ts';
import { openHarness } from '../../support/harness.ts';
import { annotations, makeIds } from '../../support/ids.ts';

const ids = makeIds('t', 150);

test('a trial that was never refused leaves no rate above what was answered', async () => {
  const harness = await openHarness(onTestFinished, { objects: annotations(ids) });
  const list = [harness.list(ids), '--resource', 'annotations', '--yes'];
  expect(await harness.run([...list, '--limit', '100', '--rate', '50/s'])).toMatchObject({ code: 0 });
  const target = await readTargetState(harness.redis, harness.target.fp);
  expect(target!.learned).toBeLessThan(60); // a seek believes in far more than --rate lets it send
  const next = await harness.run([...list, '--detach']);
  expect(next.stderr).toMatch(/Pace +not refused up to \d/);
  expect(next.stderr).not.toContain('as learned');
});
