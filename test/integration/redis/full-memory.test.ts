import { randomUUID } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { noteHistory, readHistory } from '../../../src/history/history.ts';
import { noteTargetAction } from '../../../src/ledger/audit.ts';
import { settle as settleCell } from '../../../src/ledger/cell.ts';
import { changeRules } from '../../../src/ledger/change-rules.ts';
import { claimList } from '../../../src/ledger/create-run.ts';
import type { KnownCells } from '../../../src/ledger/known-cells.ts';
import { type Claim, type Ledger, openLedger, type Steering } from '../../../src/ledger/ledger.ts';
import { changeMaxDeletes } from '../../../src/ledger/max-deletes.ts';
import { queueResults, recordResults, requestDelivery } from '../../../src/ledger/results.ts';
import { readRun } from '../../../src/ledger/run.ts';
import { setLimit, startTarget, stopTarget } from '../../../src/ledger/steer-target.ts';
import { control } from '../../../src/limiter/learning/control.ts';
import type { Sums } from '../../../src/limiter/learning/sums.ts';
import { openPaceCalls } from '../../../src/limiter/run-pace.ts';
import { limiterKeys, openTargetCalls, type TargetCall } from '../../../src/limiter/target-call.ts';
import type { RedisClient } from '../../../src/redis/client.ts';
import { keys } from '../../../src/redis/keys.ts';
import type { Definition } from '../../../src/schedule/schedule.ts';
import { addSchedule, steerSchedule, updateSchedule } from '../../../src/schedule/schedule-store.ts';
import { openOwnRedis } from '../../support/own-redis.ts';
import { quietCall } from '../../support/target-call.ts';
import { writeTestRun } from '../ledger/lone-run.ts';

// Redis refuses a script whose first write can take memory, and lets all others run to their end. So none does half of its work; what
// must not happen either is that one passes that should say no.

let redis: RedisClient;
let ledger: Ledger;
const atEnd: (() => Promise<void>)[] = [];
beforeAll(async () => {
  redis = (await openOwnRedis((task) => void atEnd.push(task))).connect();
  ledger = openLedger(redis);
});
beforeEach(() => redis.flushall());
afterAll(async () => {
  for (const task of atEnd) await task();
});

type Act = () => Promise<unknown>;
type Case = { script: string; when?: string; arrange: () => Promise<Act> };

const now = 1_800_000_000_000;
const author = { at: now, by: 'operator', who: 'test', reason: '' } as const;

/** A run with a chunk of three ids, in one of its states. */
async function openRun(...actions: Steering['action'][]): Promise<string> {
  const id = await writeTestRun(redis, [3, 2], 50);
  for (const action of actions) await ledger.steer(id, now, { action, ...author });
  return id;
}

async function claimed(): Promise<{ id: string; epoch: number; known: KnownCells }> {
  const id = await openRun('start');
  await ledger.enqueue(id);
  const { epoch, known } = (await ledger.claim(id, 0)) as Claim;
  return { id, epoch, known };
}

const call = quietCall({ hold: { ms: 5_000, why: 'Retry-After' } });

function target(wish: Partial<TargetCall>): Act {
  const { call: report } = openTargetCalls(redis, limiterKeys(randomUUID()), () => String(now));
  return () => report({ ...call, ...wish });
}

function pace(id: string, wants: boolean): Act {
  const ask = openPaceCalls(redis, () => String(now));
  const [members, quotas, refusals] = [keys.paceMembers(id), keys.paceQuotas(id), keys.refusals(id)];
  const of = { run: keys.run(id), members, quotas, refusals };
  return () => ask(of, { process: 'p', wants, till: '0', unused: 0, unusedSince: 0 });
}

const definition: Definition = {
  cron: '0 3 * * *',
  tz: 'UTC',
  from: 'expired',
  missed: 'none',
  maxDelayMs: 1,
  maxGrowth: 3,
  atMost: 0,
  retryFailed: false,
  maxActiveMs: 0,
  stopAt: '',
  definitions: '',
  settings: {},
  heartbeat: '',
  note: '',
};

async function scheduled(): Promise<string> {
  const fp = randomUUID();
  await addSchedule(redis, fp, 'nightly', definition, { ...author, replace: false, protectedList: null });
  await redis.set(keys.scheduleLease(fp, 'nightly'), 'token');
  return fp;
}

const ledgerScripts = 'ledger/chunks.lua.ts';
const storeScripts = 'schedule/schedule-store.ts';

const refused: Case[] = [
  {
    script: 'ledger/update.lua.ts updateLua',
    when: 'it marks',
    arrange: async () => {
      const { id, epoch } = await claimed();
      return () => ledger.update({ run: id, chunk: 0, epoch, wanted: [0, 1, 2] });
    },
  },
  {
    script: 'ledger/update.lua.ts updateLua',
    when: 'it merges and marks',
    arrange: async () => {
      const { id, epoch } = await claimed();
      await ledger.update({ run: id, chunk: 0, epoch, wanted: [0, 1] });
      const results = [0, 1].map((index) => ({ index, cell: settleCell('deleted', 1, 116) }));
      return () => ledger.update({ run: id, chunk: 0, epoch, results, wanted: [2] });
    },
  },
  {
    script: 'ledger/known-update.lua.ts knownUpdateLua',
    arrange: async () => {
      const { id, epoch, known } = await claimed();
      return () => ledger.update({ run: id, chunk: 0, epoch, wanted: [0, 1, 2], known });
    },
  },
  {
    script: 'ledger/known-update.lua.ts knownUpdateLua',
    when: 'it merges and marks',
    arrange: async () => {
      const { id, epoch, known } = await claimed();
      await ledger.update({ run: id, chunk: 0, epoch, wanted: [0, 1], known });
      const results = [0, 1].map((index) => ({ index, cell: settleCell('deleted', 1, 116) }));
      return () => ledger.update({ run: id, chunk: 0, epoch, results, wanted: [2], known });
    },
  },
  { script: `${ledgerScripts} enqueueLua`, arrange: async () => actEnqueue(await openRun('start')) },
  {
    script: `${ledgerScripts} enqueueLua`,
    when: 'a deferred chunk is due',
    arrange: async () => {
      const { id, epoch } = await claimed();
      await ledger.returnChunk({ run: id, chunk: 0, epoch, dueInMs: 0 });
      await redis.hdel(keys.open(id), '1');
      return actEnqueue(id);
    },
  },
  {
    script: `${ledgerScripts} claimLua`,
    arrange: async () => {
      const id = await openRun('start');
      await ledger.enqueue(id);
      return () => ledger.claim(id, 0);
    },
  },
  {
    script: `${ledgerScripts} returnChunkLua`,
    arrange: async () => {
      const { id, epoch } = await claimed();
      return () => ledger.returnChunk({ run: id, chunk: 0, epoch, dueInMs: null });
    },
  },
  {
    script: `${ledgerScripts} reclaimLua`,
    when: 'chunks are held',
    arrange: async () => {
      const { id } = await claimed();
      await ledger.steer(id, now, { action: 'cancel', ...author });
      await redis.hset(keys.run(id), 'changedAt', 0); // long ago
      return () => ledger.reclaim(id);
    },
  },
  {
    script: 'start-all',
    arrange: async () => {
      const fp = randomUUID();
      await stopTarget(redis, fp, author);
      return () => startTarget(redis, fp, author);
    },
  },
  {
    script: `${ledgerScripts} keepaliveLua`,
    arrange: async () => {
      const { id } = await claimed();
      await ledger.steer(id, now, { action: 'cancel', ...author });
      return () => ledger.keepalive(id, 'p', 10_000);
    },
  },
  {
    script: `${ledgerScripts} recoverLua`,
    arrange: async () => {
      const id = await openRun('start');
      return () => ledger.recover(id, [0, 1], 'lost sight of');
    },
  },
  { script: 'ledger/doubt.lua.ts makeRecordLua', arrange: async () => () => writeTestRun(redis, [3]) },
  {
    script: `${ledgerScripts} claimLua`,
    when: 'the run is in doubt',
    arrange: async () => {
      const { id, epoch } = await claimed();
      await ledger.returnChunk({ run: id, chunk: 0, epoch, dueInMs: 0 });
      await ledger.recover(id, [0], 'lost sight of');
      await ledger.enqueue(id);
      return () => ledger.claim(id, 0);
    },
  },
  ...(['start', 'pause', 'cancel'] as const).map((action) => ({
    script: 'ledger/steer.lua.ts steerLua',
    when: `it is to ${action}`,
    arrange: async () => {
      const id = await openRun();
      return () => ledger.steer(id, now, { action, ...author });
    },
  })),
  {
    script: 'ledger/change-rules.ts changeRulesLua',
    arrange: async () => {
      const run = (await readRun(redis, await openRun('start')))!;
      return () => changeRules(redis, run, { rate: null }, author);
    },
  },
  {
    script: 'ledger/max-deletes.lua.ts changeMaxDeletesLua',
    arrange: async () => {
      const run = (await readRun(redis, await openRun()))!;
      return () => changeMaxDeletes(redis, run, 1, { ...author, action: 'max-deletes' });
    },
  },
  { script: 'limiter/run-pace.ts runPaceLua', arrange: async () => pace(await openRun('start'), true) },
  { script: 'limiter/target.lua.ts targetLua', arrange: async () => target({}) },
  {
    script: 'limiter/target.lua.ts targetLua',
    when: 'no permits are wanted',
    arrange: async () => target({ wants: false }),
  },
  {
    script: 'limiter/store-state.lua.ts storeStateLua',
    arrange: async () => {
      const calls = openTargetCalls(redis, limiterKeys(randomUUID()), () => String(now));
      const { turn, seen } = await calls.call(call);
      const first = control(null, JSON.parse(seen) as Sums);
      return () => calls.store(turn, null, first);
    },
  },
  {
    script: `${storeScripts} addLua`,
    arrange: async () => () =>
      addSchedule(redis, randomUUID(), 'nightly', definition, { ...author, replace: false, protectedList: null }),
  },
  ...(['pause', 'remove'] as const).map((action) => ({
    script: `${storeScripts} steerLua`,
    when: `it is to ${action}`,
    arrange: async () => {
      const fp = await scheduled();
      return () => steerSchedule(redis, fp, 'nightly', action, author);
    },
  })),
  {
    script: `${storeScripts} updateLua`,
    arrange: async () => {
      const fp = await scheduled();
      const claim = { occurrence: now, run: 'r', carriedOver: null };
      return () => updateSchedule(redis, { fp, name: 'nightly', token: 'token' }, { claim, fields: { after: now } });
    },
  },
  {
    script: `${storeScripts} updateLua`,
    when: 'a guard pauses it',
    arrange: async () => {
      const fp = await scheduled();
      const event = { id: 'e', type: 'schedule.paused', timestamp: '', data: {}, text: '' };
      const pause = { guard: 'empty', halt: '', at: now, reason: 'the list is empty', event } as const;
      return () => updateSchedule(redis, { fp, name: 'nightly', token: 'token' }, { pause });
    },
  },
  {
    script: 'stop-all',
    arrange: async () => {
      const fp = randomUUID();
      return () => stopTarget(redis, fp, author);
    },
  },
  {
    script: 'limit of a target',
    arrange: async () => {
      const fp = randomUUID();
      return () => setLimit(redis, fp, [{ count: 200, perMs: 1_000 }], author);
    },
  },
  {
    script: 'mark of a run whose results are wanted',
    arrange: async () => {
      const { id } = await claimed();
      return () => requestDelivery(redis, id);
    },
  },
  {
    script: 'queue of results',
    arrange: async () => {
      const { id } = await claimed();
      const run = await readRun(redis, id);
      return () => queueResults(redis, run!);
    },
  },
  {
    script: 'record of a delivery',
    arrange: async () => {
      const { id } = await claimed();
      await redis.set(keys.resultsLease(id), 'token');
      return () => recordResults(redis, id, 'token', { end: 'completed 1', at: now, place: 'here', by: 'test' });
    },
  },
  {
    script: 'audit of a target',
    arrange: async () => {
      const fp = randomUUID();
      return () => noteTargetAction(redis, fp, { ...author, action: 'remove' });
    },
  },
  {
    script: 'history/history.lua.ts noteHistoryLua',
    arrange: async () => {
      const { id } = await claimed();
      return () => noteHistory(redis, id, { limit: 100, hold: '', slices: [] });
    },
  },
  {
    script: 'claim of a list',
    arrange: async () => {
      const list = randomUUID();
      return () => claimList(redis, list, now);
    },
  },
];

/** What only reads, or gives back and may do so. */
const done: Case[] = [
  {
    script: 'history/history.lua.ts readHistoryLua',
    arrange: async () => {
      const run = await readRun(redis, (await claimed()).id);
      return () => readHistory(redis, run!);
    },
  },
  {
    script: `${ledgerScripts} hasOrphansLua`,
    arrange: async () => {
      const { id } = await claimed();
      return () => ledger.hasOrphans(id);
    },
  },
  {
    script: `${ledgerScripts} reclaimLua`,
    when: 'no chunk is held',
    arrange: async () => {
      const { id } = await claimed();
      await ledger.steer(id, now, { action: 'cancel', ...author });
      await redis.del(keys.open(id));
      return () => ledger.reclaim(id);
    },
  },
  {
    script: 'limiter/run-pace.ts runPaceLua',
    when: 'no permits are wanted',
    arrange: async () => pace(await openRun('start'), false),
  },
];

function actEnqueue(id: string): Act {
  return () => ledger.enqueue(id);
}

/** Every key with what it holds. */
async function contents(): Promise<Record<string, unknown>> {
  const names = (await redis.keys('*')).sort();
  return Object.fromEntries(await Promise.all(names.map(async (name) => [name, await heldIn(name)])));
}

async function heldIn(name: string): Promise<unknown> {
  switch (await redis.type(name)) {
    case 'hash':
      return withoutTimes(await redis.hgetall(name));
    case 'list':
      return redis.lrange(name, 0, -1);
    case 'set':
      return (await redis.smembers(name)).sort();
    case 'zset':
      return redis.zrange(name, '0', '-1', 'WITHSCORES');
    default:
      return (await redis.getBuffer(name))!.toString('base64');
  }
}

/** The end of a run is by the clock of Redis, and the same write at another moment. */
function withoutTimes({ finalized, endedAt, ...all }: Record<string, string>): Record<string, string> {
  const fields = Object.fromEntries(Object.entries(all).filter(([name]) => !name.startsWith('change:')));
  return { ...fields, ...(finalized === endedAt ? {} : { finalized: finalized ?? '', endedAt: endedAt ?? '' }) };
}

/** Keeps all that is there now; gives a way back to it. */
async function remember(): Promise<Act> {
  const names = await redis.keys('*');
  const dumps = await Promise.all(names.map((name) => redis.dumpBuffer(name)));
  return async () => {
    await redis.flushall();
    for (const [i, name] of names.entries()) await redis.restore(name, 0, dumps[i]!);
  };
}

/** What comes of it where Redis has no memory left: null, or why it failed. */
async function whileFull(act: Act): Promise<string | null> {
  await redis.config('SET', 'maxmemory', 1);
  try {
    return await act().then(() => null, String);
  } finally {
    await redis.config('SET', 'maxmemory', 0);
  }
}

function nameOf({ script, when }: Case): string {
  return when ? `${script}, when ${when}` : script;
}

describe('a Redis at maxmemory', () => {
  /** @invariant whole-refusal: A script that Redis refuses for lack of memory changes nothing. */
  test.each(refused.map((one) => [nameOf(one), one] as const))('refuses %s as a whole', async (_, { arrange }) => {
    const act = await arrange();
    const before = await contents();
    expect(await whileFull(act)).toMatch(/OOM/);
    expect(await contents()).toEqual(before);
  });

  test.each(done.map((one) => [nameOf(one), one] as const))('does %s as a whole', async (_, { arrange }) => {
    const act = await arrange();
    const goBack = await remember();
    expect(await whileFull(act)).toBeNull();
    const after = await contents();
    await goBack();
    await act();
    expect(after).toEqual(await contents());
  });

  /** @invariant whole-refusal */
  test('was asked with every script there is', () => {
    const root = new URL('../../../src/', import.meta.url);
    const files = readdirSync(root, { recursive: true }).map((path) => String(path).replaceAll('\\', '/'));
    const scripts = files
      .filter((path) => path.endsWith('.ts'))
      .flatMap((path) =>
        [...readFileSync(new URL(path, root), 'utf8').matchAll(/^ \* KEYS[\s\S]*?export const (\w+Lua)\b/gm)].map(
          ([, name]) => `${path} ${name}`,
        ),
      );
    expect(scripts.length).toBeGreaterThan(10);
    expect(scripts.filter((script) => ![...refused, ...done].some((one) => one.script === script))).toEqual([]);
  });
});
