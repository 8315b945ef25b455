import { expect, test } from 'vitest';
import { keys } from '../../../src/redis/keys.ts';
import { sendHeartbeat } from '../../../src/schedule/heartbeat.ts';
import { openReceiver } from '../../support/receiver.ts';
import { minute, openScheduleHarness, someIds, start } from '../../support/schedule-harness.ts';

test('the heartbeat of a schedule is called at the end of an occurrence that went well, once it is taken', async ({
  onTestFinished,
}) => {
  const harness = await openScheduleHarness(onTestFinished);
  const { redis, target } = harness;
  const monitor = await openReceiver(onTestFinished);
  monitor.answer = () => (monitor.received.length === 0 ? 500 : 200);
  await harness.add({ heartbeat: `${monitor.url}/ping/verschwiegen` });
  const send = async () =>
    sendHeartbeat(
      {
        redis,
        fp: target.fp,
        route: { ca: null, proxy: null },
        stop: new AbortController().signal,
        now: () => harness.now,
      },
      await harness.schedule(),
    );
  harness.list(someIds('v', 3));
  await harness.at(start + minute);
  await send();
  expect(monitor.received, 'its run has not ended').toEqual([]);
  await harness.finish((await harness.schedule()).lastRun);
  await harness.at(start + minute + 1_000);
  expect(await send()).toContain('it answers 500');
  expect(await Promise.all([send(), send()])).toContain('');
  expect(await send()).toBe('');
  expect(monitor.received.map(({ method, path, status }) => `${method} ${path} ${status}`)).toEqual([
    'GET /ping/verschwiegen 500',
    'GET /ping/verschwiegen 200',
  ]);
  expect(await redis.hget(keys.schedule(target.fp, 'nightly'), 'heartbeatDue')).toBeNull();
  const listed = await harness.expunge(['schedule', 'list', '--json']);
  expect(JSON.parse(listed.stdout)).toMatchObject({ heartbeat: `${monitor.url}/***` });
});
