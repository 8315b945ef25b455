import { describe, expect, test } from 'vitest';
import { followInPieces, nothingReceived, receive, seeded } from '../support/follow.ts';
import { type AtEnd, openHarness } from '../support/harness.ts';
import { annotations, makeIds } from '../support/ids.ts';
import { type Running, until } from '../support/processes.ts';
import { openSentinelSet } from '../support/sentinel.ts';

const ids = makeIds('f', 6_000);
const settings = { EXPUNGE_RETRY_DELAYS: '50ms,50ms,50ms,50ms,50ms' };
const kill = (running: Running) => running.signal('SIGKILL');

/** A run that two workers delete, and what follows it. */
async function openFollowed(atEnd: AtEnd, url?: string) {
  const faults = { 'status-503': 0.03, 'status-409': 0.02, 'status-503-executed': 0.02 };
  const objects = annotations(ids);
  const harness = await openHarness(atEnd, { objects, latencyMs: 10, faults }, url === undefined ? undefined : { url });
  const work = () => harness.spawnWorker(['--rate', '600/s'], settings);
  const workers = [await work(), await work()];
  const how = ['--resource', 'annotations', '--on-status', '409=failed', '--detach', '--yes'];
  expect(await harness.spawn(['run', harness.list(ids), ...how], settings).ended).toMatchObject({ code: 0 });
  const { id } = await harness.onlyRun();
  const follow = (args: string[]) => harness.spawn(['report', id, '--follow', ...args], settings);
  return { harness, id, workers, work, follow };
}

describe.concurrent('report --follow has each id once, and says at last what the report says', () => {
  /** @invariant whole-follow */
  test('where followers are killed at random, and workers, too', async ({ onTestFinished }) => {
    const { harness, id, workers, work, follow } = await openFollowed(onTestFinished);
    const followed = followInPieces(follow, kill, seeded(7));
    for (const share of [1_500, 3_500]) {
      await until(`${share} requests were sent`, () => harness.arrivals.length > share);
      kill(workers.shift()!);
      workers.push(await work());
    }
    const { received, cuts } = await followed;
    expect(cuts).toBeGreaterThanOrEqual(5);
    const report = harness.spawn(['report', id, '--format', 'ndjson']);
    await report.ended;
    const outcomes = new Map(received.rows.map((row) => [row.id, row.outcome]));
    for (const row of received.corrections) outcomes.set(row.id, row.outcome);
    expect(received.rows).toHaveLength(ids.length);
    expect(outcomes).toEqual(new Map(receive(nothingReceived, report.stdout).rows.map((row) => [row.id, row.outcome])));
  });

  test('where another Redis takes over', async ({ onTestFinished }) => {
    const set = await openSentinelSet(onTestFinished);
    const { harness, follow } = await openFollowed(onTestFinished, set.url);
    const followed = follow([]);
    const before = await set.primary();
    await until('rows are followed', () => followed.stdout.includes('"outcome"'));
    before.signal('SIGKILL');
    await set.primaryIsNot(before);
    await harness.runIs('completed', ({ state }) => state === 'completed', 120_000);
    expect(await followed.ended).toMatchObject({ code: 0 });
    const { rows, summary } = receive(nothingReceived, followed.stdout);
    expect(rows.map((row) => row.id).sort()).toEqual(ids.toSorted());
    expect(summary).toMatchObject({ state: 'completed', pending: 0 });
    expect(followed.stderr).toContain('asking again');
  });
});
