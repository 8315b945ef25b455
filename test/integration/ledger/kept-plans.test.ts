import { expect, test } from 'vitest';
import { readTargetAudit } from '../../../src/ledger/audit.ts';
import { decidePlan, enterPlan, type KeptPlan, newPlanId, readKeptPlan } from '../../../src/ledger/kept-plans.ts';
import { readEvents } from '../../../src/ledger/outbox.ts';
import { targetOf } from '../../../src/model/target.ts';
import { noteOf } from '../../../src/operations/kept-plan.ts';
import { keys } from '../../../src/redis/keys.ts';
import { readServerIdentity } from '../../../src/redis/server-identity.ts';
import { redisDuringTests } from '../../support/redis.ts';

const redis = await redisDuringTests();

test('a plan takes one of many decisions at once, with one event and one entry in the audit trail', async () => {
  const target = targetOf('https://plans.example.com', String(Math.random()));
  const plan: KeptPlan = {
    id: newPlanId(target.fp),
    baseUrl: target.baseUrl,
    account: target.account,
    name: 'old.csv',
    by: 'ana',
    at: 1,
    reason: '',
    approver: null,
    ids: 1,
    bytes: 1,
    expiresAt: Date.now() + 60_000,
    isDraft: false,
    server: await readServerIdentity(redis, target.fp),
    state: 'waiting',
    decision: null,
  };
  await enterPlan(redis, plan, noteOf(plan));
  const decisions = Array.from({ length: 20 }, (_, n) => {
    const state = n % 2 === 0 ? 'applied' : 'refused';
    return decidePlan(redis, plan.id, state, { who: `p${n}`, at: n, reason: '', run: '' }, noteOf);
  });
  const seen = await Promise.all(decisions);
  const after = await readKeptPlan(redis, plan.id);
  for (const one of seen) expect(one).toEqual(after);
  expect(after).toMatchObject({ decision: { who: 'p0' } });
  expect(await readTargetAudit(redis, target.fp)).toHaveLength(2);
  expect((await readEvents(redis, target.fp, 0, 100)).map(({ event }) => event.type)).toEqual([
    'plan.waiting',
    'plan.applied',
  ]);
  await redis.unlink(
    keys.plans(target.fp),
    keys.targetAudit(target.fp),
    keys.outbox(target.fp),
    keys.outboxEvents(target.fp),
  );
});
