import { expect, onTestFinished, test } from 'vitest';
import { openHarness } from '../../support/harness.ts';
import { annotations, makeIds } from '../../support/ids.ts';

test('a run that met a limit and a wait says how fast it was and what held it back, and begins there the next time', async () => {
  const ids = makeIds('p', 120);
  const script = (_: string, id: string, nth: number) => (id === ids[90] && nth === 1 ? 'status-429-seconds' : null);
  const faults = { rate: { perSecond: 30 }, script, retryAfterSeconds: 2 };
  const harness = await openHarness(onTestFinished, { objects: annotations(ids), faults });
  const list = harness.list(ids);
  const run = (...more: string[]) => harness.run([list, '--resource', 'annotations', '--yes', '--json', ...more]);
  const { code, stdout, stderr } = await run();
  expect(code, stderr).toBe(0);
  const lines =
    /^ {2}Pace: [\d.]+\/s( of [\d.]+\/s allowed)? · waited .* s · .*\d+ × 429\n {2}Latency: p50 .*, p95 .*, p99 .*s$/m;
  expect(stderr).toMatch(lines);
  expect((await harness.expunge(['status', (await harness.onlyRun()).id])).stdout).toMatch(lines);
  const facts = stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));
  const pace = facts.find(({ type }) => type === 'pace');
  expect(pace.throttled).toBe(harness.sandbox.counts.byStatus.get(429));
  expect(pace.waited_seconds).toBeGreaterThan(1); // its chunk was returned meanwhile; that time is lost all the same
  expect(pace.waited_seconds).toBeLessThan(facts.at(-1).seconds);
  const again = await run('--limit', '10', '--expect-absent');
  expect([again.code, again.stderr]).toEqual([
    0,
    expect.stringMatching(/^ {2}Pace {6}starts at [\d.]+\/s, as learned$/m),
  ]);
});
