import { describe, expect, test } from 'vitest';
import { readAudit } from '../../../src/ledger/audit.ts';
import { keys } from '../../../src/redis/keys.ts';
import { summaryIn } from '../../support/command.ts';
import { type AtEnd, openHarness } from '../../support/harness.ts';
import { until } from '../../support/processes.ts';

const ids = ['a-1', 'a-2', 'a-3'];
const objects = ids.map((id) => ({ resource: 'annotations' as const, id }));
const ana = { EXPUNGE_USER: 'ana' };
const ben = { EXPUNGE_USER: 'Ben' };
const kind = ['--resource', 'annotations'];

/** A plan of three ids that ana has made. `more`: variables of all commands. */
async function openPlan(atEnd: AtEnd, args: string[] = [], more: NodeJS.ProcessEnv = {}) {
  const harness = await openHarness(atEnd, { objects });
  const list = harness.list(ids);
  const protect = harness.file('kept.txt', 'other\n');
  const settings = { EXPUNGE_PROTECT: protect, ...more };
  const made = await harness.expunge(['plan', list, ...kind, '--rate', '500/s', '--json', ...args], {
    env: { ...settings, ...ana, EXPUNGE_TOKEN: '' },
  });
  expect(made, made.stderr).toMatchObject({ code: 0 });
  const plan = JSON.parse(made.stdout);
  const apply = (args: string[] = [], env: NodeJS.ProcessEnv = {}) =>
    harness.expunge(['apply', plan.plan, '--confirm', '3', '--json', ...args], { env: { ...settings, ...env } });
  return { harness, list, protect, settings, plan, apply, sent: () => harness.sandbox.seen.length };
}

describe('a plan', () => {
  test('is made without a token, and says what it holds', async ({ onTestFinished }) => {
    const { plan, harness, sent } = await openPlan(onTestFinished, ['--reason', 'ticket 1']);
    expect(plan).toMatchObject({
      v: 1,
      type: 'plan',
      planned_by: 'ana',
      approve_by: null,
      reason: 'ticket 1',
      target: harness.sandbox.url,
      account: harness.target.account,
      confirm: 3,
      rules: { rate: '500/s', resource: 'annotations', canary: null },
      requests: 3,
      protected_read: 1,
    });
    expect([sent(), await harness.runs()]).toEqual([0, []]);
  });

  test('is carried out here, with its rules, as a run whose audit trail names it', async ({ onTestFinished }) => {
    const { harness, plan, apply, sent } = await openPlan(onTestFinished);
    const done = await apply(['--reason', 'agreed'], ben);
    expect([done.code, summaryIn(done)], done.stderr).toMatchObject([0, { rows: 3, deleted: 3 }]);
    expect(harness.outcomes(summaryIn(done).run)).toHaveLength(3);
    const run = await harness.onlyRun();
    expect(run).toMatchObject({ rate: [{ count: 500 }], plan: plan.plan, detached: false });
    const trail = (await readAudit(harness.redis, run)).filter(({ action }) => action === 'apply');
    expect(trail).toEqual([
      expect.objectContaining({ who: 'Ben', reason: 'agreed', planned_by: 'ana', plan: plan.plan }),
    ]);
    expect(sent()).toBe(3);
    expect(await harness.redis.exists(keys.planFiles(harness.target.fp, plan.plan))).toBe(0);
  });

  test('waits in a private Redis that is stopped meanwhile', async ({ onTestFinished }) => {
    const { harness, apply, sent } = await openPlan(onTestFinished, [], { REDIS_URL: '' });
    expect((await harness.expunge(['redis', 'stop'], { env: { REDIS_URL: '' } })).code).toBe(0);
    const done = await apply([], ben);
    expect([done.code, summaryIn(done), sent()], done.stderr).toMatchObject([0, { deleted: 3 }, 3]);
    await harness.expunge(['redis', 'stop'], { env: { REDIS_URL: '' } });
  });

  test('that was applied is not applied again: it holds for one run, even one that is removed from Redis', async ({
    onTestFinished,
  }) => {
    const { harness, apply, sent, list } = await openPlan(onTestFinished, ['--approve-by', 'ben']);
    await apply([], ben);
    const { id } = await harness.onlyRun();
    const again = async () => {
      for (const more of [[], ['--detach']]) {
        const refused = await apply(more, ben);
        expect([refused.code, refused.stderr]).toEqual([4, expect.stringContaining(`as run ${id}; no other run`)]);
      }
    };
    await again();
    expect((await harness.expunge(['runs', 'remove', id, '--yes'])).code).toBe(0);
    expect(await harness.runs()).toEqual([]);
    await again();
    await harness.run([list, ...kind, '--detach', '--yes']);
    await again();
    expect([sent(), await harness.onlyRun()]).toMatchObject([3, { plan: '' }]);
  });

  test('is not applied if its list was run since', async ({ onTestFinished }) => {
    const { harness, apply, sent, list } = await openPlan(onTestFinished);
    expect((await harness.run([list, ...kind, '--yes'])).code).toBe(0);
    const late = await apply([], ben);
    expect([late.code, late.stderr]).toEqual([4, expect.stringContaining('of this list, made since the plan')]);
    expect(sent()).toBe(3);
  });

  test('whose ids were not there is to be made again, if that is expected', async ({ onTestFinished }) => {
    const { harness, list, apply } = await openPlan(onTestFinished);
    await harness.run([list, ...kind, '--yes']);
    await harness.redis.del(keys.list((await harness.onlyRun()).list)); // so that nobody knows that its list was run
    const { code, stderr, stdout } = await apply();
    expect([code, stderr]).toEqual([3, expect.stringContaining('gone: expunge plan FILE --expect-absent')]);
    const told = await harness.expunge(['status', summaryIn({ stdout }).run]);
    expect(told.stdout).toContain('may be gone: expunge plan FILE --expect-absent');
  });

  test('resumes its run when the same person applies it again before that has ended', async ({ onTestFinished }) => {
    const { harness, apply, plan, settings, sent } = await openPlan(onTestFinished);
    harness.sandbox.latencyMs = 1_000;
    const slow = { ...settings, ...ben, EXPUNGE_MAX_CONCURRENCY: '1' };
    const first = harness.start(['apply', plan.plan, '--confirm', '3'], slow);
    await until('it sends', () => sent() > 0);
    first.signal('SIGINT');
    expect((await first.ended).code).toBe(130);
    harness.sandbox.latencyMs = 0;
    const before = sent();
    const other = await apply([], { EXPUNGE_USER: 'carl' });
    expect([other.code, other.stderr]).toEqual([4, expect.stringContaining('Ben applied plan')]);
    const wrong = await apply([], ben); // it names the number of all ids
    expect([wrong.code, wrong.stderr]).toEqual([2, expect.stringMatching(/left of run .* would be deleted/)]);
    expect(sent()).toBe(before);
    const done = await harness.expunge(['apply', plan.plan, '--yes', '--json'], { env: { ...settings, ...ben } });
    expect([done.code, summaryIn(done)], done.stderr).toMatchObject([0, { deleted: 3 }]);
    expect(await harness.runs()).toHaveLength(1);
    const trail = await readAudit(harness.redis, await harness.onlyRun());
    expect(trail.filter(({ action }) => action === 'apply')).toHaveLength(1);
  });

  test('resumes a run that its command never started', async ({ onTestFinished }) => {
    const { harness, apply, sent } = await openPlan(onTestFinished);
    expect((await apply([], { EXPUNGE_TOKEN: '', EXPUNGE_TOKEN_COMMAND: 'false' })).code).toBe(5);
    expect([sent(), await harness.onlyRun()]).toMatchObject([0, { state: 'planned' }]);
    const done = await apply();
    expect([done.code, summaryIn(done), sent()], done.stderr).toMatchObject([0, { deleted: 3 }, 3]);
    expect(await harness.runs()).toHaveLength(1);
  });

  test('resumes its run with what is protected and set by then', async ({ onTestFinished }) => {
    const { harness, apply, sent } = await openPlan(onTestFinished);
    expect((await apply([], { EXPUNGE_TOKEN: '', EXPUNGE_TOKEN_COMMAND: 'false' })).code).toBe(5);
    harness.file('kept.txt', 'other\na-2\n');
    const refused = await apply();
    expect([refused.code, refused.stderr]).toEqual([4, expect.stringContaining('a-2 of run')]);
    harness.file('kept.txt', 'other\n');
    const startAt = '2100-01-01T00:00:00Z';
    const command = harness.start(['apply', (await harness.onlyRun()).plan, '--yes', '--start-at', startAt]);
    await until('it starts', async () => (await harness.onlyRun()).state === 'running');
    command.signal('SIGINT');
    await command.ended;
    expect([sent(), (await harness.onlyRun()).startAt]).toEqual([0, Date.parse(startAt)]);
  });

  test('asks for its number of ids on a terminal', async ({ onTestFinished }) => {
    const { harness, plan, settings, sent } = await openPlan(onTestFinished);
    const typed = (text: string) =>
      harness.expunge(['apply', plan.plan.slice(-8)], {
        env: settings,
        typed: [
          ['Type 3', `${text}\r`],
          ['2 tries are left', `${text}\r`],
          ['1 try is left', `${text}\r`],
        ],
      });
    expect((await typed('4')).code).toBe(2);
    expect(sent()).toBe(0);
    expect((await typed('3')).code).toBe(0);
    expect(sent()).toBe(3);
  });
});

type Opened = Awaited<ReturnType<typeof openPlan>>;
type Drift = [what: string, change: (plan: Opened) => NodeJS.ProcessEnv | undefined, code: number, words: string];

const drifts: Drift[] = [
  ['other protected ids', ({ harness }) => void harness.file('kept.txt', 'another\n'), 4, 'other protected ids'],
  [
    'a protected id of the list',
    ({ harness }) => void harness.file('kept.txt', 'a-2\n'),
    4,
    'protected 1 instead of 0',
  ],
  ['another account', () => ({ EXPUNGE_ACCOUNT: 'another' }), 4, 'target'],
  ['another base URL', () => ({ EXPUNGE_BASE_URL: 'http://127.0.0.1:9' }), 4, 'target'],
  ['no base URL', () => ({ EXPUNGE_BASE_URL: '' }), 2, '--base-url'],
  ['another rate', () => ({ EXPUNGE_RATE: '9/s' }), 4, '--rate 9/s instead of 500/s'],
  ['an answer that means something else', () => ({ EXPUNGE_ON_STATUS: '409=absent' }), 4, '--on-status'],
  ['a canary', () => ({ EXPUNGE_CANARY: '1' }), 4, '--canary'],
];

describe('a plan is refused, and nothing is sent, for', () => {
  test.for(drifts)('%s', async ([, change, code, words], { onTestFinished }) => {
    const plan = await openPlan(onTestFinished);
    const done = await plan.apply([], change(plan));
    expect([done.code, done.stderr]).toEqual([code, expect.stringContaining(words)]);
    expect([plan.sent(), await plan.harness.runs()]).toEqual([0, []]);
    plan.harness.file('kept.txt', 'other\n');
    expect(await plan.apply()).toMatchObject({ code: 0 }); // it waits on
  });

  test('the id of no plan', async ({ onTestFinished }) => {
    const { harness, sent } = await openPlan(onTestFinished);
    const done = await harness.expunge(['apply', '00000000', '--yes']);
    expect([done.code, sent(), done.stderr]).toEqual([2, 0, expect.stringContaining('Redis knows no plan "00000000"')]);
  });

  test('an unfinished run of the same ids', async ({ onTestFinished }) => {
    const { harness, list, apply, protect, sent } = await openPlan(onTestFinished);
    await harness.run([list, ...kind, '--protect', protect, '--expect-unprotected', '--detach', '--yes']);
    const { id } = await harness.onlyRun();
    for (const more of [[], ['--detach']]) {
      const done = await apply(more);
      expect([done.code, done.stderr]).toEqual([4, expect.stringContaining(`run ${id} of these ids is running`)]);
    }
    expect(sent()).toBe(0);
  });
});

test.for([
  ['a list that comes through a pipe', ['-'], 'the plan keeps it'],
  ['several lists', ['list.txt', 'kept.txt'], 'make a plan for each'],
  ['a file of protected ids', ['list.txt', '--protect', 'kept.txt'], 'set EXPUNGE_PROTECT here and where'],
] as const)('no plan is made of %s', async ([, args, words], { onTestFinished }) => {
  const { harness } = await openPlan(onTestFinished);
  const done = await harness.expunge(['plan', ...args, ...kind], { input: 'v-1\n' });
  expect([done.code, done.stderr]).toEqual([2, expect.stringContaining(words)]);
});

describe('a plan for somebody else to approve', () => {
  test('is applied by that person alone, who is recorded in the audit trail', async ({ onTestFinished }) => {
    const { harness, apply, sent } = await openPlan(onTestFinished, ['--approve-by', 'Ben']);
    for (const EXPUNGE_USER of ['ana', 'ana@elsewhere', 'eve']) {
      const refused = await apply([], { EXPUNGE_USER });
      expect([refused.code, refused.stderr]).toEqual([4, expect.stringContaining('only Ben may apply this plan')]);
    }
    expect(sent()).toBe(0);
    expect((await apply([], ben)).code).toBe(0);
    const trail = await readAudit(harness.redis, await harness.onlyRun());
    expect(trail).toContainEqual(expect.objectContaining({ action: 'approve', who: 'Ben', planned_by: 'ana' }));
  });
});
