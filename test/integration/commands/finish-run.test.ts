import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { type ConnectionOptions, Worker } from 'bullmq';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Invocation } from '../../../src/commands/command.ts';
import { finishRun } from '../../../src/commands/runs/finish-run.ts';
import { exitCodes } from '../../../src/errors.ts';
import { settle } from '../../../src/ledger/cell.ts';
import { type Ledger, openLedger } from '../../../src/ledger/ledger.ts';
import { isOver, type Run, readRun } from '../../../src/ledger/run.ts';
import { codeOfStatus } from '../../../src/model/outcome.ts';
import { toTypeAnywhere } from '../../../src/model/to-type.ts';
import { openQueue } from '../../../src/queue/queue.ts';
import { ownQueueName } from '../../../src/queue/queues.ts';
import type { RedisClient } from '../../../src/redis/client.ts';
import { keys } from '../../../src/redis/keys.ts';
import { openTestRedis, testRedisAddress } from '../../support/redis.ts';
import { redisKeysWith } from '../../support/redis-keys.ts';
import { forgetRun, writeTestRun } from '../ledger/lone-run.ts';

let redis: RedisClient;
let ledger: Ledger;
beforeAll(async () => {
  redis = await openTestRedis();
  ledger = openLedger(redis);
});
afterAll(() => redis.disconnect());

type FinishHarness = {
  run: Run;
  folder: string;
  said: string;
  /** `left`: the run as its command saw it last. */
  finish(signal?: AbortSignal, left?: Run): Promise<number>;
};

async function complete(id: string): Promise<void> {
  await ledger.enqueue(id);
  const claim = await ledger.claim(id, 0);
  if (typeof claim === 'string') throw new Error(claim);
  const cell = settle('deleted', 1, codeOfStatus(204));
  await ledger.update({ run: id, chunk: 0, epoch: claim.epoch, results: [0, 1].map((index) => ({ index, cell })) });
}

/** A run that has ended, and a Redis that leaves its first `failures` commands of one kind without an answer. */
async function openFinishHarness(
  atEnd: (task: () => Promise<void>) => void,
  failures: number,
  command: 'getBuffer' | 'hgetall' = 'getBuffer',
  end: (id: string) => Promise<unknown> = complete,
): Promise<FinishHarness> {
  const id = await writeTestRun(redis, [2]);
  const folder = mkdtempSync(join(tmpdir(), 'expunge-finish-'));
  atEnd(async () => {
    await forgetRun(redis, id);
    rmSync(folder, { recursive: true, force: true });
  });
  await ledger.steer(id, Date.now(), { action: 'start', reason: '', by: 'operator', who: 'test' });
  await end(id);
  const run = (await readRun(redis, id))!;
  let left = failures;
  const slow = new Proxy(redis, {
    get: (_, name) => {
      if (name !== command) return Reflect.get(redis, name).bind?.(redis) ?? Reflect.get(redis, name);
      return async (key: string) => {
        if (left-- > 0) throw new Error('Command timed out');
        return redis[command](key);
      };
    },
  });
  const stderr = new PassThrough();
  stderr.setEncoding('utf8').on('data', (text) => {
    stage.said += text;
  });
  const stdout = new PassThrough().resume();
  const typed = { program: 'expunge', toType: toTypeAnywhere, argv: [] };
  const invocation = { ...typed, options: {}, config: {}, env: {}, stderr, stdout } as unknown as Invocation;
  const session = { redis: slow, ledger, queueConnection: testRedisAddress().options };
  const stage: FinishHarness = {
    run,
    folder,
    said: '',
    finish: (signal = new AbortController().signal, left = run) =>
      finishRun(
        { invocation, session, run, outputFolder: folder },
        {
          signal,
          exit: () => (signal.aborted ? 130 : null),
          dispose: () => {},
        },
        signal.aborted ? null : left,
      ),
  };
  return stage;
}

describe('the report of a run that has ended', () => {
  test('waits for a Redis that does not answer meanwhile', async ({ onTestFinished }) => {
    const stage = await openFinishHarness(onTestFinished, 3);
    expect(await stage.finish()).toBe(0);
    expect(stage.said).toContain('Redis does not answer.');
    expect(stage.said).toContain('completed: 2 ids');
    expect(existsSync(join(stage.folder, 'outcomes.csv'))).toBe(true);
    expect(isOver((await readRun(redis, stage.run.id))!)).toBe(true);
  });

  test('is left to the same command when somebody does not want to wait', async ({ onTestFinished }) => {
    const stage = await openFinishHarness(onTestFinished, Number.POSITIVE_INFINITY);
    expect(await stage.finish(AbortSignal.abort())).toBe(130);
    expect(stage.said).toContain('the same command resumes once it is back');
    expect(isOver((await readRun(redis, stage.run.id))!)).toBe(false);
  });

  test('keeps nobody who interrupts while Redis is away', async ({ onTestFinished }) => {
    const stage = await openFinishHarness(onTestFinished, Number.POSITIVE_INFINITY, 'hgetall');
    expect(await stage.finish(AbortSignal.abort())).toBe(130);
  });

  test('leaves no queue behind that could not be removed while Redis was away', async ({ onTestFinished }) => {
    const stage = await openFinishHarness(onTestFinished, 0);
    const { id, fp } = stage.run;
    const queue = openQueue({ fp, name: ownQueueName(id), connection: testRedisAddress().options });
    await queue.add([{ run: id, chunk: 0 }]);
    await queue.close(); // as the command leaves it then
    expect(await redisKeysWith(`:${ownQueueName(id)}:`)).not.toEqual([]);
    expect(await stage.finish()).toBe(0);
    expect(await redisKeysWith(`:${ownQueueName(id)}:`)).toEqual([]);
  });
});

test('a run that somebody had paused is not said to go on with the same command alone', async ({ onTestFinished }) => {
  const pause = (id: string) =>
    ledger.steer(id, Date.now(), { action: 'pause', reason: 'lunch', by: 'operator', who: 'ana' });
  const stage = await openFinishHarness(onTestFinished, 0, 'getBuffer', pause);
  expect(await stage.finish(AbortSignal.abort())).toBe(130);
  expect(stage.said).toContain(`Run ${stage.run.id} stays paused by ana: lunch.`);
  expect(stage.said).toContain(`expunge resume ${stage.run.id}`);
});

test('a run that was resumed while its command was ending is paused, and ends with the code of what had ended it', async ({
  onTestFinished,
}) => {
  let halted: Run | null = null;
  const haltAndResume = async (id: string) => {
    await ledger.steer(id, Date.now(), { action: 'halt', reason: 'the API refused the token', by: 'guard', who: '' });
    halted = await readRun(redis, id);
    await ledger.steer(id, Date.now(), { action: 'start', reason: '', by: 'operator', who: 'ana' });
  };
  const stage = await openFinishHarness(onTestFinished, 0, 'getBuffer', haltAndResume);
  expect(stage.run.state).toBe('running');
  expect(await stage.finish(undefined, halted!)).toBe(exitCodes.GUARD.exit);
  expect(stage.said).toContain(
    'it was resumed while its command was ending, because it was halted: the API refused the',
  );
  expect(stage.said).not.toContain('other command');
  expect(await readRun(redis, stage.run.id)).toMatchObject({ state: 'paused', by: 'interrupt' });
});

test('a run that was resumed meanwhile, and that another command deletes, is left to that one', async ({
  onTestFinished,
}) => {
  const stage = await openFinishHarness(onTestFinished, 0, 'getBuffer', async () => {});
  const { id, fp } = stage.run;
  const connection = testRedisAddress().options as ConnectionOptions;
  const other = new Worker(ownQueueName(id), async () => {}, { connection, prefix: keys.queuePrefix(fp) });
  onTestFinished(() => other.close(true));
  await other.waitUntilReady();
  const halted: Run = { ...stage.run, state: 'halted', reason: 'too many failures' };
  expect(await stage.finish(undefined, halted)).toBe(exitCodes.GUARD.exit);
  expect(stage.said).toContain(`Left run ${id} to the other command that is deleting it`);
  expect((await readRun(redis, id))!.state).toBe('running');
});
