import { describe, expect, test } from 'vitest';
import { readRun } from '../../../src/ledger/run.ts';
import { type Harness, openHarness } from '../../support/harness.ts';
import { annotations, makeIds } from '../../support/ids.ts';
import { until } from '../../support/processes.ts';

type Facts = Record<string, unknown> & { type: string };

/** The lines of `status --json --history`. */
async function historyOf(harness: Harness, run: string): Promise<Facts[]> {
  const { stdout } = await harness.expunge(['status', run, '--json', '--history']);
  return stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));
}

const sum = (points: Facts[], field: string) => points.reduce((all, point) => all + Number(point[field]), 0);

describe('the history of a run over two workers', () => {
  /** @invariant bounded-history */
  test('adds up to the counters of the run and to the requests that were sent', async ({ onTestFinished }) => {
    const ids = makeIds('h', 1_200);
    const faults = { 'status-503': 0.02, 'status-503-executed': 0.02, 'status-429-seconds': 0.002 } as const;
    const harness = await openHarness(onTestFinished, {
      objects: annotations(ids.filter((_, i) => i % 12 > 0)),
      faults,
    });
    await harness.worker();
    await harness.worker();
    const list = harness.list(ids);
    const submitted = ['--resource', 'annotations', '--detach', '--yes', '--rate', '400/s'];
    expect((await harness.run([list, ...submitted])).code).toBe(0);
    const { id } = await harness.runIs('completed', ({ state }) => state === 'completed');
    const sent = [...harness.sandbox.counts.byStatus.values()].reduce((all, n) => all + n, 0);
    const lines = await until('the last measures are there', async () => {
      const found = await historyOf(harness, id);
      return (
        sum(
          found.filter(({ type }) => type === 'point'),
          'requests',
        ) >= sent && found
      );
    });
    const points = lines.filter(({ type }) => type === 'point');
    const { counts } = (await readRun(harness.redis, id))!;
    expect(points.length).toBeGreaterThan(2);
    expect(sum(points, 'requests')).toBe(sent);
    expect(sum(points, 'throttled')).toBe(harness.sandbox.counts.byStatus.get(429));
    for (const outcome of ['deleted', 'absent', 'gone_unconfirmed', 'failed', 'unknown'] as const)
      expect([outcome, sum(points, outcome)]).toEqual([outcome, counts[outcome]]);
    for (const [i, { from, to }] of points.entries()) if (i > 0) expect(from).toBe(points[i - 1]!.to ?? to);
    expect(points.some(({ latency_ms }) => latency_ms !== null)).toBe(true);
    const events = lines.filter(({ type }) => type === 'event').map(({ text }) => String(text));
    expect(events[0]).toMatch(/^running/);
    expect(events).toContain('completed');
    expect(lines.at(-1)!.type).toBe('summary');
  });
});

test('--history is for programs, and of one run', async ({ onTestFinished }) => {
  const harness = await openHarness(onTestFinished, {});
  const { code, stderr } = await harness.expunge(['status', 'x', '--history']);
  expect([code, stderr]).toEqual([2, expect.stringContaining('--history prints JSON about one run')]);
});
