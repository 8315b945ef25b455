import { describe, expect, it } from 'vitest';
import { readStops } from '../../../src/limiter/stop.ts';
import { targetOf } from '../../../src/model/target.ts';
import { keys } from '../../../src/redis/keys.ts';
import { openHarness } from '../../support/harness.ts';
import { liveRun } from '../../support/live-run.ts';
import { openTestRedis } from '../../support/redis.ts';
import { forgetTarget } from '../../support/redis-keys.ts';

type AtEnd = (task: () => Promise<void>) => void;

/** A live run of the account `acme`, which nobody works on; and the same host by another name. */
async function openPlace(atEnd: AtEnd) {
  const harness = await openHarness(null, { account: '', objects: { annotations: 0, views: 9 } });
  const { url } = harness.sandbox;
  const localhost = url.replace('127.0.0.1', 'localhost');
  for (const name of [url, localhost]) await forgetTarget(name); // another test may have had this port
  atEnd(async () => {
    await forgetTarget(localhost);
    await harness.close();
  });
  await liveRun(harness, 'other', '--account', 'acme');
  const call = (command: string, baseUrl: string, ...more: string[]) =>
    harness.expunge([command, '--base-url', baseUrl, ...more]);
  return { url, localhost, call };
}

/** Why the target is stopped, or null; and what its audit trail says. */
async function stopOf(baseUrl: string, account: string) {
  const redis = await openTestRedis();
  const { fp } = targetOf(baseUrl, account);
  try {
    const { target } = await readStops(redis, fp);
    const trail = (await redis.lrange(keys.targetAudit(fp), 0, -1)).map((line) => JSON.parse(line).action);
    return { reason: target?.reason ?? null, trail: trail.reverse() };
  } finally {
    redis.disconnect();
  }
}

const objects = (text: string) =>
  text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));

describe.concurrent('expunge stop-all', () => {
  it('fails where it reaches nobody, names who goes on, and keeps the stop for what starts there later', async ({
    onTestFinished,
  }) => {
    const { url, call } = await openPlace(onTestFinished);
    const missed = await call('stop-all', url, '--reason', 'they call us', '--json');
    expect(missed.code).toBe(2);
    expect(objects(missed.stdout)).toEqual([
      {
        v: 1,
        type: 'stop-all',
        target: url,
        account: '',
        runs: 0,
        processes: 0,
        stop: expect.objectContaining({ reason: 'they call us' }),
        before: null,
        others: expect.arrayContaining([{ target: url, account: 'acme', runs: 1, processes: 0 }]),
      },
    ]);
    expect(missed.stderr).toContain(
      `error: the stop of ${url} reaches nothing: it has no live run and no process in this Redis
  the stop is kept, and applies to runs that start later; undo it: expunge start-all --base-url ${url}
  live, and not stopped:
    ${url} as account acme: 1 live run (running) and 0 processes
      expunge stop-all --base-url ${url} --account acme
`,
    );
    expect([await stopOf(url, ''), await stopOf(url, 'acme')]).toEqual([
      { reason: 'they call us', trail: ['stop-all'] },
      { reason: null, trail: [] },
    ]);
    const again = await call('stop-all', url);
    expect([again.code, again.stderr]).toEqual([0, expect.stringContaining(`All runs of ${url} are stopped already`)]);
    expect(again.stderr).toContain('It reaches 0 live runs and 0 processes.');
    expect(again.stderr).toContain(`warning: live, and not stopped:\n  ${url} as account acme: 1 live run`);
  });

  it('takes no other name of a host for the same, and names the target that is live', async ({ onTestFinished }) => {
    const { url, localhost, call } = await openPlace(onTestFinished);
    const mistaken = await call('stop-all', localhost, '--account', 'acme');
    expect(mistaken.code).toBe(2);
    expect(mistaken.stderr).toContain(`error: the stop of ${localhost} as account acme reaches nothing`);
    expect(mistaken.stderr).toContain(`\n    ${url} as account acme: 1 live run (running) and 0 processes\n`);
    expect(await stopOf(url, 'acme')).toEqual({ reason: null, trail: [] });
  });

  it('stops and starts all accounts of a base URL, each with its audit trail', async ({ onTestFinished }) => {
    const { url, call } = await openPlace(onTestFinished);
    const all = await call('stop-all', url, '--all-accounts', '--reason', 'all of them');
    expect([all.code, all.stderr]).toEqual([0, expect.stringContaining('as account acme. Sending stops')]);
    expect(all.stderr).toContain('It reaches 1 live run (running) and 0 processes.');
    expect(await stopOf(url, 'acme')).toEqual({ reason: 'all of them', trail: ['stop-all'] });
    const one = await call('start-all', url);
    expect([one.code, one.stderr]).toEqual([
      0,
      expect.stringContaining(`warning: still stopped:\n  ${url} as account acme: by `),
    ]);
    const back = await call('start-all', url, '--all-accounts', '--json');
    expect(back.code).toBe(0);
    expect(objects(back.stdout).map(({ account, stop, before }) => [account, stop, before?.reason])).toEqual([
      ['', null, undefined],
      ['acme', null, 'all of them'],
    ]);
    expect(await stopOf(url, 'acme')).toEqual({ reason: null, trail: ['stop-all', 'start-all'] });
  });
});
