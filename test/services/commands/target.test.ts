import { describe, expect, test } from 'vitest';
import { keys } from '../../../src/redis/keys.ts';
import { type Harness, openHarness } from '../../support/harness.ts';
import { annotations, makeIds } from '../../support/ids.ts';
import { until } from '../../support/processes.ts';

async function call(harness: Harness, ...args: string[]) {
  const running = harness.start(args, { EXPUNGE_USER: 'ana' });
  expect(await running.ended, running.stderr).toMatchObject({ code: 0 });
  return running;
}

describe.concurrent('expunge target', () => {
  test('releases a target from a bogus Retry-After: it is named before, and workers go on within seconds after', async ({
    onTestFinished,
  }) => {
    const ids = makeIds('r', 1_200); // three chunks
    let requests = 0;
    const script = () => (++requests === 20 ? 'status-429-seconds' : null);
    const faults = { script, retryAfterSeconds: 3_500 } as const;
    const harness = await openHarness(onTestFinished, { objects: annotations(ids), faults });
    await call(harness, 'run', harness.list(ids), '--resource', 'annotations', '--yes', '--detach');
    const { id } = await harness.onlyRun();
    await harness.worker();
    await until('the server has asked to wait', () => requests >= 20);
    const isQueued = async () => Object.values(await harness.redis.hgetall(keys.open(id))).join() === '0,0,0';
    await until('its chunks wait for a worker again, not for the end of the hour', isQueued);

    const why = 'the server answered 429 and sent Retry-After 3500';
    const { stdout } = await call(harness, 'status');
    expect(stdout).toMatch(new RegExp(`\n  nothing is sent until \\d\\d:\\d\\d \\(5\\d min( \\d+ s)?\\): ${why}`));
    expect(stdout).toContain(
      `To send before the server wants it: expunge target release --base-url ${harness.sandbox.url}`,
    );
    expect((await call(harness, 'resume', id)).stderr).toContain(
      `: ${why}. To send before the server wants it: expunge target release`,
    );
    const released = await call(harness, 'target', 'release', '--reason', 'their mistake', '--json');
    expect(JSON.parse(released.stdout)).toMatchObject({
      v: 1,
      type: 'target',
      changed: true,
      processes: 1,
      limit: null,
      limiter: { hold: null, outage: null },
    });
    await until('a worker goes on', () => requests > 40);
    // The limit that it took the refusal for is another matter.
    await call(harness, 'target', 'forget-rate');
    await harness.runIs('completed', ({ state }) => state === 'completed');
    expect((await call(harness, 'status')).stdout).toMatch(/release +ana +their mistake\n.*forget-rate +ana/);
  });

  test('limits a target, for runs to come, too, and refuses one that nothing was ever sent to', async ({
    onTestFinished,
  }) => {
    const ids = makeIds('p', 10);
    const harness = await openHarness(onTestFinished, { objects: annotations(ids) });
    const unknown = harness.start(['target', 'forget-rate']);
    expect([(await unknown.ended).code, unknown.stderr]).toEqual([
      2,
      expect.stringContaining(`nothing was ever sent to ${harness.sandbox.url} as account`),
    ]);
    const limited = await call(harness, 'target', 'limit', '5/s,1000/day', '--reason', 'as agreed');
    expect(limited.stderr).toContain(
      'limit 5/s; 1,000 a day, 0 used; by ana: as agreed\n  rate: starts at 5/s, the limit of the target\n',
    );
    const run = await call(harness, 'run', harness.list(ids), '--resource', 'annotations', '--yes');
    expect(run.stderr).toContain('Pace      starts at 5/s, the limit of the target');
    const status = JSON.parse((await call(harness, 'status', '--json')).stdout);
    expect(status).toMatchObject({ limit: { rate: '5/s,1000/day', who: 'ana', reason: 'as agreed', used: [10] } });
    await call(harness, 'target', 'forget-rate');
    const unlimited = await call(harness, 'target', 'limit', 'none');
    expect(unlimited.stderr).toContain('nothing is known of its limit yet');
  });
});
