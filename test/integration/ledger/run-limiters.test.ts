import { randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import { openLedger } from '../../../src/ledger/ledger.ts';
import { readListed } from '../../../src/ledger/list-runs.ts';
import { readRun } from '../../../src/ledger/run.ts';
import { readStandings } from '../../../src/ledger/run-standings.ts';
import { startRun } from '../../../src/ledger/start-run.ts';
import { haltRules } from '../../../src/ledger/thresholds.ts';
import { limiterKeys, openTargetCalls } from '../../../src/limiter/target-call.ts';
import { targetOf } from '../../../src/model/target.ts';
import { readRunContext, standingsOfRun } from '../../../src/operations/take-snapshot.ts';
import { readTargetRecord, standingsOfOpen } from '../../../src/operations/target-status.ts';
import { keys } from '../../../src/redis/keys.ts';
import { openTestRedis } from '../../support/redis.ts';
import { forgetKeys } from '../../support/redis-keys.ts';
import { quietCall } from '../../support/target-call.ts';
import { writeTestRun } from './lone-run.ts';

test.for([
  ['views', 'annotations', ['retry_after', 'retry_after', 'retry_after']],
  ['annotations', 'views', [undefined, undefined, undefined]],
] as const)(
  'a run of views is held by what holds the limiter of %s, whether %s are sent or not',
  async ([held, free, expected], { onTestFinished }) => {
    const redis = await openTestRedis();
    const target = targetOf('http://127.0.0.1:9', randomUUID());
    const id = await writeTestRun(redis, [3, 3], null, target);
    onTestFinished(async () => {
      await forgetKeys(redis, `*${target.fp}*`);
      await forgetKeys(redis, `*${id}*`);
      redis.disconnect();
    });
    const ledger = openLedger(redis, haltRules);
    await startRun(ledger, (await readRun(redis, id))!, { who: 'test', reason: '' });
    const call = (scope: string, wish: Parameters<typeof quietCall>[0]) =>
      openTargetCalls(redis, limiterKeys(target.fp, scope)).call(quietCall(wish));
    await call(free, {});
    await call(held, { wants: false, hold: { ms: 60_000, why: 'the server asked for it' } });
    const whys = async () => {
      const run = (await readRun(redis, id))!;
      const record = await readTargetRecord(redis, target, true);
      return [
        (await readStandings(redis, await readListed(redis, [id])))(run)[0]?.why,
        standingsOfRun(run, await readRunContext(redis, run))[0]?.why,
        standingsOfOpen(record.open.runs[0]!, record.status)[0]?.why,
      ];
    };
    await ledger.enqueue(id);
    expect(await redis.hlen(keys.open(id))).toBeGreaterThan(0);
    expect(await whys()).toEqual(expected);
  },
);
