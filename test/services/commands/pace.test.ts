import { describe, expect, test } from 'vitest';
import { type Harness, openHarness } from '../../support/harness.ts';
import { annotations, makeIds } from '../../support/ids.ts';
import { until } from '../../support/processes.ts';

const ids = makeIds('p', 300);
const objects = annotations(ids);

function start(harness: Harness, args: string[] = []) {
  return harness.start(['run', harness.list(ids), '--resource', 'annotations', '--yes', '--json', ...args]);
}

async function status(harness: Harness, run: string): Promise<string> {
  const asked = harness.start(['status', run]);
  await asked.ended;
  return asked.stdout;
}

/** What `status` says while the run is on its way, until it says this. */
async function statusSays(harness: Harness, words: RegExp): Promise<string> {
  const { id } = await harness.onlyRun();
  return until(`status says ${words}`, async () => words.exec(await status(harness, id))?.[0]);
}

function jsonOf(stdout: string, type: string) {
  return stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line))
    .findLast((facts) => facts.type === type);
}

describe.concurrent('a run against a server with a hidden limit', () => {
  test('says how near it is to the limit, at its end how fast it was, and begins there the next time', async ({
    onTestFinished,
  }) => {
    const harness = await openHarness(onTestFinished, { objects, faults: { rate: { perSecond: 40 } } });
    const running = start(harness);
    await statusSays(harness, /^(Increasing: \d+\/s, last limit at \d+\/s|Deleting.*; the limit is about \d+\/s)\.$/m);
    expect(await running.ended).toMatchObject({ code: 0 });
    const line =
      /^ {2}Pace: \d+\/s( of \d+\/s allowed)? · .*\d+ × 429\n {2}Latency: p50 .* ms, p95 .* ms, p99 .* m?s$/m;
    expect(running.stderr).toMatch(line);
    expect(await status(harness, (await harness.onlyRun()).id)).toMatch(line);

    const [pace, summary] = [jsonOf(running.stdout, 'pace'), jsonOf(running.stdout, 'summary')];
    expect(Object.keys(pace)).toEqual([
      ...['v', 'type', 'run', 'rate_achieved', 'rate_allowed', 'waited_seconds', 'throttled', 'token_refreshes'],
      'latency_ms',
    ]);
    expect(pace.throttled).toBe(harness.sandbox.counts.byStatus.get(429));
    expect(pace.rate_achieved).toBeCloseTo(ids.length / summary.seconds, 0);
    expect(running.stdout.trimEnd().split('\n').at(-1)).toContain('"type":"summary"');

    const again = start(harness, ['--limit', '10', '--expect-absent']);
    expect(await again.ended).toMatchObject({ code: 0 });
    expect(again.stderr).toMatch(/^ {2}Pace {6}starts at \d+\/s, as learned$/m);
  });

  test('says for how long and why it waits', async ({ onTestFinished }) => {
    const script = (_: string, id: string, nth: number) => (id === ids[150] && nth === 1 ? 'status-429-seconds' : null);
    const harness = await openHarness(onTestFinished, { objects, faults: { script, retryAfterSeconds: 3 } });
    const running = start(harness, ['--rate', '600/s']);
    await statusSays(
      harness,
      /^Waiting [\d.]+ s: the server answered 429 and sent Retry-After \d+\. To send before the server wants it: /m,
    );
    expect(await running.ended).toMatchObject({ code: 0 });
    expect(running.stderr).toMatch(/^ {2}Pace: .* · waited [\d.]+ s · 1 × 429$/m);
    // Its chunks were returned meanwhile; that time is lost all the same.
    const { waited_seconds } = jsonOf(running.stdout, 'pace');
    expect(waited_seconds).toBeGreaterThan(2);
    expect(waited_seconds).toBeLessThan(jsonOf(running.stdout, 'summary').seconds);
  });
});

describe('a run of ids in trouble', () => {
  test('says when they are tried again', async ({ onTestFinished }) => {
    const harness = await openHarness(onTestFinished, { objects, faults: { script: () => 'status-409' } });
    const running = start(harness, ['--limit', '3']);
    await statusSays(harness, /^Waiting [\d.]+ s: the ids left failed before and are retried then\.$/m);
    running.signal('SIGTERM');
    expect(await running.ended).toMatchObject({ code: 143 });
  });
});

describe('a run with a rate of its own', () => {
  test('says that it goes at that rate, and that a quota of it is spent', async ({ onTestFinished }) => {
    const harness = await openHarness(onTestFinished, { objects });
    const running = start(harness, ['--rate', '20/s,100/h']);
    await statusSays(harness, /^Deleting at 20\/s, as --rate allows\.$/m);
    await statusSays(
      harness,
      /^Waiting until .*\d\d:\d\d \(\d+ min( \d+ s)?\): --rate allows no more \(100 an hour\)\. /m,
    );
    running.signal('SIGTERM');
    expect(await running.ended).toMatchObject({ code: 143 });
  });
});

describe('the pace of a whole run, though what it may do changed', () => {
  const many = makeIds('w', 900);
  const paceIn = (stderr: string) => /^ {2}Pace: (\d+)\/s(?: of (\d+)\/s allowed)?/m.exec(stderr)!.slice(1).map(Number);
  const args = (list: string) => ['run', list, '--resource', 'annotations', '--yes', '--rate', '100/s'];

  test('is none above what was allowed, after a kill -9 and a resume', async ({ expect, onTestFinished }) => {
    const harness = await openHarness(onTestFinished, { objects: annotations(many) });
    const list = harness.list(many);
    const killed = harness.spawn(args(list));
    await harness.runIs('under way', ({ counts }) => counts.deleted > 300, 60_000);
    killed.signal('SIGKILL');
    await killed.ended;
    const resumed = harness.start(args(list));
    expect(await resumed.ended).toMatchObject({ code: 0 });
    const [achieved, allowed] = paceIn(resumed.stderr);
    expect(allowed).toBeCloseTo(100, -1);
    expect(achieved).toBeLessThanOrEqual(allowed!);
  });

  test.for([
    ['lowered', '30/s'],
    ['lifted', 'none'],
  ] as const)('is none above what was allowed, though its rate is %s half-way', async ([, rate], context) => {
    const harness = await openHarness(context.onTestFinished, { objects: annotations(many) });
    const ids = rate === 'none' ? many : many.slice(0, 300);
    const running = harness.start(args(harness.list(ids)));
    const { id } = await harness.runIs('half-way', ({ counts }) => counts.deleted > ids.length / 2, 60_000);
    expect(await harness.expunge(['rate', id, rate])).toMatchObject({ code: 0 });
    expect(await running.ended).toMatchObject({ code: 0 });
    const [achieved, allowed] = paceIn(running.stderr);
    if (rate === 'none') expect(allowed === undefined || Number.isNaN(allowed) || achieved! <= allowed).toBe(true);
    else expect(achieved).toBeLessThanOrEqual(allowed!);
  });
});
