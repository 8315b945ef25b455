import { readFileSync } from 'node:fs';
import { Redis } from 'ioredis';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { readAudit } from '../../../src/ledger/audit.ts';
import { removeRun } from '../../../src/ledger/end-run.ts';
import { readKeptPlan } from '../../../src/ledger/kept-plans.ts';
import type { Run } from '../../../src/ledger/run.ts';
import { keys } from '../../../src/redis/keys.ts';
import { type AtEnd, type Harness, openHarness } from '../../support/harness.ts';
import { annotations, makeIds } from '../../support/ids.ts';

// Runs are left to workers of which there are none: nothing is sent anywhere.

const ids = makeIds('a', 4);
const ana = { EXPUNGE_USER: 'ana' };
const bob = { EXPUNGE_USER: 'Bob' };
const startAt = '2098-12-31T00:00Z';
const stopAt = '2099-01-01T00:00Z';

async function open(atEnd: AtEnd) {
  const harness = await openHarness(atEnd, { objects: annotations(ids) });
  const list = harness.list(ids);
  const submit = (args: string[], env: NodeJS.ProcessEnv = ana) =>
    harness.run([list, '--resource', 'annotations', '--detach', '--yes', ...args], { env });
  return { harness, list, submit };
}

/** The entries of a run's trail that change a rule, without their time. */
async function changesOf({ redis }: Harness, run: Run) {
  const others = ['submit', 'start', 'apply', 'approve'];
  return (await readAudit(redis, run))
    .filter(({ action }) => !others.includes(action))
    .map(({ at: _, ...entry }) => entry);
}

/** A run of a plan that bob has approved, with every rule that may be loosened. */
async function openPlanned(atEnd: AtEnd) {
  const opened = await open(atEnd);
  const { harness, list } = opened;
  const rules = ['--max-failures', '2', '--window', '22:00-06:00', '--max-deletes', '2', '--partial'];
  const plan = await harness.plan([list, '--resource', 'annotations', '--approve-by', 'bob', ...rules], { env: ana });
  const applied = await harness.expunge(['apply', plan, '--yes', '--detach', '--keep', '30d'], { env: bob });
  expect(applied).toMatchObject({ code: 0 });
  const limits = await opened.submit([
    ...['--start-at', startAt, '--grace', '2h', '--stop-at', stopAt, '--max-duration', '1h', '--partial'],
  ]);
  expect(limits).toMatchObject({ code: 0 }); // who makes a run stricter needs nobody
  return opened;
}

const loosened: [name: string, args: string[], field: keyof Run, from: string, to: string][] = [
  ['max-failures', ['--max-failures', '100%'], 'maxFailures', '2', '100%'],
  ['max-failures', ['--max-failures', 'none'], 'maxFailures', '2', 'none'],
  ['max-deletes', ['--max-deletes', '3'], 'maxDeletes', '2', '3'],
  ['max-deletes', ['--max-deletes', 'none'], 'maxDeletes', '2', 'none'],
  ['window', ['--window', 'always'], 'window', '22:00-06:00', 'none'],
  ['window', ['--window', '01:00-23:00'], 'window', '22:00-06:00', '01:00-23:00'],
  ['expect-absent', ['--expect-absent'], 'expectAbsent', 'none', 'true'],
  ['grace', ['--grace', '1h'], 'graceMs', '2h', '1h'],
  ['grace', ['--grace', 'none'], 'graceMs', '2h', 'none'],
  ['start-at', ['--start-at', '2098-12-30T00:00Z'], 'startAt', '2098-12-31T00:00:00.000Z', '2098-12-30T00:00:00.000Z'],
  ['start-at', ['--start-at', 'none'], 'startAt', '2098-12-31T00:00:00.000Z', 'none'],
  ['stop-at', ['--stop-at', '2099-01-02T00:00Z'], 'stopAt', '2099-01-01T00:00:00.000Z', '2099-01-02T00:00:00.000Z'],
  ['max-duration', ['--max-duration', '2h'], 'maxActiveMs', '1h', '2h'],
  ['max-duration', ['--max-duration', 'none'], 'maxActiveMs', '1h', 'none'],
  ['keep', ['--keep', '1h'], 'keepMs', '30d', '1h'],
];

describe('a run of a plan keeps its rules', () => {
  test.each(loosened)(
    'a looser --%s (%j) is for the approver alone, and is on record',
    async (action, args, field, from, to) => {
      const { harness, submit } = await openPlanned(onTestFinished);
      const before = await harness.onlyRun();
      const known = (await changesOf(harness, before)).length;
      const refused = await submit([...args, '--partial']);
      expect(refused.stderr).toContain('bob');
      expect(refused).toMatchObject({ code: 4 });
      expect((await harness.onlyRun())[field]).toEqual(before[field]);
      expect(await changesOf(harness, before)).toHaveLength(known);
      expect(await submit([...args, '--partial'], bob)).toMatchObject({ code: 0 });
      const after = await harness.onlyRun();
      expect(after[field]).not.toEqual(before[field]);
      expect((await changesOf(harness, after)).slice(known)).toMatchObject([{ action, who: 'Bob', from, to }]);
      expect(after.planChanged).toBe(`${action} ${from} to ${to} by Bob`);
    },
  );

  test('a stricter rule is for everybody, and the manifest does not speak of it', async () => {
    const { harness, submit } = await openPlanned(onTestFinished);
    expect(await submit(['--max-failures', '1', '--partial'])).toMatchObject({ code: 0 });
    const run = await harness.onlyRun();
    expect(run).toMatchObject({ maxFailures: '1', planChanged: '' });
    expect((await changesOf(harness, run)).at(-1)).toMatchObject({
      action: 'max-failures',
      who: 'ana',
      from: '2',
      to: '1',
    });
  });

  test.each([
    ['expect-absent', ['--expect-absent']],
    ['max-deletes', ['--max-deletes', '3']],
  ])('resume --%s is no way around the approver', async (action, args) => {
    const { harness } = await openPlanned(onTestFinished);
    const { id } = await harness.onlyRun();
    await harness.expunge(['pause', id]);
    const resume = (env: NodeJS.ProcessEnv) => harness.expunge(['resume', id, ...args], { env });
    expect(await resume(ana)).toMatchObject({ code: 4, stderr: expect.stringContaining('bob') });
    expect(await harness.onlyRun()).toMatchObject({ state: 'paused', expectAbsent: false, maxDeletes: 2 });
    expect(await resume(bob)).toMatchObject({ code: 0 });
    const run = await harness.onlyRun();
    expect(run.planChanged).toContain(action);
    expect((await changesOf(harness, run)).map(({ action }) => action)).toContain(action);
  });

  test('the manifest and the page name a plan together with what was loosened since', async () => {
    const { harness, submit } = await openPlanned(onTestFinished);
    await submit(['--max-failures', '50%', '--partial'], bob);
    const { id } = await harness.onlyRun();
    await harness.expunge(['cancel', id, '--yes']);
    await harness.expunge(['report', id, '--output', 'report.csv', '--manifest', 'manifest.json']);
    await harness.expunge(['report', id, '--format', 'html', '-o', 'page.html']);
    const words = 'max-failures 2 to 50% by Bob';
    expect(JSON.parse(readFileSync('manifest.json', 'utf8'))).toMatchObject({
      plan: expect.stringMatching(/^\w{16}-\w{8}$/),
      plan_changed: words,
    });
    expect(readFileSync('page.html', 'utf8')).toContain(words);
  });

  test('without a plan everybody may loosen a rule, and it is on record all the same', async () => {
    const { harness, submit } = await open(onTestFinished);
    await submit(['--max-failures', '2', '--max-duration', '1h']);
    expect(await submit(['--max-failures', '5', '--max-duration', '2h'])).toMatchObject({ code: 0 });
    const run = await harness.onlyRun();
    expect(await changesOf(harness, run)).toMatchObject([
      { action: 'max-failures', who: 'ana', from: '2', to: '5' },
      { action: 'max-duration', who: 'ana', from: '1h', to: '2h' },
    ]);
    expect(run.planChanged).toBe('');
    await submit([]);
    expect(await changesOf(harness, run)).toHaveLength(2); // a repetition changes nothing
  });
});

describe('a run is removed as it was shown, or not at all', () => {
  /** Does something else just before a command writes its first audit entry of a target: after its question, before its removal. */
  async function meanwhile<T>(
    { redis, target }: Harness,
    act: () => Promise<unknown>,
    command: () => Promise<T>,
  ): Promise<T> {
    const real = Redis.prototype.sendCommand;
    let acted: Promise<unknown> | null = null;
    const spy = vi.spyOn(Redis.prototype, 'sendCommand').mockImplementation(function (this: Redis, sent, stream) {
      const isNote = this !== redis && acted === null && sent.args.includes(keys.targetAudit(target.fp));
      if (!isNote) return real.call(this, sent, stream);
      acted = act();
      acted.then(() => real.call(this, sent, stream));
      return sent.promise;
    });
    try {
      return await command();
    } finally {
      spy.mockRestore();
    }
  }

  test('a colleague completes and starts it meanwhile: refused, with everything still there', async () => {
    const { harness, submit } = await open(onTestFinished);
    for (let n = 0; (await harness.runs()).length === 0; n++) await killAt(n, harness, () => submit([]));
    const { id, state } = await harness.onlyRun();
    expect(state).toBe('preparing');
    const remove = () => harness.expunge(['runs', 'remove', id, '--yes'], { env: ana });
    const colleague = () => submit([], bob);
    const refused = await meanwhile(harness, colleague, remove);
    expect(refused.stderr).toContain('is running');
    expect(refused).toMatchObject({ code: 4 });
    expect(await harness.onlyRun()).toMatchObject({ id, state: 'running', createdBy: 'Bob' });
    expect(await harness.redis.exists(keys.manifest(id, 0), keys.ledger(id, 0))).toBe(2);
    await harness.expunge(['cancel', id, '--yes']);
    expect(await meanwhile(harness, async () => {}, remove)).toMatchObject({ code: 0 }); // nobody changed it
    expect(await harness.runs()).toEqual([]);
  });
});

describe('none lifts a rule of an earlier command', () => {
  test.each([
    ['--max-duration', '1h', 'maxActiveMs', 0],
    ['--stop-at', stopAt, 'stopAt', 0],
    ['--start-at', startAt, 'startAt', 0],
    ['--grace', '1h', 'graceMs', 0],
    ['--max-failures', '2', 'maxFailures', ''],
    ['--max-deletes', '4', 'maxDeletes', null],
  ] as const)('%s', async (flag, value, field, lifted) => {
    const { harness, submit } = await open(onTestFinished);
    await submit([flag, value]);
    const first = await harness.onlyRun();
    const kept = await submit([]);
    expect(kept.stderr).toContain('(from the first command)');
    expect((await harness.onlyRun())[field]).toEqual(first[field]);
    const again = await submit([flag, 'none']);
    expect(again).toMatchObject({ code: 0 });
    expect(again.stderr).not.toContain('(from the first command)');
    const run = await harness.onlyRun();
    expect(run[field]).toEqual(lifted);
    expect(await changesOf(harness, run)).toMatchObject([{ action: flag.slice(2), to: 'none', who: 'ana' }]);
  });
});

const everyRule = [
  ...['--rate', '5/s', '--window', '22:00-06:00', '--canary', '1,2', '--max-deletes', '4'],
  ...['--max-failures', '7', '--on-status', '404=failed', '--expect-absent', '--stop-at', stopAt],
  ...['--start-at', startAt, '--grace', '3h', '--max-duration', '1h', '--keep', '2h'],
];

/** What a run obeys where it was made with `everyRule`. */
const obeyed: Partial<Run> = {
  rate: [{ count: 5, perMs: 1_000 }],
  window: '22:00-06:00',
  canaryOf: '1,2',
  maxDeletes: 4,
  maxFailures: '7',
  onStatus: '404=failed',
  expectAbsent: true,
  graceMs: 10_800_000,
  startAt: Date.parse(startAt),
  startsAt: Date.parse(startAt),
  stopAt: Date.parse(stopAt),
  maxActiveMs: 3_600_000,
  keepMs: 7_200_000,
};

/** The rules that a run would not obey if somebody started it now; none of one that nobody can start. */
function missingRules(run: Run | undefined): string[] {
  if (run === undefined || run.state === 'preparing') return [];
  const names = Object.keys(obeyed) as (keyof Run)[];
  return names.filter((name) => JSON.stringify(run[name]) !== JSON.stringify(obeyed[name]));
}

const changing = ['eval', 'evalsha', 'hset', 'set', 'zadd', 'sadd', 'expungeSteer'];

/** Runs expunge with connections that end at its `n`th command to Redis, as if it were killed there. Returns whether it came that far. */
async function killAt(n: number, { redis }: Harness, command: () => Promise<unknown>): Promise<boolean> {
  let sentCount = 0;
  const real = Redis.prototype.sendCommand;
  const spy = vi.spyOn(Redis.prototype, 'sendCommand').mockImplementation(function (this: Redis, sent, stream) {
    if (this === redis || !changing.includes(sent.name) || sentCount++ < n) return real.call(this, sent, stream);
    sent.reject(new Error('killed'));
    return sent.promise;
  });
  try {
    await command();
  } finally {
    spy.mockRestore();
  }
  return sentCount > n;
}

describe('a producer that is killed at any point leaves no run that can be started with a rule missing', () => {
  test('of a list', async () => {
    const { harness, submit } = await open(onTestFinished);
    const states = new Set<string | undefined>();
    for (let n = 0; ; n++) {
      const wasKilled = await killAt(n, harness, () => submit(everyRule));
      const [run] = await harness.runs();
      states.add(run?.state);
      expect(missingRules(run), `killed at command ${n}`).toEqual([]);
      if (run?.state === 'running' || !wasKilled) break;
      if (run) await removeRun(harness.redis, run);
    }
    expect([...states]).toEqual(expect.arrayContaining(['preparing', 'planned', 'running']));
  });

  test('of a retry, which the retried run names before it can be started', async () => {
    const { harness, submit } = await open(onTestFinished);
    await submit([]);
    const first = await harness.onlyRun();
    await harness.expunge(['cancel', first.id, '--yes']);
    const states = new Set<string | undefined>();
    for (let n = 0; ; n++) {
      const retry = ['retry', first.id, '--detach', '--yes', ...everyRule];
      const wasKilled = await killAt(n, harness, () => harness.expunge(retry, { env: ana }));
      const run = (await harness.runs()).find(({ retryOf }) => retryOf === first.id);
      states.add(run?.state);
      expect(missingRules(run), `killed at command ${n}`).toEqual([]);
      const { retriedBy } = (await harness.runs()).find(({ id }) => id === first.id)!;
      if (run && run.state !== 'preparing') expect(retriedBy, `killed at command ${n}`).toContain(run.id);
      if (run?.state === 'running' || !wasKilled) break;
      if (run) await removeRun(harness.redis, run);
    }
    expect([...states]).toEqual(expect.arrayContaining(['preparing', 'planned', 'running']));
  });

  test('of a plan, which the run names before it can be started', async () => {
    const { harness, list } = await open(onTestFinished);
    const plan = await harness.plan([list, '--resource', 'annotations', '--approve-by', 'bob'], { env: ana });
    const states = new Set<string | undefined>();
    for (let twice = 0; ; twice++) {
      const n = Math.floor(twice / 2); // once the plan is decided, there is a command fewer
      const apply = () => harness.expunge(['apply', plan, '--yes', '--detach'], { env: bob });
      const wasKilled = await killAt(n, harness, apply);
      const [run] = await harness.runs();
      states.add(run?.state);
      if (run && run.state !== 'preparing') {
        expect(run, `killed at command ${n}`).toMatchObject({ plan, approver: 'bob' });
        expect((await readKeptPlan(harness.redis, plan))?.decision, `killed at command ${n}`).toMatchObject({
          run: run.id,
        });
        expect((await readAudit(harness.redis, run)).map(({ action }) => action)).toContain('approve');
      }
      if (run?.state === 'running' || !wasKilled) break;
    }
    expect([...states]).toEqual(expect.arrayContaining(['preparing', 'planned', 'running']));
    expect(await harness.runs()).toHaveLength(1);
  });

  test('and this would be seen: a record without its --stop-at is one with a rule missing', async () => {
    const { harness, submit } = await open(onTestFinished);
    await submit(everyRule);
    const run = await harness.onlyRun();
    expect(missingRules(run)).toEqual([]);
    await harness.redis.hdel(keys.run(run.id), 'stopAt');
    expect(missingRules(await harness.onlyRun())).toEqual(['stopAt']);
  });
});
