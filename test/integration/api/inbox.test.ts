import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { readAudit, readTargetAudit } from '../../../src/ledger/audit.ts';
import { noteTarget } from '../../../src/ledger/known-targets.ts';
import { readEvents } from '../../../src/ledger/outbox.ts';
import { keys } from '../../../src/redis/keys.ts';
import { inboxIds, type Name, openInbox, type Way, wayNames } from '../../support/inbox.ts';
import { sized } from '../../support/size.ts';

test.each(wayNames)(
  'a plan that waits is listed, and is deleted by the workers once another person approves it: the trail names both, through %s',
  async (name) => {
    const { ways, harness, redis, kept, sent } = await openInbox();
    const way = ways[name]!;
    const planned = await way.plan('ana', 'ben');
    expect(planned.isDone, planned.words).toBe(true);
    expect(await way.list('ben')).toMatch(new RegExp(`${planned.id}.*ana`, 's'));
    expect([await harness.runs(), sent()]).toEqual([[], 0]);
    const approved = await way.approve('ben', planned.id);
    expect(approved.isDone, approved.words).toBe(true);
    const run = await harness.onlyRun();
    expect(run).toMatchObject({ createdBy: expect.stringMatching(/^ben/), detached: true, approver: 'ben', ids: 6 });
    const entry = (await readAudit(redis, run)).find(({ action }) => action === 'approve');
    expect(entry).toMatchObject({ who: expect.stringMatching(/^ben/), planned_by: expect.stringMatching(/^ana/) });
    expect(await kept(planned.id)).toMatchObject({ state: 'applied', decision: { run: run.id } });
    expect(await way.list('ben')).not.toContain(planned.id);
    expect(await redis.exists(keys.planFiles(harness.target.fp, planned.id))).toBe(0);
    await harness.worker();
    expect((await harness.runIs('completed', ({ state }) => state === 'completed')).counts.deleted).toBe(6);
    const trail = (await readTargetAudit(redis, harness.target.fp)).map(({ action, who }) => [action, who]);
    expect(trail).toEqual([
      ['plan', expect.stringMatching(/^ana/)],
      ['apply_plan', expect.stringMatching(/^ben/)],
    ]);
    const events = await readEvents(redis, harness.target.fp, 0, 100);
    const plans = events.map(({ event }) => event).filter(({ type }) => type.startsWith('plan.'));
    expect(plans.map(({ type }) => type)).toEqual(['plan.waiting', 'plan.applied']);
    expect(plans[0]!.text).toMatch(
      /^Plan \S+ of ana\S* to delete 6 ids on .* waits for ben until .*: OPS-77\. See it: /,
    );
  },
);

// What a command does over a server is in over-server.test.ts.
describe('a plan that waits, beside Redis as through the API', () => {
  let inbox: Awaited<ReturnType<typeof openInbox>>;
  const tasks: (() => Promise<void>)[] = [];
  const both = () => Object.entries(inbox.ways).filter(([name]) => name !== 'the command with --server');

  beforeAll(async () => {
    inbox = await openInbox({}, (task) => tasks.push(task));
  });

  afterAll(async () => {
    for (const task of tasks.toReversed()) await task();
  });

  /** Makes a plan each way and does something with it, which must make no run. */
  async function eachWay(
    approver: string | undefined,
    planner: Name,
    body: (way: Way, planned: Awaited<ReturnType<Way['plan']>>) => Promise<unknown>,
  ) {
    const runs = (await inbox.harness.runs()).length;
    for (const [, way] of both()) await body(way, await way.plan(planner, approver));
    expect([(await inbox.harness.runs()).length, inbox.sent()]).toEqual([runs, 0]);
  }

  test.each([
    ['its planner', 'ben', 'ben', 'ben', 'expected someone other than the planner'],
    ['somebody else', 'ana', 'ben', 'carl', 'only ben may apply this plan of ana'],
    [
      'the planner, whatever their role',
      'dora',
      'role:operate',
      'dora',
      'only someone with the role operate may apply',
    ],
  ] as const)('is not approved by %s', async (_, planner, approver, who, words) => {
    await eachWay(approver, planner, async (way, planned) => {
      const refused = planned.isDone ? await way.approve(who, planned.id) : planned;
      expect([refused.code, refused.words]).toEqual([
        planned.isDone ? 'guard' : 'usage',
        expect.stringContaining(words),
      ]);
    });
  });

  test('is not approved once it was refused, and says by whom and why; nor is it refused twice', async () => {
    await eachWay(undefined, 'ana', async (way, { id }) => {
      const refused = await way.refuse('ben', id, 'wrong list');
      expect(refused.isDone, refused.words).toBe(true);
      for (const again of [await way.approve('carl', id), await way.refuse('carl', id, 'me too')]) {
        expect(again.code).toBe('guard');
        expect(again.words).toMatch(/ben\S* refused plan \S+ of ana\S* \(6 ids\) at .*: wrong list; nothing was sent/);
      }
      const events = await readEvents(inbox.redis, inbox.harness.target.fp, 0, 100);
      expect(events.at(-1)!.event).toMatchObject({
        type: 'plan.refused',
        text: expect.stringMatching(/was refused by ben\S*: wrong list$/),
      });
    });
  });

  test('is not approved once it has expired', async () => {
    await eachWay(undefined, 'ana', async (way, { id }) => {
      await inbox.expire(id);
      const late = await way.approve('ben', id);
      expect([late.code, late.words]).toEqual(['guard', expect.stringMatching(/expired at .*; nothing was sent/)]);
    });
  });

  test('is not applied if its list is damaged in Redis', async () => {
    await eachWay(undefined, 'ana', async (way, { id }) => {
      await inbox.redis.hset(keys.planFiles(inbox.harness.target.fp, id), 'list.0', 'nonsense');
      const refused = await way.approve('ben', id);
      expect([refused.code, refused.words]).toEqual(['guard', expect.stringContaining('damaged in Redis')]);
    });
  });

  test('is refused if another process of Redis has the plan, which may have lost that it was carried out', async () => {
    await eachWay(undefined, 'ana', async (way, { id }) => {
      const plan = (await inbox.kept(id))!;
      const server = { ...plan.server, process: 'an earlier one', isDurable: false };
      await inbox.redis.hset(keys.plans(inbox.harness.target.fp), id, JSON.stringify({ ...plan, server }));
      const late = await way.approve('ben', id);
      expect([late.code, late.words]).toEqual(['guard', expect.stringContaining('may have lost that someone applied')]);
    });
  });
});

describe('a plan that waits', () => {
  test.each(wayNames)(
    'makes exactly one run if two approve it at once, and the other one learns who was first, through %s',
    async (name) => {
      const { ways, harness, kept } = await openInbox();
      const way = ways[name]!;
      const { id } = await way.plan('ana', 'role:operate');
      const results = await Promise.all([way.approve('ben', id), way.approve('carl', id)]);
      const done = results.filter(({ isDone }) => isDone);
      expect(done, JSON.stringify(results)).toHaveLength(1);
      const other = results.find(({ isDone }) => !isDone)!;
      const { decision } = (await kept(id))!;
      const words = expect.stringContaining(`${decision!.who} applied plan ${id} of`);
      expect([other.code, other.words]).toEqual(['guard', words]);
      const made = { id: decision!.run, createdBy: decision!.who, approver: decision!.who, state: 'running' };
      expect(await harness.runs()).toMatchObject([made]);
    },
  );

  test('tells everyone who approves it at the same time who was first, whatever of it is gone by then', async () => {
    for (let i = 0; i < sized(2, 20); i++) {
      const { ways, kept } = await openInbox();
      const way = ways['the API']!;
      const { id } = await way.plan('ana');
      const people = ['ben', 'carl', 'ben', 'carl'] as const;
      const results = await Promise.all(people.map((who) => way.approve(who, id)));
      const late = results.filter(({ isDone }) => !isDone);
      const { decision } = (await kept(id))!;
      const first = new RegExp(`${decision!.who} applied plan ${id} of|run ${decision!.run} of these ids is preparing`);
      for (const { words } of late) expect(words).toMatch(first);
    }
  });

  test('is refused if the rules or the protected ids of whoever approves it have changed', async () => {
    const { ways, harness, sent } = await openInbox();
    const { id } = await ways['the command at Redis']!.plan('ana');
    const protect = harness.file('kept.txt', `${inboxIds[0]}\n`);
    const approve = (env: NodeJS.ProcessEnv) =>
      harness.expunge(['apply', id, '--confirm', '6', '--detach'], { env: { EXPUNGE_USER: 'ben', ...env } });
    for (const [env, words] of [
      [{ EXPUNGE_RATE: '9/s' }, '--rate 9/s instead of none'],
      [{ EXPUNGE_ACCOUNT: 'another' }, 'target'],
      [{ EXPUNGE_PROTECT: protect }, 'protected'],
    ] as const) {
      const refused = await approve(env);
      expect([refused.code, refused.stderr]).toEqual([4, expect.stringContaining('no longer matches the plan')]);
      expect(refused.stderr).toContain(words);
      expect(refused.stderr).toContain('nothing was sent');
    }
    expect([await harness.runs(), sent()]).toEqual([[], 0]);
    expect((await approve({})).code).toBe(0); // it waits on
  });

  test('is applied by any server, also when the one that made it is gone', async () => {
    const { ways, harness, server, token } = await openInbox();
    const { id } = await ways['the API']!.plan('ana');
    server.signal('SIGTERM');
    await server.ended;
    const worker = await harness.worker(['--http', '0'], { EXPUNGE_STATE_DIR: `${harness.folder}/another` });
    const url = /http:\/\/[\d.]+:\d+/.exec(worker.stdout + worker.stderr)![0];
    const body = JSON.stringify({ confirm: 6 });
    const headers = { authorization: `Bearer ${await token('operate')}`, 'content-type': 'application/json' };
    const answer = await fetch(`${url}/api/v1/plans/${id}/apply`, { method: 'POST', body, headers });
    expect(answer.status, await answer.clone().text()).toBe(201);
    await harness.runIs('completed', ({ state }) => state === 'completed');
  });

  test('is withdrawn by its planner or an operator, and by nobody else who may only plan', async () => {
    const { call, tokens, ways, kept } = await openInbox();
    const plans = [await ways['the API']!.plan('ana'), await ways['the API']!.plan('ben')];
    const withdraw = (who: 'ana' | 'ben', id: string) =>
      call(null, `/plans/${id}`, { method: 'DELETE', headers: { authorization: `Bearer ${tokens.get(who)}` } });
    expect((await withdraw('ana', plans[1]!.id)).body).toMatchObject({ status: 409, code: 'guard' });
    expect((await withdraw('ana', plans[0]!.id)).status).toBe(200);
    expect((await withdraw('ben', plans[1]!.id)).status).toBe(200);
    expect(await kept(plans[1]!.id)).toBeNull();
  });

  test('is one of a hundred at most for each target, and none is removed for another one', async () => {
    const { ways, harness, redis, kept } = await openInbox();
    const way = ways['the API']!;
    const { id } = await way.plan('ana');
    const plan = (await kept(id))!;
    const { fp } = harness.target;
    const others = Array.from({ length: 99 }, (_, n) => `${fp}-${n.toString(16).padStart(8, '0')}`);
    for (const [n, other] of others.entries())
      await redis.hset(keys.plans(fp), other, JSON.stringify({ ...plan, id: other, by: `planner-${n}` }));
    const refused = await way.plan('ana');
    expect([refused.code, refused.words]).toEqual(['usage', expect.stringContaining('at most 100 of 1,000 MB')]);
    expect(await redis.keys(`${keys.plans(fp)}:*`)).toEqual([keys.planFiles(fp, id)]);
    await way.refuse('ben', id, 'room');
    expect((await way.plan('ana')).isDone).toBe(true);
  });

  test('is left there by everybody who may only plan, and a role that may not apply is told so', async () => {
    const { call, tokens, harness, ways, atServer } = await openInbox();
    const send = (who: 'ana' | 'eve', path: string, options: object) =>
      call(null, path, {
        ...options,
        headers: { authorization: `Bearer ${tokens.get(who)}`, 'content-type': 'text/csv' },
      });
    const path = `/plans?target=${harness.target.fp}&resource=annotations`;
    const planned = await send('ana', path, { method: 'POST', raw: 'id\nw-000001\n' });
    expect(planned.body).toMatchObject({ waits: true, may_apply: false, planned_by: 'ana', state: 'waiting' });
    expect((await send('eve', path, { method: 'POST', raw: 'id\nw-000001\n' })).status).toBe(403);
    expect((await ways['the API']!.approve('ana', planned.body.plan)).code).toBe('forbidden');
    const args = ['run', 'old.csv', '--resource', 'annotations', '--detach', '--yes'];
    const run = await harness.expunge(args, { env: atServer('ana') });
    expect([run.code, run.stderr]).toEqual([
      5,
      expect.stringMatching(/role "plan", but .* requires "operate"(.|\n)*plan FILE/),
    ]);
    expect(await harness.runs()).toEqual([]);
  });

  test('is none while the person who sent a list confirms it at once', async () => {
    const { call, tokens, harness, redis } = await openInbox();
    await noteTarget(redis, harness.target, Date.now());
    const headers = { authorization: `Bearer ${tokens.get('ben')}`, 'content-type': 'text/csv' };
    const path = `/plans?target=${harness.target.fp}&resource=annotations`;
    const planned = await call(null, path, { method: 'POST', raw: 'id\nw-000001\n', headers });
    expect(planned.body).toMatchObject({ waits: false, may_apply: true });
    expect((await call('read', '/plans?all=true')).body.items).toEqual([]);
    expect(await readEvents(redis, harness.target.fp, 0, 100)).toEqual([]);
  });
});
