import { ExpungeError } from '../errors.ts';
import { isoTime, plural } from '../format.ts';
import { enterPlan, forgetPlan, type KeptPlan, newPlanId, type PlanNote, readKeptPlan } from '../ledger/kept-plans.ts';
import { noteTarget } from '../ledger/known-targets.ts';
import { refuseUnprotected } from '../ledger/protection.ts';
import { readRun } from '../ledger/run.ts';
import { sumIds } from '../model/resource.ts';
import { type Target, targetOf } from '../model/target.ts';
import { planEvent } from '../notify/events.ts';
import { type RedisClient, readClock } from '../redis/client.ts';
import { keys } from '../redis/keys.ts';
import { hasAllOf, readServerIdentity } from '../redis/server-identity.ts';
import { keepFile, keepText, readKeptText } from './kept-plan-files.ts';
import type { MadePlan } from './make-plan.ts';
import { readRejectedRows, shownPlan } from './shown-plan.ts';

const draftMs = 86_400_000;
const waitingMs = 7 * 86_400_000;

/** A plan to keep. `path`: its list on this machine; `title`: the list for people. */
type NewPlan = {
  made: MadePlan;
  target: Target;
  name: string;
  title: string;
  path: string;
  isDraft: boolean;
};

/** A kept plan as the API shows it. */
export type PlanAnswer = ReturnType<typeof shownPlan> & { plan: string; expires_at: string; fp: string; name: string };

/**
 * Keeps a plan and its list in Redis, and returns it, also as it is shown. Throws what refuses a run that is left to workers for its protected ids, and
 * USAGE without room for the plan; nothing is kept then.
 */
export async function keepPlan(
  redis: RedisClient,
  { made, target, isDraft, ...given }: NewPlan,
): Promise<{ kept: KeptPlan; shown: PlanAnswer }> {
  const { fp } = target;
  // The protected ids are read again when the plan is applied.
  await refuseUnprotected(redis, fp, { isProtected: made.plan.protect !== null, ids: [] });
  const id = newPlanId(fp);
  const at = await planClock(redis, target);
  const expiresAt = at + (isDraft ? draftMs : waitingMs);
  const rejected = await readRejectedRows(made.shown.rejectsFile);
  const shown = { plan: id, expires_at: isoTime(expiresAt), fp, name: given.title, ...shownPlan(made, rejected) };
  try {
    const bytes = await keepFiles(redis, id, made, given.path, shown);
    const plan: KeptPlan = {
      id,
      baseUrl: target.baseUrl,
      account: target.account,
      name: given.name,
      by: made.plan.planned_by,
      at,
      reason: made.plan.reason,
      approver: made.plan.approve_by,
      ids: sumIds(made.shown.ids),
      bytes,
      expiresAt,
      isDraft,
      server: await readServerIdentity(redis, fp),
      state: 'waiting',
      decision: null,
    };
    if (!isDraft) await noteTarget(redis, target, at);
    await enterPlan(redis, plan, noteOf(plan));
    return { kept: plan, shown };
  } catch (error) {
    await forgetPlan(redis, id).catch(() => {}); // without an answer it may have been entered; its files expire anyway
    throw error;
  }
}

/** The time of the server that holds the plans of a target, in ms since 1970. */
export async function planClock(
  redis: RedisClient,
  { baseUrl, account }: Pick<Target, 'baseUrl' | 'account'>,
): Promise<number> {
  return Math.round(await readClock(redis, keys.plans(targetOf(baseUrl, account).fp)));
}

async function keepFiles(redis: RedisClient, id: string, made: MadePlan, list: string, shown: object): Promise<number> {
  const { rejectsFile } = made.shown;
  const bytes = [
    await keepFile(redis, id, 'list', list),
    rejectsFile === null ? 0 : await keepFile(redis, id, 'rejects', rejectsFile),
    await keepText(redis, id, 'plan', JSON.stringify(made.plan)),
    await keepText(redis, id, 'shown', JSON.stringify(shown)),
  ];
  return bytes.reduce((sum, one) => sum + one, 0);
}

/** A plan that waits, as the API shows it. Throws GUARD if it does not wait any more, and if it is damaged or gone. */
export async function readShown(redis: RedisClient, kept: KeptPlan): Promise<PlanAnswer> {
  if (!(await isBegun(redis, kept))) await requireWaiting(redis, kept);
  const text = readKeptText(redis, kept.id, 'shown').catch((error) => explainedByDecision(redis, kept, error));
  return JSON.parse(await text) as PlanAnswer;
}

const actions = { waiting: 'plan', applied: 'apply_plan', refused: 'refuse_plan' } as const;

/** What people learn about a plan that waits, or was decided; null for a draft. */
export function noteOf(plan: KeptPlan): PlanNote {
  if (plan.isDraft) return null;
  const { id, state, decision, by: planner, ids } = plan;
  const { who, at, reason, run } = decision ?? { who: planner, at: plan.at, reason: plan.reason, run: '' };
  const facts = { plan: id, planned_by: planner, ids, run }; // with a run, even none, it is not of every run of the target
  return {
    entry: { at, action: actions[state], by: 'operator', who, reason, ...facts },
    event: planEvent(plan),
  };
}

/** The state of a plan at a time: without a decision, it expires. */
function standingOf({ state, expiresAt }: KeptPlan, now: number): KeptPlan['state'] | 'expired' {
  return state === 'waiting' && expiresAt <= now ? 'expired' : state;
}

/** A kept plan for `--json` and the API. */
export function planFacts(plan: KeptPlan, now: number) {
  const { id, baseUrl, account, name, by, at, reason, approver, ids, expiresAt, decision } = plan;
  return {
    plan: id,
    fp: targetOf(baseUrl, account).fp,
    target: baseUrl,
    account,
    name,
    state: standingOf(plan, now),
    confirm: ids,
    planned_by: by,
    planned_at: isoTime(at),
    reason,
    approve_by: approver,
    expires_at: isoTime(expiresAt),
    decided_by: decision?.who ?? null,
    decided_at: decision === null ? null : isoTime(decision.at),
    decision: decision?.reason ?? null,
    run: decision?.run || null,
  };
}

export type PlanFacts = ReturnType<typeof planFacts>;

/** Why a plan cannot be decided about any more; null while it waits. */
export function undecidable(plan: KeptPlan, now: number): ExpungeError | null {
  const { id, by, expiresAt, decision, ids } = plan;
  const standing = standingOf(plan, now);
  if (standing === 'waiting') return null;
  const whose = `plan ${id} of ${by} (${plural(ids, 'ids')})`;
  if (standing === 'expired')
    return new ExpungeError('GUARD', `${whose} expired at ${isoTime(expiresAt)}; nothing was sent`, {
      next: (toType) => `make it again: ${toType('plan')}`,
    });
  const { who, at, reason, run } = decision!;
  if (standing === 'refused')
    return new ExpungeError(
      'GUARD',
      `${who} refused ${whose} at ${isoTime(at)}${reason && `: ${reason}`}; nothing was sent`,
      { next: (toType) => `agree on it, and make a new plan: ${toType('plan')}` },
    );
  return new ExpungeError('GUARD', `${who} applied ${whose} at ${isoTime(at)}, as run ${run}; no other run was made`, {
    next: (toType) => `see it: ${toType('status', run)}`,
  });
}

/** Throws GUARD for a plan that was decided or has expired by the clock of Redis. */
export async function requireWaiting(redis: RedisClient, kept: KeptPlan): Promise<void> {
  const error = undecidable(kept, await planClock(redis, kept));
  if (error !== null) throw error;
}

/** Whether someone has begun to apply a plan, and its run can only be completed with its list. */
export async function isBegun(redis: RedisClient, { state, decision }: KeptPlan): Promise<boolean> {
  const run = state === 'applied' ? await readRun(redis, decision!.run) : null;
  return run?.state === 'preparing' || (run?.state === 'planned' && run.detached);
}

/** Throws GUARD with the decision about a plan if it was made since the plan was read, which removes its files; otherwise the error. */
export async function explainedByDecision(redis: RedisClient, kept: KeptPlan, error: unknown): Promise<never> {
  const now = await readKeptPlan(redis, kept.id);
  if (kept.decision !== null || now === null || now.decision === null) throw error;
  throw undecidable(now, now.at) ?? error;
}

/**
 * Throws GUARD if Redis may have lost a decision about a plan that waits, because another process of Redis has it now: it may come from an older copy,
 * and the plan may have been carried out.
 */
export async function refuseLostDecision(
  redis: RedisClient,
  { id, baseUrl, account, server }: KeptPlan,
): Promise<void> {
  if (hasAllOf(await readServerIdentity(redis, targetOf(baseUrl, account).fp), server)) return;
  const words = `Redis was restarted or replaced since plan ${id} was made, and may have lost that someone applied or refused it; nothing was sent`;
  throw new ExpungeError('GUARD', words, { next: (toType) => `make the plan again: ${toType('plan')}` });
}

/** The error for a plan that Redis does not keep. */
export function unknownPlan(text: string): ExpungeError {
  return new ExpungeError('USAGE', `Redis knows no plan "${text}"; nothing was sent`, {
    next: (toType) => `list them: ${toType('plans', '--all')}`,
  });
}

/** The plan with this id, or whose id ends with the text. Throws USAGE if no plan or several match. */
export function findPlanIn(plans: readonly PlanFacts[], text: string): PlanFacts {
  const found = plans.filter(({ plan }) => text.length >= shortestEnd && plan.endsWith(text));
  const [plan, ...others] = found;
  if (plan === undefined) throw unknownPlan(text);
  if (others.length === 0) return plan;
  throw new ExpungeError('USAGE', `${plural(found.length, 'plans')} end with "${text}"`, {
    next: 'type more of the id',
  });
}

const shortestEnd = 4;
