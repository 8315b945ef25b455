import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { readAudit } from '../../../src/ledger/audit.ts';
import { summaryIn } from '../../support/command.ts';
import { type AtEnd, openHarness } from '../../support/harness.ts';
import { until } from '../../support/processes.ts';

const ids = ['a-1', 'a-2', 'a-3'];
const objects = ids.map((id) => ({ resource: 'annotations' as const, id }));
const ana = { EXPUNGE_USER: 'ana' };
const ben = { EXPUNGE_USER: 'ben@laptop' };

/** A plan of three ids in plan.json. */
async function openPlan(atEnd: AtEnd, ...more: string[]) {
  const harness = await openHarness(atEnd, { objects });
  const list = harness.list(ids);
  const protect = harness.file('kept.txt', 'other\n');
  const made = await harness.expunge(
    ['plan', list, '--resource', 'annotations', '--rate', '500/s', '--protect', protect, '-o', 'plan.json', ...more],
    { env: { ...ana, EXPUNGE_TOKEN: '', REDIS_URL: 'redis://127.0.0.1:1' } },
  );
  expect(made).toMatchObject({ code: 0 });
  const path = join(harness.folder, 'plan.json');
  const code = /its code is (\S+)/.exec(made.stderr)![1]!;
  const apply = (args: string[] = [], env: NodeJS.ProcessEnv = {}) =>
    harness.expunge(['apply', 'plan.json', '--code', code, '--json', ...args], { env });
  return { harness, made, path, code, list, protect, apply, sent: () => harness.sandbox.seen.length };
}

describe('a plan', () => {
  test('is a canonical file that only its owner reads, and is made with neither a token nor Redis', async ({
    onTestFinished,
  }) => {
    const { made, path, code, list, harness } = await openPlan(onTestFinished, '--reason', 'ticket 1', '--json');
    const text = readFileSync(path, 'utf8');
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(text).not.toContain(code);
    expect(text).not.toContain(harness.sandbox.token);
    const plan = JSON.parse(text);
    expect(Object.keys(plan)).toEqual(Object.keys(plan).sort());
    expect(plan).toMatchObject({
      planned_by: 'ana',
      approve_by: null,
      reason: 'ticket 1',
      target: { base_url: harness.sandbox.url, account: harness.target.account },
      input: [{ name: list, bytes: 12 }],
      ids: { rows: 3, annotations: 3, views: 0, first: 'annotations/a-1', last: 'annotations/a-3' },
      rules: { rate: '500/s', resource: 'annotations', canary: null },
      forecast: { requests: 3, seconds: 1 },
      protect: { ids: 1 },
    });
    expect(JSON.parse(made.stdout)).toMatchObject({ v: 1, type: 'sealed_plan', code, file: 'plan.json' });
  });

  test('is applied for its code, with its rules, as a run of the list whose audit trail names it', async ({
    onTestFinished,
  }) => {
    const { harness, apply, sent } = await openPlan(onTestFinished);
    const done = await apply(['--reason', 'agreed'], ben);
    expect([done.code, summaryIn(done)]).toMatchObject([0, { rows: 3, deleted: 3 }]);
    const run = await harness.onlyRun();
    expect(run).toMatchObject({ rate: [{ count: 500 }], plan: expect.stringMatching(/^[0-9a-f]{64}$/) });
    const trail = (await readAudit(harness.redis, run)).filter(({ action }) => action === 'apply');
    expect(trail).toEqual([
      expect.objectContaining({ who: 'ben@laptop', reason: 'agreed', planned_by: 'ana', plan: run.plan }),
    ]);
    expect(sent()).toBe(3);
  });

  test('that was applied is not applied again: it holds for one run', async ({ onTestFinished }) => {
    const { harness, apply, sent, list } = await openPlan(onTestFinished);
    await apply();
    const again = await apply();
    expect([again.code, again.stderr]).toEqual([4, expect.stringContaining('make a new plan')]);
    await harness.run([list, '--resource', 'annotations', '--yes', '--expect-absent']);
    expect((await apply()).code).toBe(4);
    expect(sent()).toBe(6);
  });

  test('that was applied is not applied again either once its run is removed from Redis', async ({
    onTestFinished,
  }) => {
    const { harness, apply, sent, list } = await openPlan(onTestFinished, '--approve-by', 'ben');
    await apply([], ben);
    const { id } = await harness.onlyRun();
    expect((await harness.expunge(['runs', 'remove', id, '--yes'])).code).toBe(0);
    expect(await harness.runs()).toEqual([]);
    const again = await apply([], ben);
    expect([again.code, again.stderr]).toEqual([4, expect.stringContaining(`run ${id} has carried out this plan`)]);
    await harness.run([list, '--resource', 'annotations', '--detach', '--yes']);
    expect((await apply(['--detach'], ben)).code).toBe(4);
    expect([sent(), await harness.onlyRun()]).toMatchObject([3, { plan: '' }]);
  });

  test('resumes its run when it is applied again before that has ended', async ({ onTestFinished }) => {
    const { harness, apply, code, sent } = await openPlan(onTestFinished);
    harness.sandbox.latencyMs = 1_000;
    const first = harness.start(['apply', 'plan.json', '--code', code], { EXPUNGE_MAX_CONCURRENCY: '1' });
    await until('it sends', () => sent() > 0);
    first.signal('SIGINT');
    expect((await first.ended).code).toBe(130);
    harness.sandbox.latencyMs = 0;
    const done = await apply();
    expect([done.code, summaryIn(done)]).toMatchObject([0, { deleted: 3 }]);
    expect(await harness.runs()).toHaveLength(1);
    const trail = await readAudit(harness.redis, await harness.onlyRun());
    expect(trail.filter(({ action }) => action === 'apply')).toHaveLength(1);
  });

  test('can be left to the workers', async ({ onTestFinished }) => {
    const { harness, apply } = await openPlan(onTestFinished);
    expect((await apply(['--detach'])).code).toBe(0);
    await harness.worker();
    await harness.runIs('completed', ({ state }) => state === 'completed');
  });

  test('asks for its code on a terminal', async ({ onTestFinished }) => {
    const { harness, code, sent } = await openPlan(onTestFinished);
    const typed = (text: string) =>
      harness.expunge(['apply', 'plan.json'], {
        typed: [
          ['Type the code', `${text}\r`],
          ['2 tries are left', `${text}\r`],
          ['1 try is left', `${text}\r`],
        ],
      });
    expect((await typed('AAAA-AAAA')).code).toBe(2);
    expect(sent()).toBe(0);
    expect((await typed(code.toLowerCase())).code).toBe(0);
    expect(sent()).toBe(3);
  });
});

type Opened = Awaited<ReturnType<typeof openPlan>>;
type Drift = [what: string, change: (plan: Opened) => NodeJS.ProcessEnv | undefined, code: number, words: string];

const drifts: Drift[] = [
  ['a file with other bytes and the same ids', ({ list }) => write(list, 'a-1\r\na-2\na-3\n'), 4, 'was changed'],
  ['other ids', ({ list }) => write(list, 'a-1\na-2\na-4\n'), 4, 'was changed'],
  ['other protected ids', ({ protect }) => write(protect, 'another\n'), 4, 'other protected ids'],
  ['a protected id of the list', ({ protect }) => write(protect, 'a-2\n'), 4, 'protected 1 instead of 0'],
  ['another account', () => ({ EXPUNGE_ACCOUNT: 'another' }), 4, 'target'],
  ['another base URL', () => ({ EXPUNGE_BASE_URL: 'http://127.0.0.1:9' }), 4, 'target'],
  ['no base URL', () => ({ EXPUNGE_BASE_URL: '' }), 2, '--base-url'],
  ['another rate', () => ({ EXPUNGE_RATE: '9/s' }), 4, '--rate 9/s instead of 500/s'],
  ['an answer that means something else', () => ({ EXPUNGE_ON_STATUS: '409=absent' }), 4, '--on-status'],
  ['a canary', () => ({ EXPUNGE_CANARY: '1' }), 4, '--canary'],
  ['an edited rate', (plan) => edit(plan, '500/s', '900/s'), 2, 'does not match this plan'],
  [
    'an edited approver',
    (plan) => edit(plan, '"approve_by":null', '"approve_by":"ana"'),
    2,
    'does not match this plan',
  ],
  ['a byte order mark', (plan) => edit(plan, '{', '\uFEFF{'), 2, 'this file is not one, or was edited'],
  [
    'a rate that stands twice',
    (plan) => edit(plan, '"rate":', '"rate":"9/s","rate":'),
    2,
    'this file is not one, or was edited',
  ],
  ['a space in the file', (plan) => edit(plan, ',"', ', "'), 2, 'this file is not one, or was edited'],
  [
    'half a file',
    (plan) => write(plan.path, readFileSync(plan.path, 'utf8').slice(0, 99)),
    2,
    'this file is not one, or was edited',
  ],
];

function write(path: string, text: string): undefined {
  writeFileSync(path, text);
}

function edit({ path }: Opened, from: string, to: string): undefined {
  const text = readFileSync(path, 'utf8');
  expect(text).toContain(from);
  return write(path, text.replace(from, to));
}

describe('a plan is refused, and nothing is sent, for', () => {
  test.for(drifts)('%s', async ([, change, code, words], { onTestFinished }) => {
    const plan = await openPlan(onTestFinished);
    const done = await plan.apply([], change(plan));
    expect([done.code, done.stderr]).toEqual([code, expect.stringContaining(words)]);
    expect([plan.sent(), await plan.harness.runs()]).toEqual([0, []]);
  });

  test('the code of another plan', async ({ onTestFinished }) => {
    const { harness, sent } = await openPlan(onTestFinished);
    const done = await harness.expunge(['apply', 'plan.json', '--code', 'AAAA-AAAA']);
    expect([done.code, sent()]).toEqual([2, 0]);
  });

  test('an unfinished run of the list with other rules', async ({ onTestFinished }) => {
    const { harness, list, apply, protect, sent } = await openPlan(onTestFinished);
    const others = ['--on-status', '409=absent', '--expect-absent', '--protect', protect, '--expect-unprotected'];
    await harness.run([list, '--resource', 'annotations', ...others, '--detach', '--yes']);
    const done = await apply(['--detach']);
    expect([done.code, done.stderr]).toEqual([4, expect.stringContaining('a different --on-status')]);
    expect([done.stderr, sent()]).toEqual([expect.stringContaining('a different --expect-absent'), 0]);
  });

  test('a list that comes through a pipe', async ({ onTestFinished }) => {
    const { harness } = await openPlan(onTestFinished);
    const done = await harness.expunge(['plan', '-', '--resource', 'views', '-o', 'p.json'], { input: 'v-1\n' });
    expect([done.code, done.stderr]).toEqual([2, expect.stringContaining('apply reads it again')]);
  });
});

describe('the file of a plan', () => {
  const made = ['--resource', 'annotations', '--rate'];

  test('is replaced by the next plan, which says that the one before cannot be applied', async ({ onTestFinished }) => {
    const { harness, code, list, apply } = await openPlan(onTestFinished);
    const again = await harness.expunge(['plan', list, ...made, '7/s', '-o', 'plan.json']);
    expect([again.code, again.stderr]).toEqual([
      0,
      expect.stringContaining(`It replaced the plan ${code}, which cannot be applied any more.`),
    ]);
    expect((await apply()).code).not.toBe(0);
  });

  test('is refused where another file would be lost, such as the list, before the list is read', async ({
    onTestFinished,
  }) => {
    const { harness, list } = await openPlan(onTestFinished);
    const refused = await harness.expunge(['plan', list, ...made, '7/s', '-o', list]);
    expect([refused.code, refused.stdout, refused.stderr]).toEqual([
      2,
      '',
      expect.stringContaining(`${list}: this file exists and is not a plan; it was not replaced`),
    ]);
    expect(readFileSync(list, 'utf8')).toBe('a-1\na-2\na-3\n');
  });

  test('may be there without anything in it, as mktemp makes it', async ({ onTestFinished }) => {
    const { harness, list } = await openPlan(onTestFinished);
    const empty = harness.file('empty', '');
    expect(await harness.expunge(['plan', list, ...made, '7/s', '-o', empty])).toMatchObject({ code: 0 });
  });
});

describe('a plan for somebody else to approve', () => {
  test('is applied by that person alone, who is recorded in the audit trail', async ({ onTestFinished }) => {
    const { harness, apply, sent } = await openPlan(onTestFinished, '--approve-by', 'Ben');
    for (const EXPUNGE_USER of ['ana', 'ana@elsewhere', 'eve']) {
      const refused = await apply([], { EXPUNGE_USER });
      expect([refused.code, refused.stderr]).toEqual([4, expect.stringContaining('only Ben may apply this plan')]);
    }
    expect(sent()).toBe(0);
    expect((await apply([], ben)).code).toBe(0);
    const trail = await readAudit(harness.redis, await harness.onlyRun());
    expect(trail).toContainEqual(expect.objectContaining({ action: 'approve', who: 'ben@laptop', planned_by: 'ana' }));
  });

  test('is not made for oneself', async ({ onTestFinished }) => {
    const { harness, list } = await openPlan(onTestFinished);
    const args = ['plan', list, '--resource', 'annotations', '-o', 'own.json', '--approve-by', 'ANA@other'];
    expect(await harness.expunge(args, { env: ana })).toMatchObject({ code: 2 });
  });
});
