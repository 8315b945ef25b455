import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, onTestFinished, test } from 'vitest';
import { readAudit } from '../../../src/ledger/audit.ts';
import { readRun } from '../../../src/ledger/run.ts';
import { stopTarget } from '../../../src/ledger/steer-target.ts';
import { parseRate, storedRate } from '../../../src/model/rate.ts';
import { targetOf } from '../../../src/model/target.ts';
import { keys } from '../../../src/redis/keys.ts';
import { summaryIn } from '../../support/command.ts';
import { forgetful, openDeleteServer } from '../../support/delete-server.ts';
import { type AtEnd, openHarness } from '../../support/harness.ts';
import { until } from '../../support/processes.ts';
import { forgetTarget, lastingKeys } from '../../support/redis-keys.ts';

/** A run of views v-1 … v-n that ended, all deleted as far as the server said, and what it is asked afterwards. */
async function openDeleted(atEnd: AtEnd, ids: number, statusOf: Parameters<typeof openDeleteServer>[1]) {
  const harness = await openHarness(atEnd);
  const server = await openDeleteServer(atEnd, statusOf);
  atEnd(() => forgetTarget(server.url));
  const env = { EXPUNGE_BASE_URL: server.url };
  const names = Array.from({ length: ids }, (_, n) => `v-${n + 1}`);
  const { run, deleted } = summaryIn(
    await harness.run([harness.list(names), '--resource', 'views', '--yes', '--json'], { env }),
  );
  const before = server.seen.length;
  const { fp } = targetOf(server.url, harness.target.account);
  return {
    harness,
    server,
    env,
    run,
    deleted,
    fp,
    /** The paths of the requests since the run ended. */
    again: () => server.seen.slice(before),
    verify: (args: string[], typed?: readonly (readonly [string, string])[]) =>
      harness.expunge(['verify', run, ...args], { env, ...(typed && { typed }) }),
    expunge: (...args: string[]) => harness.expunge(args, { env }),
  };
}

const isIgnored = (path: string) => Number(path.split('-')[1]) % 100 === 7; // 1 % of the deletes
const honest = forgetful(() => false);
const slowMs = 50; // 200 requests, 4 at once, take 25 times as long as a stop

describe('verify', () => {
  test('finds the deletes that the API confirmed and did not carry out, and says so with the run', async ({
    onTestFinished,
  }) => {
    const { harness, run, deleted, again, verify, expunge } = await openDeleted(
      onTestFinished,
      600,
      forgetful(isIgnored),
    );
    expect(deleted).toBe(600);
    const { code, stdout, stderr } = await verify(['--sample', '600', '--yes', '--reason', 'OPS-7']);
    expect([code, new Set(again()).size, again().length]).toEqual([3, 600, 600]);
    const named = stdout.split('\n').filter((line) => line.startsWith('was there'));
    expect(named).toHaveLength(6);
    expect(named).toContainEqual(
      expect.stringMatching(/^was there {2}views v-107 \(.*list\.txt:107\): answered 204 again$/),
    );
    expect(stderr).toContain('About 1 % of the deleted ids may still be there');
    const words = '600 were sent again';
    expect(stdout).toContain(`Run ${run}: of 600 deleted ids, ${words}`);
    expect(stdout).toContain('594 were gone, 6 were answered with a success again, so the first one deleted nothing');
    const record = (await readRun(harness.redis, run))!;
    expect(record.verified).toMatchObject({ sample: 600, of: 600, gone: 594, there: 6, unclear: 0 });
    expect(record.counts.deleted).toBe(600); // the ledger of an ended run never changes
    expect(await readAudit(harness.redis, record)).toContainEqual(
      expect.objectContaining({ action: 'verify', by: 'operator', reason: 'OPS-7', sample: 600 }),
    );
    expect(await lastingKeys(run)).toEqual([]);
    expect((await expunge('status', run)).stdout).toContain(words);
    expect((await expunge('report', run)).stderr).toContain(words);
    expect((await expunge('report', run, '--format', 'html')).stdout).toContain(words);
    expect((await expunge('explain', 'views', 'v-107')).stdout).toContain(`Of 600 deleted ids, ${words}`);
    expect(summaryIn(await expunge('status', run, '--json')).verified).toMatchObject({ gone: 594, there: 6 });
  });

  test('of an API that deletes what it says ends well, and sends a sample only, no id twice', async ({
    onTestFinished,
  }) => {
    const { again, verify } = await openDeleted(onTestFinished, 200, honest);
    const { code, stdout } = await verify(['--sample', '50', '--confirm', '50', '--json']);
    expect([code, again().length, new Set(again()).size]).toEqual([0, 50, 50]);
    expect(JSON.parse(stdout)).toMatchObject({ type: 'verified', sample: 50, gone: 50, there: 0, unclear: 0, exit: 0 });
    await verify(['--sample', '50', '--yes']);
    expect(new Set(again()).size).toBeGreaterThan(50); // another sample
  });

  test('sends nothing that was not agreed to', async ({ onTestFinished }) => {
    const { again, verify } = await openDeleted(onTestFinished, 3, honest);
    const refused = await verify(
      ['--sample', '2'],
      [
        ['Type 2 to send', 'yes\r'],
        ['2 tries are left', 'yes\r'],
        ['1 try is left', 'yes\r'],
      ],
    );
    expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining('not confirmed; nothing was sent')]);
    expect((await verify(['--sample', '2'])).stderr).toContain('there is no terminal to confirm on');
    expect((await verify(['--sample', '2', '--confirm', '3'])).code).toBe(2);
    expect((await verify([])).stderr).toContain('add --sample');
    expect((await verify(['--sample', '2', '--server', 'http://127.0.0.1:9'])).stderr).toContain(
      'verify cannot be done over a server',
    );
    expect(again()).toEqual([]);
    expect((await verify(['--sample', '2'], [['Type 2 to send', '2\r']])).code).toBe(0);
    expect(again()).toHaveLength(2);
  });

  test('sends nothing while the target is stopped or a stop file is there, and stops when one comes', async ({
    onTestFinished,
  }) => {
    let isSlow = false;
    const stopping: { begin: () => Promise<unknown> } = { begin: async () => {} };
    const { harness, fp, again, verify } = await openDeleted(onTestFinished, 200, async (path, nth) => {
      if (isSlow) await stopping.begin();
      if (isSlow) await sleep(slowMs);
      return honest(path, nth);
    });
    const author = { who: 'ana', reason: 'no', at: Date.now() };
    const file = harness.file('stop', 'wait');
    expect((await verify(['--sample', '2', '--yes', '--stop-file', file])).code).toBe(4);
    expect(again()).toEqual([]);
    isSlow = true;
    stopping.begin = () => stopTarget(harness.redis, fp, author);
    const { code, stderr } = await verify(['--sample', '200', '--yes']);
    expect([code, stderr]).toEqual([4, expect.stringContaining('Stopped early: Stopped for all runs of this target')]);
    expect(again().length).toBeLessThan(200);
    const sent = again().length;
    expect((await verify(['--sample', '2', '--yes'])).code).toBe(4);
    expect(again()).toHaveLength(sent);
    const { verified } = (await readRun(harness.redis, (await harness.runs())[0]!.id))!;
    expect(verified!.gone + verified!.there + verified!.unclear).toBe(sent);
  });

  test.each([
    ['1/h', 1],
    ['1000/s,2/day', 1], // its quota is smaller than the sample
    ['1000/s,3/day', 3], // negative control: its quota is not
  ])('keeps the rate of the run: at %s it sends %i of 3 ids at once', async (rate, sent) => {
    const { harness, env, run, again } = await openDeleted(onTestFinished, 3, honest);
    await harness.redis.hset(keys.run(run), 'rate', storedRate(parseRate(rate)));
    const running = harness.start(['verify', run, '--sample', '3', '--yes'], env);
    await until('as many are sent', () => again().length === sent);
    running.signal('SIGINT');
    await running.ended;
    expect(again()).toHaveLength(sent);
  });

  test('ends with a signal, and keeps what it found until then', async ({ onTestFinished }) => {
    const { harness, env, run, again } = await openDeleted(onTestFinished, 200, async (path, nth) => {
      if (nth > 1) await sleep(slowMs);
      return honest(path, nth);
    });
    const running = harness.start(['verify', run, '--sample', '200', '--yes'], env);
    await until('some were sent', () => again().length > 3);
    running.signal('SIGINT');
    expect((await running.ended).code).toBe(130);
    expect(again().length).toBeLessThan(200);
    expect((await readRun(harness.redis, run))!.verified!.gone).toBe(again().length);
  });

  test('takes no answer but 404 and 410 for gone, and asks no id again that may have been deleted by that', async ({
    onTestFinished,
  }) => {
    const statuses = [404, 410, 500, 403, 200];
    const { again, verify } = await openDeleted(onTestFinished, statuses.length, (path, nth) =>
      nth === 1 ? 204 : statuses[Number(path.split('-')[1]) - 1]!,
    );
    const { code, stdout } = await verify(['--sample', '10', '--yes', '--json']);
    expect([code, again().length]).toEqual([3, statuses.length]);
    expect(JSON.parse(stdout.trimEnd().split('\n').at(-1)!)).toMatchObject({ gone: 2, there: 0, unclear: 3 });
  });

  test('waits for a throttle, and sends what was refused once more', async ({ onTestFinished }) => {
    const { again, verify } = await openDeleted(onTestFinished, 3, (_, nth) => [204, 429, 404][nth - 1]!);
    expect((await verify(['--sample', '3', '--yes'])).code).toBe(0);
    expect(again()).toHaveLength(6);
  });

  test('ends where the token is refused', async ({ onTestFinished }) => {
    const { verify } = await openDeleted(onTestFinished, 3, (_, nth) => (nth === 1 ? 204 : 401));
    expect((await verify(['--sample', '3', '--yes'])).code).toBe(5);
  });

  test('is refused where the API is known to answer 204 for anything, or nothing was deleted', async ({
    onTestFinished,
  }) => {
    const { server, again, verify, expunge } = await openDeleted(onTestFinished, 3, () => 204);
    const all = await verify(['--sample', '3', '--yes']);
    expect([all.code, all.stderr]).toEqual([3, expect.stringContaining('expunge check --semantics')]);
    await expunge('check', '--semantics', '--resource', 'views', '--yes');
    const { length } = server.seen;
    const { code, stderr } = await verify(['--sample', '3', '--yes']);
    expect([code, stderr]).toEqual([2, expect.stringContaining('proves nothing; nothing was sent')]);
    expect(server.seen).toHaveLength(length);
    expect(again()).toHaveLength(4);
    const none = await openDeleted(onTestFinished, 3, () => 404);
    expect((await none.verify(['--sample', '3', '--yes'])).stderr).toContain('has no deleted id');
  });

  test('sends no id that was protected meanwhile, and no token to an address that only Redis names', async ({
    onTestFinished,
  }) => {
    const { harness, again, verify, run } = await openDeleted(onTestFinished, 3, honest);
    const kept = harness.file('kept.txt', 'v-2\n');
    expect((await verify(['--sample', '3', '--confirm', '2', '--protect', kept])).code).toBe(0);
    expect(again().sort()).toEqual(['/v2/views/v-1', '/v2/views/v-3']);
    const elsewhere = await harness.expunge(['verify', run, '--sample', '3', '--yes']);
    expect([elsewhere.code, elsewhere.stderr]).toEqual([2, expect.stringContaining('but the settings name')]);
    expect(harness.sandbox.seen).toEqual([]);
  });
});
