import { ExpungeError } from '../errors.ts';
import type { AuditEntry } from '../ledger/audit.ts';
import {
  decidePlan,
  dropPlanFiles,
  type KeptPlan,
  listKeptPlans,
  readKeptPlan,
  removeWaiting,
} from '../ledger/kept-plans.ts';
import { type Run, readRunAgain } from '../ledger/run.ts';
import { openRunIndex } from '../lookup/run-index.ts';
import { isSamePerson } from '../model/person.ts';
import { mayAct, type Role } from '../model/role.ts';
import type { Reach } from '../model/target.ts';
import type { Advice } from '../model/to-type.ts';
import type { RedisClient } from '../redis/client.ts';
import type { By } from './action.ts';
import type { AppliedPlan } from './applied-plan.ts';
import { actionOfPlan, checkPlanned } from './apply-plan.ts';
import {
  explainedByDecision,
  isBegun,
  noteOf,
  planClock,
  planFacts,
  readShown,
  refuseLostDecision,
  requireWaiting,
  undecidable,
  unknownPlan,
} from './kept-plan.ts';
import { type PlanFiles, readKeptText, withPlanFiles } from './kept-plan-files.ts';
import type { ListAction } from './list-action.ts';
import type { PlanOperations } from './operations.ts';
import { withUpload } from './read-list.ts';
import { parsePlan, type SealedPlan } from './sealed-plan.ts';
import type { Session } from './session.ts';
import { startList } from './start-list.ts';
import { readRunContext } from './take-snapshot.ts';

/** Actions on the plans in the Redis of this session, with everything that its login allows: the role admin. */
export function localPlans(session: Session): PlanOperations {
  const { redis } = session;
  const known = async (id: string) => {
    const kept = await readKeptPlan(redis, id);
    if (kept === null) throw unknownPlan(id);
    return kept;
  };
  return {
    list: async () => (await listPlans(session, null)).map((plan) => planFacts(plan, Date.now())),
    async show(id) {
      return { ...(await readShown(redis, await known(id))), protected_host: null };
    },
    async apply(id, action) {
      const made = await applyKeptPlan(session, action, await known(id));
      const run = made.run.detached ? await readRunAgain(redis, made.run.id) : made.run; // a command starts the run that it made, or not at all
      return { ...made, run, context: await readRunContext(redis, run) };
    },
    refuse: async (id, by) => planFacts(await refuseKeptPlan(session, await known(id), by), Date.now()),
    withdraw: async (id, { who }) => withdrawPlan(session, await known(id), { name: who, role: 'admin' }),
  };
}

/** The plans in the inboxes of the targets within reach, the oldest first. */
export async function listPlans({ redis }: Pick<Session, 'redis'>, reach: Reach): Promise<KeptPlan[]> {
  return listKeptPlans(redis, (await openRunIndex(redis).read(reach)).targets);
}

/** The plan that is carried out: the one that was kept, or one of the same ids with other rules. */
type Seal = (planned: SealedPlan, files: PlanFiles) => Promise<SealedPlan>;

/**
 * Makes the run of a kept plan, and leaves it to the workers if the action is detached. Its list is read again, so that everything that differs from
 * the plan is found. Throws GUARD for a plan that was decided or has expired, that another person has to apply, or that no longer matches; by then
 * nothing was sent. Repeating it completes the run that the same person has begun.
 */
export async function applyKeptPlan(
  session: Session,
  given: ListAction,
  kept: KeptPlan,
  seal: Seal = async (planned) => planned,
): Promise<{ run: Run; warnings: Advice[] }> {
  const { redis } = session;
  await refuseDecided(redis, kept, given.by);
  await refuseLostDecision(redis, kept);
  let isDecided = false; // by this call
  const made = await withPlanFiles(redis, given.config.stateDir, kept, async (files) => {
    const decide = async (run: string) => {
      await decideOnce(redis, kept, 'applied', given.by, run);
      isDecided = true;
    };
    const planned = parsePlan(await readKeptText(redis, kept.id, 'plan'));
    const applied: AppliedPlan = { id: kept.id, plan: await seal(planned, files), decide };
    const { action, target } = actionOfPlan(given, applied);
    return withUpload(
      action.config,
      { folder: files.folder, path: files.list, isPiped: false, isNew: false },
      (list) => {
        checkPlanned(action, applied, list);
        return startList(session, action, { target, list, retries: null, applied });
      },
    );
  }).catch((error) => {
    if (isDecided) throw error;
    return explainedByDecision(redis, kept, error);
  });
  await decideOnce(redis, kept, 'applied', given.by, made.run.id); // a run that had ended was not written
  await dropPlanFiles(redis, kept);
  return made;
}

/** Refuses a kept plan for good. Throws USAGE without a reason, and GUARD if the plan does not wait any more. Repeating it is harmless. */
export async function refuseKeptPlan({ redis }: Pick<Session, 'redis'>, kept: KeptPlan, by: By): Promise<KeptPlan> {
  if (by.reason === '')
    throw new ExpungeError('USAGE', 'expected a reason, which the planner reads; got none', {
      next: (toType) => `say why: ${toType('plans refuse', kept.id, '--reason', '…')}`,
    });
  return decideOnce(redis, kept, 'refused', by, '');
}

/**
 * Removes a plan and its list. Throws GUARD for a plan of another person, unless the role of the person is enough to decide about it, and for a plan
 * that does not wait any more: the decision about it stays known.
 */
export async function withdrawPlan(
  { redis }: Pick<Session, 'redis'>,
  kept: KeptPlan,
  { name: who, role }: { name: string; role: Role },
): Promise<void> {
  if (!mayAct(role, 'operate') && !isSamePerson(kept.by, who))
    throw new ExpungeError('GUARD', `plan ${kept.id} belongs to ${kept.by}, not to ${who}; nothing was removed`, {
      next: `let ${kept.by}, or anyone with the role operate, withdraw it`,
    });
  await requireWaiting(redis, kept);
  const after = await removeWaiting(redis, kept.id, kept.isDraft ? null : withdrawal(kept, who));
  if (after !== null) throw undecidable(after, await planClock(redis, after)) ?? unknownPlan(kept.id);
}

function withdrawal({ id: plan, by: planned_by }: KeptPlan, who: string): AuditEntry {
  return { at: Date.now(), action: 'withdraw_plan', by: 'operator', who, reason: '', plan, planned_by, run: '' };
}

/** Throws GUARD for a plan that does not wait, unless the same person has begun to apply it. */
async function refuseDecided(redis: RedisClient, kept: KeptPlan, { who }: By): Promise<void> {
  if (kept.decision !== null && isSamePerson(kept.decision.who, who) && (await isBegun(redis, kept))) return;
  await requireWaiting(redis, kept);
}

/** Decides about a plan. Throws GUARD if it is decided otherwise, also by another person in the same way. */
async function decideOnce(
  redis: RedisClient,
  kept: KeptPlan,
  state: 'applied' | 'refused',
  { who, reason }: By,
  run: string,
): Promise<KeptPlan> {
  const now = await planClock(redis, kept);
  const after = await decidePlan(redis, kept.id, state, { who, at: now, reason, run }, noteOf);
  if (after === null) throw unknownPlan(kept.id);
  const { decision } = after;
  if (after.state === state && decision!.run === run && isSamePerson(decision!.who, who)) return after;
  throw undecidable(after, now) ?? unknownPlan(kept.id);
}
