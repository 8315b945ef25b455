import { describe, expect, test } from 'vitest';
import { keys } from '../../src/redis/keys.ts';
import { until } from '../support/processes.ts';
import { annotations, makeIds, openScene, type Scene } from '../support/scene.ts';

async function call(scene: Scene, ...args: string[]) {
  const running = scene.expunge(args, { EXPUNGE_USER: 'ana' });
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
    const scene = await openScene(onTestFinished, { objects: annotations(ids), faults });
    await call(scene, 'run', scene.list(ids), '--resource', 'annotations', '--yes', '--detach');
    const { id } = await scene.run();
    await scene.worker();
    await until('the server has asked to wait', () => requests >= 20);
    const isQueued = async () => Object.values(await scene.redis.hgetall(keys.open(id))).join() === '0,0,0';
    await until('its chunks wait for a worker again, not for the end of the hour', isQueued, 60_000);

    const why = 'the server answered 429 and sent Retry-After 3500';
    const { stdout } = await call(scene, 'status');
    expect(stdout).toMatch(
      new RegExp(`not stopped\n  nothing is sent until \\d\\d:\\d\\d \\(5\\d min( \\d+ s)?\\): ${why}`),
    );
    expect(stdout).toContain(`lift that: expunge target release --base-url ${scene.sandbox.url}`);
    expect((await call(scene, 'resume', id)).stderr).toContain(`: ${why}.\n  Lift that: expunge target release`);
    const released = await call(scene, 'target', 'release', '--reason', 'their mistake', '--json');
    expect(JSON.parse(released.stdout)).toMatchObject({
      ...{ v: 1, type: 'target', changed: true, processes: 1, pinned: null },
      ...{ limiters: [{ scope: 'all', hold: null, outage: null }] },
    });
    await until('a worker goes on', () => requests > 40, 60_000);
    // The limit that it took the refusal for is another matter.
    await call(scene, 'target', 'forget-rate');
    await scene.runIs('completed', ({ state }) => state === 'completed', 60_000);
    expect((await call(scene, 'status')).stdout).toMatch(/release +ana +their mistake\n.*forget-rate +ana/);
  });

  test('pins and unpins a rate, for runs to come, too, and refuses a target that nothing was ever sent to', async ({
    onTestFinished,
  }) => {
    const ids = makeIds('p', 10);
    const scene = await openScene(onTestFinished, { objects: annotations(ids) });
    const unknown = scene.expunge(['target', 'forget-rate']);
    expect([(await unknown.ended).code, unknown.stderr]).toEqual([
      2,
      expect.stringContaining(`nothing was ever sent to ${scene.sandbox.url} as account`),
    ]);
    const pinned = await call(scene, 'target', 'pin-rate', '50/s', '--reason', 'as agreed');
    expect(pinned.stderr).toContain('pinned to 50/s by ana: as agreed\n  starts at 50/s, pinned\n');
    const run = await call(scene, 'run', scene.list(ids), '--resource', 'annotations', '--yes');
    expect(run.stderr).toContain('Pace      starts at 50/s, pinned');
    const status = JSON.parse((await call(scene, 'status', '--json')).stdout);
    expect(status).toMatchObject({ per_second: 50, pinned: { rate: '50/s', who: 'ana', reason: 'as agreed' } });
    await call(scene, 'target', 'forget-rate');
    const unpinned = await call(scene, 'target', 'pin-rate', 'none');
    expect(unpinned.stderr).toContain('nothing is known of its limit yet');
  });
});
