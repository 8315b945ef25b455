import type { ServerResponse } from 'node:http';
import { describe, expect, test } from 'vitest';
import { openApi } from '../../support/api.ts';
import { followInPieces, nothingReceived, type Received, receive, seeded } from '../../support/follow.ts';
import { type AtEnd, type HarnessOptions, openHarness } from '../../support/harness.ts';
import { annotations, makeIds } from '../../support/ids.ts';
import type { Running } from '../../support/processes.ts';
import { openRowsWay } from '../../support/rows-way.ts';

const ids = makeIds('f', 4_000);
const list = [...ids, ...ids.slice(0, 40), 'a/b', 'a/c'];
const settings = { EXPUNGE_RETRY_DELAYS: '50ms,50ms,50ms,50ms,50ms' };

/** Where a follower reads: from Redis, or from a server behind a way that breaks every second answer off. */
type Source = 'Redis' | 'a server';

/** A detached run of this list, and a worker if there is a rate for it. */
async function openRun(atEnd: AtEnd, rate: string | null, source: Source = 'Redis') {
  const faults = { 'status-503': 0.03, 'status-409': 0.02, 'status-503-executed': 0.02 };
  const options = { objects: annotations(ids), faults };
  const { harness, env } =
    source === 'Redis' ? { harness: await openHarness(atEnd, options), env: {} } : await openServer(atEnd, options);
  if (rate !== null) await harness.worker(['--rate', rate], settings);
  const how = ['--resource', 'annotations', '--on-status', '409=failed', '--detach', '--yes'];
  expect((await harness.run([harness.list(list), ...how])).code).toBe(0);
  const { id } = await harness.onlyRun();
  const follow = (args: string[] = []) => harness.start(['report', id, '--follow', ...args], env);
  const followed = async (args: string[] = []) => {
    const running = follow(args);
    const { code } = await running.ended;
    return { code, ...receive(nothingReceived, running.stdout) };
  };
  return { harness, id, follow, followed };
}

async function openServer(atEnd: AtEnd, options: HarnessOptions) {
  const { harness, url, token } = await openApi(atEnd, options);
  const env = { EXPUNGE_SERVER_TOKEN: await token('read'), REDIS_URL: 'redis://127.0.0.1:1' };
  return { harness, env: { ...env, EXPUNGE_SERVER: await openBreakingWay(url, atEnd) } };
}

/** Every second answer with rows ends in the middle, and its connection breaks. */
function openBreakingWay(url: string, atEnd: AtEnd): Promise<string> {
  let answers = 0;
  const end = (answer: ServerResponse, text: string) => {
    const isBroken = text.length > 0 && ++answers % 2 === 1;
    if (!isBroken) return answer.end(text);
    return answer.write(text.slice(0, text.length / 2), () => answer.destroy());
  };
  return openRowsWay(url, end, atEnd);
}

const byLine = (a: { line: number }, b: { line: number }) => a.line - b.line;
const untimed = (rows: Received['rows']) => rows.map((row) => ({ ...row, settled_at: '' })).sort(byLine); // ten ids share a time
const interrupt = (running: Running) => running.signal('SIGINT');

describe('report --follow', () => {
  /** @invariant whole-follow: A followed report has each row once, wherever it is interrupted. */
  test.for([
    [1, 'Redis'],
    [2, 'Redis'],
    [3, 'Redis'],
    [4, 'a server'],
  ] as const)(
    'that is cut anywhere and gone on with has each row of the report once: seed %i, from %s',
    async ([seed, source], { onTestFinished }) => {
      const { harness, id, follow, followed } = await openRun(onTestFinished, '1500/s', source);
      const { received, cuts } = await followInPieces(follow, interrupt, seeded(seed));
      expect(cuts).toBeGreaterThanOrEqual(5);
      const { stdout } = await harness.expunge(['report', id, '--format', 'ndjson']);
      const report = receive(nothingReceived, stdout);
      expect(untimed(received.rows)).toEqual(untimed(report.rows));
      expect(received.corrections).toEqual([]);
      expect(received.summary).toMatchObject({ run: id, state: 'completed', rows: list.length, pending: 0 });

      const all = await followed();
      expect([all.code, untimed(all.rows)]).toEqual([0, untimed(report.rows)]);
      expect(await followed(['--from', all.from!])).toMatchObject({ rows: [], summary: { run: id } });
      // Without the number of rows behind it, the part behind the last cursor comes twice.
      const again = await followed(['--from', all.from!.split('+')[0]!]);
      expect(again.rows.length).toBe(Number(all.from!.split('+')[1]));
    },
  );

  test('waits while nothing happens, says how to go on, and ends with a run that is cancelled', async ({
    onTestFinished,
  }) => {
    const { harness, id, follow } = await openRun(onTestFinished, null);
    const first = follow();
    await expect.poll(() => first.stdout.split('\n').length).toBeGreaterThan(42); // rows settled while reading
    interrupt(first);
    expect((await first.ended).code).toBe(130);
    const before = receive(nothingReceived, first.stdout);
    expect(before.rows.map(({ outcome }) => outcome)).toEqual([
      ...new Array(40).fill('duplicate'),
      ...new Array(2).fill('rejected'),
    ]);
    expect(first.stderr).toContain(`Continue: expunge report ${id} --follow --from ${before.from}\n`);
    const second = follow(['--from', before.from!]);
    expect((await harness.expunge(['cancel', id, '--yes'])).code).toBe(0);
    expect((await second.ended).code).toBe(0);
    const after = receive(before, second.stdout);
    expect(after.rows).toHaveLength(list.length);
    expect(new Set(after.rows.map(({ line }) => line)).size).toBe(list.length);
    expect(after.summary).toMatchObject({ state: 'cancelled', not_attempted: ids.length, pending: 0 });
  });

  test('refuses what a report that grows cannot be, and a cursor that is none of the run', async ({
    onTestFinished,
  }) => {
    const { harness, id } = await openRun(onTestFinished, null);
    for (const [args, words] of [
      [['--follow', '--only', 'failed'], '--follow cannot be combined with --only:'],
      [['--follow', '--format', 'csv'], '--follow cannot be combined with --format csv:'],
      [['--follow', '--output', 'x.ndjson'], '--follow cannot be combined with --output:'],
      [['--follow', '--from', 'AQAAAAAA'], `--from: it does not belong to run ${id}`],
      [['--from', 'AQAAAAAA'], '--from needs --follow: it continues a report that was followed'],
    ] as const) {
      const { code, stderr } = await harness.expunge(['report', id, ...args]);
      expect([code, stderr]).toEqual([2, expect.stringContaining(words)]);
    }
  });
});
