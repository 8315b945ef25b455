import { expect, test } from 'vitest';
import { keys } from '../../../src/redis/keys.ts';
import { summaryIn } from '../../support/command.ts';
import { openHarness } from '../../support/harness.ts';

const objects = ['a-1', 'a-2', 'a-3'].map((id) => ({ resource: 'annotations' as const, id }));
const script = (_: string, id: string, nth: number) => (id === 'a-2' && nth === 1 ? 'status-503-executed' : null);
const sent = ['--resource', 'annotations', '--yes', '--json'];

test('an id is explained in every run of the target, the newest first', async ({ onTestFinished }) => {
  const harness = await openHarness(onTestFinished, { objects, faults: { script } });
  harness.file('old.csv', 'id\na-1\na-2\na-2\n');
  harness.file('new.csv', 'id\na-3\na-2\n');
  const first = summaryIn(await harness.run(['old.csv', ...sent])).run;
  const second = summaryIn(await harness.run(['new.csv', '--detach', ...sent])).run;

  const { code, stdout } = await harness.expunge(['explain', 'annotations', 'a-2']);
  expect([code, stdout.split('\n')]).toEqual([
    0,
    [
      `Run ${second} · running · new.csv:3`,
      '  pending',
      '  It waits for its first attempt.',
      `Run ${first} · completed · old.csv:3`,
      expect.stringMatching(/^ {2}gone_unconfirmed · http_404 · 2 attempts · 20\S+ \S+ UTC$/),
      expect.stringContaining('A 404 after a request that may have been executed'),
      expect.stringMatching(/^ {2}It answered: \[\S+\] \{"error":"not_found"\}$/),
      '  Also at old.csv:4 duplicate',
      '',
    ],
  ]);
  const json = await harness.expunge(['explain', 'annotations', 'a-2', '--json']);
  const lines = json.stdout.trimEnd().split('\n');
  const why = expect.stringContaining('A 404 after');
  expect(lines.map((line) => JSON.parse(line))).toMatchObject([
    {
      v: 1,
      type: 'appearance',
      run: second,
      state: 'running',
      line: 3,
      outcome: 'pending',
      open: { in_flight: false },
    },
    { run: first, line: 3, outcome: 'gone_unconfirmed', status: 404, attempts: 2, open: null, why },
    { run: first, line: 4, outcome: 'duplicate' },
  ]);

  const other = await harness.expunge(['explain', 'views', 'a-2']);
  expect([other.code, other.stdout]).toEqual([2, '']);
  expect(other.stderr).toContain(`no run has views "a-2" on ${harness.sandbox.url}`);
  expect(other.stderr).toContain('(2 runs searched)');
  const elsewhere = await harness.expunge(['explain', 'annotations', 'a-2', '--account', 'other']);
  expect([elsewhere.code, elsewhere.stderr]).toEqual([2, expect.stringContaining('(0 runs searched)')]);

  await harness.redis.del(keys.manifest(second, 0));
  const damaged = await harness.expunge(['explain', 'annotations', 'a-1']);
  expect([damaged.code, damaged.stdout]).toEqual([0, expect.stringContaining(`Run ${first} · completed · old.csv:2`)]);
  expect(damaged.stderr).toContain(
    `warning: run ${second} is not searched: run ${second}: manifest chunk 0 is missing`,
  );
});
