import { describe, expect, test } from 'vitest';
import { readTargetAudit } from '../../../src/ledger/audit.ts';
import { newPlanId, writePlanFileParts } from '../../../src/ledger/kept-plans.ts';
import { keys } from '../../../src/redis/keys.ts';
import { inboxIds, type Name, openInbox } from '../../support/inbox.ts';

// No one undoes a decision of another person, approves other rules than theirs, or takes the room of others.

type Inbox = Awaited<ReturnType<typeof openInbox>>;

const withdraw = ({ call, tokens }: Inbox, who: Name, id: string) =>
  call(null, `/plans/${id}`, { method: 'DELETE', headers: { authorization: `Bearer ${tokens.get(who)}` } });

const applyBy = ({ call, tokens }: Inbox, who: Name, id: string, body: object) =>
  call(null, `/plans/${id}/apply`, { method: 'POST', body, headers: { authorization: `Bearer ${tokens.get(who)}` } });

const send = ({ call, tokens, harness }: Inbox, who: Name) =>
  call(null, `/plans?target=${harness.target.fp}&resource=annotations`, {
    method: 'POST',
    raw: `id\n${inboxIds.join('\n')}\n`,
    headers: { authorization: `Bearer ${tokens.get(who)}`, 'content-type': 'text/csv' },
  });

describe('a decision about a plan', () => {
  test('stays known: neither the planner nor an operator can withdraw the plan after it', async () => {
    const inbox = await openInbox();
    const { ways, kept, harness, redis } = inbox;
    const way = ways['the API']!;
    const [refused, applied] = [await way.plan('ana'), await way.plan('ana')];
    await way.refuse('ben', refused.id, 'wrong list');
    expect((await way.approve('ben', applied.id)).isDone).toBe(true);
    for (const [who, id] of [
      ['ana', refused.id],
      ['carl', refused.id],
      ['ana', applied.id],
    ] as const) {
      const answer = await withdraw(inbox, who, id);
      expect(answer.body, `${who} ${id}`).toMatchObject({ status: 409, code: 'guard' });
    }
    expect([(await kept(refused.id))?.state, (await kept(applied.id))?.state]).toEqual(['refused', 'applied']);
    const trail = await readTargetAudit(redis, harness.target.fp);
    expect(trail.map(({ action }) => action)).not.toContain('withdraw_plan');
  });
});

describe('whoever approves a plan of another person', () => {
  test('approves it with its rules, and no others', async () => {
    const inbox = await openInbox();
    const { ways, harness, kept } = inbox;
    const { id } = await ways['the API']!.plan('ana');
    const other = await applyBy(inbox, 'ben', id, { confirm: inboxIds.length, rate: '9/s' });
    expect(other.body).toMatchObject({ code: 'conflict', detail: 'ben approves the plan of ana as it is' });
    expect([await harness.runs(), (await kept(id))!.state]).toEqual([[], 'waiting']);
    const own = (await send(inbox, 'ben')).body.plan;
    expect((await applyBy(inbox, 'ben', own, { confirm: inboxIds.length, rate: '9/s' })).status).toBe(201);
  });
});

describe('the room of the inbox', () => {
  test('is not taken by one person alone, nor from those who confirm their lists at once, nor by them', async () => {
    const inbox = await openInbox();
    const { ways, kept, redis, harness } = inbox;
    const { fp } = harness.target;
    const fill = async (id: string, by: (n: number) => string) => {
      const plan = (await kept(id))!;
      const rows = Array.from({ length: 99 }, () => newPlanId(fp)).map((other, n) => [
        other,
        JSON.stringify({ ...plan, id: other, by: by(n) }),
      ]);
      await redis.hset(keys.plans(fp), ...rows.flat());
    };
    const way = ways['the API']!;
    const { id } = await way.plan('ana');
    await fill(id, (n) => (n < 50 ? 'ana' : `planner-${n}`));
    await redis.hdel(keys.plans(fp), (await redis.hkeys(keys.plans(fp))).find((other) => other !== id)!);
    const refused = await way.plan('ana');
    expect([refused.code, refused.words]).toEqual([
      'usage',
      expect.stringMatching(/of them of ana .* 50 of one person/),
    ]);
    expect((await way.plan('ben')).isDone).toBe(true);
    const draft = await send(inbox, 'ben');
    expect(draft.status, draft.text).toBe(201);
    await fill(draft.body.plan, (n) => `person-${n}`);
    expect((await send(inbox, 'ben')).body.detail).toContain('100 plans that no one has confirmed');
    await way.refuse('ben', id, 'room');
    expect((await way.plan('carl')).isDone).toBe(true);
  });

  test('is free again after an hour if a plan was not kept completely, however slowly its list came', async () => {
    const { harness, redis } = await openInbox();
    const id = newPlanId(harness.target.fp);
    const key = keys.planFiles(harness.target.fp, id);
    async function* parts() {
      yield Buffer.from('first');
      await redis.del(key); // as if it had expired
      yield Buffer.from('last');
    }
    expect(await writePlanFileParts(redis, id, 'list', parts())).toBe(9);
    expect(await redis.ttl(key)).toBeGreaterThan(3_000);
  });
});
