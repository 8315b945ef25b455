import { describe, test } from 'vitest';
import { openLedger } from '../../../src/ledger/ledger.ts';
import { readRun } from '../../../src/ledger/run.ts';
import { startRun } from '../../../src/ledger/start-run.ts';
import { keys } from '../../../src/redis/keys.ts';
import { redisDuringTests } from '../../support/redis.ts';
import { forgetRun, writeTestRun } from './lone-run.ts';

const redis = await redisDuringTests();

const author = { by: 'operator', who: 'test', reason: '' } as const;

describe.concurrent('a run that was read as planned, and started late', () => {
  test.for([
    ['pause', 'interrupt', 'running'],
    ['pause', 'operator', 'paused'],
    ['halt', 'guard', 'halted'],
  ] as const)('which others started and a %s by %s stopped is then %s', async ([action, by, after], context) => {
    const id = await writeTestRun(redis, [1], 200);
    context.onTestFinished(() => forgetRun(redis, id));
    const ledger = openLedger(redis);
    const run = (await readRun(redis, id))!;
    await startRun(ledger, run, author);
    await ledger.steer(id, 2, { action, ...author, by });
    await startRun(ledger, run, author);
    context.expect(await redis.hget(keys.run(id), 'state')).toBe(after);
  });
});
