import { randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import { openLedger } from '../../../src/ledger/ledger.ts';
import { readEvents, readWaits } from '../../../src/ledger/outbox.ts';
import { readRun } from '../../../src/ledger/run.ts';
import { startRun } from '../../../src/ledger/start-run.ts';
import { startTarget, stopTarget } from '../../../src/ledger/steer-target.ts';
import { storedSaying } from '../../../src/limiter/stop.ts';
import { targetOf } from '../../../src/model/target.ts';
import { keys } from '../../../src/redis/keys.ts';
import { publishWaits } from '../../../src/worker/event-sources.ts';
import type { AtEnd } from '../../support/harness.ts';
import { openTestRedis } from '../../support/redis.ts';
import { forgetKeys } from '../../support/redis-keys.ts';
import { writeTestRun } from '../ledger/lone-run.ts';

const start = Date.parse('2027-01-01T12:00Z');
const minute = 60_000;

/** A running run of a target without processes, and looks at it at times that the test sets. */
async function openStage(atEnd: AtEnd) {
  const redis = await openTestRedis();
  const target = targetOf('http://127.0.0.1:9', randomUUID());
  const run = await writeTestRun(redis, [3], null, target);
  const ledger = openLedger(redis);
  atEnd(async () => {
    await forgetKeys(redis, `*${target.fp}*`);
    await forgetKeys(redis, `*${run}*`);
    redis.disconnect();
  });
  await redis.hset(keys.run(run), 'detached', 1);
  await startRun(ledger, (await readRun(redis, run))!, { who: 'test', reason: '' });
  const author = { by: 'operator', who: 'ana@here', at: start } as const;
  return {
    redis,
    target,
    run,
    ledger,
    stop: (reason: string) => stopTarget(redis, target.fp, { ...author, reason }),
    start: () => startTarget(redis, target.fp, { ...author, reason: '' }),
    look: (minutes: number) => publishWaits(redis, target, [run], start + minutes * minute),
    told: async () => (await readEvents(redis, target.fp, 0, 50)).map(({ event }) => event),
  };
}

test('a run that a stop holds for 15 minutes is told once, with who, why and the command that ends it', async ({
  onTestFinished,
}) => {
  const { target, run, stop, look, told } = await openStage(onTestFinished);
  await stop('they call us');
  await look(0);
  await look(14);
  expect(await told()).toEqual([]);
  await Promise.all([look(15), look(15), look(15)]);
  for (const minutes of [16, 60, 600]) await look(minutes);
  const [event, ...others] = await told();
  expect(others).toEqual([]);
  expect(event).toMatchObject({
    id: `waiting-${run}-stop-${start}`,
    type: 'run.waiting',
    timestamp: '2027-01-01T12:15:00.000Z',
    data: {
      run,
      state: 'running',
      why: 'stop',
      by: 'ana@here',
      until: null,
      waiting_since: '2027-01-01T12:00:00.000Z',
      pending: 3,
    },
  });
  const command = `expunge start-all --base-url ${target.baseUrl} --account ${target.account}`;
  expect(event!.data).toMatchObject({ next: command });
  expect(event!.text).toMatch(
    /^Run \S+ on \S+ \(\S+\) has made no progress for 15 min: stopped for all runs .*they call us\. /,
  );
  expect(event!.text.endsWith(`Resume with: ${command}`)).toBe(true);
});

test('a run whose only process says that it has no token is told, with why and how to check it', async ({
  onTestFinished,
}) => {
  const { redis, target, look, told } = await openStage(onTestFinished);
  const says = storedSaying({ stop: null, token: { reason: 'token command: exit 1', since: start } });
  const callAs = (name: string, saying: string) =>
    redis.hset(keys.processes(target.fp), name, `${Date.now()} ${saying}`);
  await callAs('tokenless', says);
  await look(0);
  await look(14);
  expect(await told()).toEqual([]);
  await look(15);
  const [event, ...others] = await told();
  expect(others).toEqual([]);
  expect(event).toMatchObject({ type: 'run.waiting', data: { why: 'no_token', state: 'running', pending: 3 } });
  expect(event!.text).toContain('no token: token command: exit 1');
  expect(event!.data).toMatchObject({ next: expect.stringMatching(/^expunge check /) });
});

test('a stop that is lifted is no wait any more, and the next one is told anew', async ({ onTestFinished }) => {
  const { stop, start: lift, look, told } = await openStage(onTestFinished);
  await stop('a');
  for (const minutes of [0, 15]) await look(minutes);
  await lift();
  await look(16);
  await stop('b');
  for (const minutes of [17, 33]) await look(minutes);
  expect((await told()).map(({ data }) => data.text)).toEqual([
    expect.stringMatching(/: a$/),
    expect.stringMatching(/: b$/),
  ]);
});

test('nothing is kept of a run that has ended, or is gone', async ({ onTestFinished }) => {
  const { redis, target, run, stop, ledger, look } = await openStage(onTestFinished);
  await stop('a');
  await look(0);
  expect(await readWaits(redis, target.fp)).toHaveLength(1);
  await ledger.steer(run, start, { action: 'cancel', by: 'operator', who: 'ana', reason: '' });
  await publishWaits(redis, target, [], start + minute);
  expect(await readWaits(redis, target.fp)).toEqual([]);
});
