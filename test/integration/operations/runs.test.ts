import { describe, expect, onTestFinished, test } from 'vitest';
import { type Ledger, openLedger } from '../../../src/ledger/ledger.ts';
import { readRun } from '../../../src/ledger/run.ts';
import { localRuns } from '../../../src/operations/local.ts';
import type { RedisClient } from '../../../src/redis/client.ts';
import { closeQueueConnection, openQueueConnection } from '../../../src/redis/connect.ts';
import { openApi } from '../../support/api.ts';
import { summaryIn } from '../../support/command.ts';
import type { Harness } from '../../support/harness.ts';
import { annotations, makeIds } from '../../support/ids.ts';
import { testRedisAddress } from '../../support/redis.ts';

// An action that continues a run names the revision that was shown.

const ids = makeIds('s', 20);
const as = (name: string) => ({ env: { EXPUNGE_USER: name } });

/** A detached run that may send 5 of its 20 ids, and that nobody works on. */
async function openScene() {
  const api = await openApi(onTestFinished, { objects: annotations(ids) });
  const { harness, call } = api;
  const rules = ['--max-deletes', '5', '--partial', '--detach', '--yes', '--json'];
  const made = await harness.run([harness.list(ids), '--resource', 'annotations', ...rules]);
  const { run } = summaryIn(made);
  const resume = (body: object) => call('operate', `/runs/${run}/resume`, { method: 'POST', body });
  const revision = async () => (await readRun(harness.redis, run))!.revision;
  return { harness, run, resume, revision };
}

describe('a resume over HTTP', () => {
  test('lets a running run send more only as it was shown', async () => {
    const { harness, run, resume, revision } = await openScene();
    const seen = await revision();
    await harness.expunge(['rate', run, '5/s'], as('bob'));
    expect((await resume({ seen, max_deletes: 10 })).body).toMatchObject({ status: 409, code: 'guard' });
    expect(await readRun(harness.redis, run)).toMatchObject({ state: 'running', maxDeletes: 5 });
    expect((await resume({ seen })).body, 'it is running already').toMatchObject({ state: 'running', changed: false });
    expect((await resume({ seen: await revision(), max_deletes: 10 })).status, 'negative control').toBe(200);
    expect(await readRun(harness.redis, run)).toMatchObject({ state: 'running', maxDeletes: 10 });
  });
});

describe('a resume with another rule', () => {
  test('does not lift a pause that comes while the rule is written', async () => {
    const { harness, run, revision } = await openScene();
    await harness.expunge(['pause', run], as('ana'));
    const hold = () => harness.expunge(['pause', run, '--reason', 'legal hold'], as('bob'));
    const seen = await revision();
    const action = { run, by: { who: 'cho', reason: '' }, seen, detach: false };
    const resumed = runsOf(harness, hold).resume({ ...action, rules: { maxDeletes: 10 } });
    await expect(resumed).rejects.toThrow(`run ${run} has changed since it was shown`);
    const held = await readRun(harness.redis, run);
    expect([held?.state, held?.pauses.map(({ who }) => who)]).toEqual(['paused', ['ana', 'bob']]);
    const again = { ...action, seen: await revision(), rules: { maxDeletes: 15 } };
    await runsOf(harness, async () => {}).resume(again);
    expect((await readRun(harness.redis, run))?.state, 'negative control').toBe('running');
  });
});

describe('a resume that leaves a run to workers', () => {
  test('does not lift a halt that comes between its start and that', async () => {
    const { harness, run, revision } = await openScene();
    await harness.expunge(['pause', run], as('ana'));
    const ledger = openLedger(harness.redis);
    const halt = { action: 'halt', by: 'guard', who: '', reason: 'nobody has seen this', halt: 'forbidden' } as const;
    const halting = onceAfter(ledger, 'steer', () => ledger.steer(run, Date.now(), halt));
    const runs = runsWith(harness.redis, halting);
    await runs.resume({ run, by: { who: 'cho', reason: '' }, seen: await revision(), rules: {}, detach: true });
    expect(await readRun(harness.redis, run)).toMatchObject({ state: 'halted', reason: 'nobody has seen this' });
  });
});

/** Actions for runs; `meanwhile` is done once the first script of them is. */
function runsOf({ redis }: Harness, meanwhile: () => Promise<unknown>) {
  return runsWith(onceAfter(redis, 'eval', meanwhile), openLedger(redis));
}

function runsWith(redis: RedisClient, ledger: Ledger) {
  const queueConnection = openQueueConnection(testRedisAddress());
  onTestFinished(() => closeQueueConnection(queueConnection));
  return localRuns({ redis, ledger, queueConnection });
}

/** The same object, whose first call of a method is followed by something else before it returns. */
function onceAfter<T extends object>(real: T, method: keyof T & string, meanwhile: () => Promise<unknown>): T {
  let isFirst = true;
  return new Proxy(real, {
    get(target, name) {
      const value = Reflect.get(target, name);
      const bound = typeof value === 'function' ? value.bind(target) : value;
      if (name !== method || !isFirst) return bound;
      isFirst = false;
      return async (...args: unknown[]) => {
        const answer = await bound(...args);
        await meanwhile();
        return answer;
      };
    },
  });
}
