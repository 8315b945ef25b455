import { Readable } from 'node:stream';
import { z } from 'zod';
import { ExpungeError } from '../errors.ts';
import { plural } from '../format.ts';
import type { KeptPlan } from '../ledger/kept-plans.ts';
import { approverText, mayApprove, parseApprover } from '../model/approver.ts';
import { isSamePerson, maxReasonLength, storedReason } from '../model/person.ts';
import { mayAct } from '../model/role.ts';
import { targetOf } from '../model/target.ts';
import { protectedHost } from '../model/target-pattern.ts';
import { mapAdvice } from '../model/to-type.ts';
import { keepPlan, type PlanAnswer, planFacts, readShown } from '../operations/kept-plan.ts';
import { type PlanFiles, readKept } from '../operations/kept-plan-files.ts';
import type { RunOptions } from '../operations/list-action.ts';
import { applyKeptPlan, listPlans, refuseKeptPlan, withdrawPlan } from '../operations/local-plans.ts';
import { makePlan, newOrigin } from '../operations/make-plan.ts';
import { withUpload } from '../operations/read-list.ts';
import { changedTexts, isPartial, type SealedPlan } from '../operations/sealed-plan.ts';
import type { Caller } from './access.ts';
import { toListAction } from './list-action.ts';
import { withOwnRedis } from './own-redis.ts';
import { findPlan } from './plans.ts';
import { Problem, parsedAs } from './problem.ts';
import { type Call, type Route, route } from './route.ts';
import { reason } from './run-routes.ts';
import { listSettings, ruleSettings } from './sent-settings.ts';
import { queryFields } from './setting-fields.ts';
import * as shapes from './shapes.ts';
import { findKnownTarget } from './targets.ts';
import { Uploads } from './uploads.ts';
import { spellOutWarnings } from './warnings.ts';

const flag = z.enum(['true', 'false']).optional();
const partial = flag.describe('send the first max_deletes ids of a longer list on purpose, then halt');

const planQuery = z.strictObject({
  target: z.string().length(16).describe('fingerprint of the target'),
  name: z
    .string()
    .regex(/^[\w-][\w. -]{0,99}$/)
    .default('list')
    .describe('of the list, for people'),
  ...queryFields(listSettings),
  partial,
  piped: flag.describe('a program wrote the list: a last line without its newline is refused, since it may be cut off'),
  approve_by: z.string().min(1).max(100).optional().describe('who has to apply it: a name, role:operate or role:admin'),
  wait: flag.describe('leave it in the inbox; so are plans with approve_by, and all plans of the role plan'),
  reason,
});

const applyBody = z.strictObject({
  confirm: z.int().min(0).describe('how many ids are to be deleted, as a person typed it'),
  confirm_host: shapes.confirmHost,
  ...queryFields(ruleSettings),
  partial,
  expect_unprotected: flag.describe('the person has seen that the list holds none of the ids that the server protects'),
  allow_mixed_ids: flag.describe('the person has seen the ids that look unlike the others'),
  start_at: shapes.startAt,
  stop_at: shapes.stopAt,
  max_duration_seconds: z.int().min(1).max(31_536_000).optional(),
  reason,
});

/** Whoever made the plan learns why. */
const refusal = z
  .string()
  .trim()
  .min(1)
  .max(maxReasonLength)
  .overwrite(storedReason)
  .describe('why, for the planner and the audit trail');

const uploads = {
  'text/csv': '.csv',
  'text/tab-separated-values': '.tsv',
  'text/plain': '.txt',
  'application/x-ndjson': '.ndjson',
  'application/json': '.json',
} as const;

/** Routes for lists that are sent to the server: read and planned first, then deleted by the workers of the target. */
export const planRoutes: readonly Route[] = [
  route({
    method: 'get',
    path: '/plans',
    role: 'read',
    about: 'within reach',
    summary: 'the plans that wait for approval',
    query: z.strictObject({ all: flag.describe('also those that were decided, or have expired, in the last 30 days') }),
    answer: shapes.list(shapes.keptPlan),
    handle: async ({ deps, caller, query }) => {
      const items = (await listPlans(deps.session, caller.reach)).map((plan) => factsFor(caller, plan));
      return { items: items.filter(({ state }) => query.all === 'true' || state === 'waiting') };
    },
  }),
  route({
    method: 'post',
    path: '/plans',
    role: 'plan',
    about: 'target',
    summary: 'read a list, and say what would be deleted',
    query: planQuery,
    upload: Object.keys(uploads),
    answer: shapes.plan,
    status: 201, // no Idempotency-Key: it would not distinguish one list from another
    handle: plan,
  }),
  route({
    method: 'get',
    path: '/plans/{plan}',
    role: 'read',
    summary: 'a plan that still waits',
    answer: shapes.plan,
    handle: async ({ deps, caller, params }) => {
      const kept = await findPlan(deps.session, params.plan!);
      return shownTo({ deps, caller }, { kept, shown: await readShown(deps.session.redis, kept) });
    },
  }),
  route({
    method: 'get',
    path: '/plans/{plan}/rejects',
    role: 'read',
    summary: 'all rows of its list that hold no usable id, and why',
    answer: null,
    types: ['text/csv'],
    handle: async ({ deps, params }) => rejectsAnswer(deps, await findPlan(deps.session, params.plan!)),
  }),
  route({
    method: 'delete',
    path: '/plans/{plan}',
    role: 'plan',
    summary: 'withdraw a plan, and forget its list',
    answer: z.object({ plan: z.string() }),
    handle: async ({ deps, caller, params }) => {
      const kept = await findPlan(deps.session, params.plan!);
      await withdrawPlan(deps.session, kept, caller);
      return { plan: kept.id };
    },
  }),
  route({
    method: 'post',
    path: '/plans/{plan}/refuse',
    role: 'operate',
    summary: 'refuse a plan for good',
    body: z.strictObject({ reason: refusal }),
    answer: shapes.keptPlan,
    handle: async ({ deps, caller, params, body }) => {
      const kept = await findPlan(deps.session, params.plan!);
      const by = { who: caller.name, reason: body.reason };
      return factsFor(caller, await refuseKeptPlan(deps.session, kept, by));
    },
  }),
  route({
    method: 'post',
    path: '/plans/{plan}/apply',
    role: 'operate',
    summary: 'delete what a plan says',
    body: applyBody,
    answer: shapes.made,
    status: 201,
    isCreating: true,
    handle: (call) =>
      apply(call).catch((error) => {
        throw withoutPaths(error, [call.deps.config.stateDir]);
      }),
  }),
];

/** A plan as the API shows it to a caller. */
export type ShownPlan = ReturnType<typeof shownTo>;

function shownTo(
  { deps, caller }: Pick<Call, 'deps' | 'caller'>,
  { kept, shown }: { kept: KeptPlan; shown: PlanAnswer },
) {
  const protected_host = protectedHost(deps.config.protectedTargets, kept.baseUrl);
  return { ...factsFor(caller, kept), ...shown, waits: !kept.isDraft, protected_host };
}

/** A plan in a list, as the API shows it to a caller. */
export type KeptPlanFacts = ReturnType<typeof factsFor>;

/** The facts about a plan, and whether this person may apply it. */
function factsFor({ name: who, role }: Caller, kept: KeptPlan) {
  const facts = planFacts(kept, Date.now());
  const isAllowed = mayAct(role, 'operate') && mayApprove(kept.approver, kept.by, { who, role });
  return { ...facts, may_apply: facts.state === 'waiting' && isAllowed };
}

async function plan(call: Call<z.output<typeof planQuery>>) {
  const end = call.deps.streams.begin('uploads');
  try {
    return await planUpload(call);
  } finally {
    end();
  }
}

async function planUpload({ deps, query, context, caller }: Call<z.output<typeof planQuery>>): Promise<ShownPlan> {
  const { target: fp, name, reason, approve_by: approveBy, partial, piped, wait, ...others } = query;
  const target = await findKnownTarget(deps.session, fp);
  const { redis } = deps.session;
  const uploads = new Uploads(deps.config.stateDir);
  const bytes = Number(context.req.header('content-length') ?? 0);
  const file = `${name}${suffixOf(context.req.header('content-type'))}`;
  const { id, list } = await uploads.open(file, bytes);
  try {
    await uploads.write(context.req.raw.body as Parameters<Uploads['write']>[0], list);
    const isPiped = piped === 'true';
    const options = { partial: partial === 'true' };
    const action = toListAction(deps, caller, { target, texts: settingsOf(others), options, reason });
    const approver = approveBy === undefined ? undefined : parsedAs('query.approve_by', approveBy, parseApprover);
    const origin = newOrigin(action.by, approver);
    const made = await withUpload(
      action.config,
      { folder: uploads.pathOf(id), path: list, isPiped, isNew: true },
      (read) => makePlan(redis, action, read, { origin, unnamed: namesOfNothing }),
    );
    const isDraft = wait !== 'true' && approver === undefined && mayAct(caller.role, 'operate');
    const kept = await keepPlan(redis, { made, target, name: file, title: name, path: list, isDraft });
    return shownTo({ deps, caller }, kept);
  } catch (error) {
    throw withoutPaths(error, [uploads.pathOf(id), deps.config.stateDir]);
  } finally {
    await uploads.remove(id);
  }
}

/** Names of lists that were given none. */
const namesOfNothing = ['list', 'stdin'].flatMap((name) => Object.values(uploads).map((suffix) => name + suffix));

async function rejectsAnswer({ session: { redis } }: Pick<Call['deps'], 'session'>, kept: KeptPlan): Promise<Response> {
  const { name, rejected_samples: rows } = await readShown(redis, kept);
  if (rows.length === 0) throw new Problem('not_found', 'no row of this list was rejected');
  const body = Readable.toWeb(readKept(redis, kept.id, 'rejects')) as ConstructorParameters<typeof Response>[0];
  const file = `rejected-rows-of-${name.replace(/[^\w-]/g, '_')}.csv`;
  const headers = {
    'content-type': 'text/csv; charset=utf-8',
    'content-disposition': `attachment; filename="${file}"`,
  };
  return new Response(body, { headers });
}

/** The error without paths: they show where a list is on this server, and the rejected rows are deleted with it. */
function withoutPaths(error: unknown, folders: readonly string[]): unknown {
  if (!(error instanceof ExpungeError)) return error;
  const plain = (text: string) =>
    folders
      .reduce((words, folder) => words.replaceAll(`${folder}/`, '').replaceAll(folder, 'of the server'), text)
      .replace(/; all rejected rows are in .*/, '');
  return new ExpungeError(error.code, plain(error.message), { cause: error, next: mapAdvice(error.advice, plain) });
}

function suffixOf(type = ''): string {
  const [plain = ''] = type.split(';');
  const suffix = uploads[plain.trim().toLowerCase() as keyof typeof uploads];
  if (suffix !== undefined) return suffix;
  throw new Problem('invalid', `expected a body of ${Object.keys(uploads).join(', ')}, got "${plain.slice(0, 100)}"`);
}

/** The settings by their names in the API. */
function settingsOf(given: Record<string, string | undefined>): Record<string, string | undefined> {
  const entries = Object.entries(given).filter(([, value]) => value !== undefined);
  return Object.fromEntries(
    entries.map(([name, value]) => [name.replace(/_(\w)/g, (_, letter) => letter.toUpperCase()), value]),
  );
}

/** Carries out the plan, or a plan of the same ids with other rules; after that the run has the list. */
async function apply({ deps, params, body, caller, onRun }: Call<unknown, z.output<typeof applyBody>>) {
  const kept = await findPlan(deps.session, params.plan!);
  const { confirm, confirm_host: confirmHost, reason, ...timed } = body;
  const { start_at: startAt, stop_at: stopAt, max_duration_seconds: maxDuration, ...more } = timed;
  const { expect_unprotected: isUnprotected, allow_mixed_ids: isMixed, ...others } = more;
  requireConfirmedCount(confirm, kept.ids);
  const options: RunOptions = {
    detach: true,
    confirmHost,
    ...(startAt && { startAt: Date.parse(startAt) }),
    ...(stopAt && { stopAt: Date.parse(stopAt) }),
    ...(maxDuration && { maxDuration: maxDuration * 1_000 }),
  };
  const target = targetOf(kept.baseUrl, kept.account);
  const accepted = {
    ...(isUnprotected === 'true' && { expectUnprotected: true }),
    ...(isMixed === 'true' && { allowMixedIds: true }),
  };
  const given = toListAction(deps, caller, { target, options, reason, accepted, onRun });
  const seal = (before: SealedPlan, files: PlanFiles) => sealedFor({ deps, caller }, { kept, before, files }, others);
  const { run, warnings } = await withOwnRedis(deps, (session) => applyKeptPlan(session, given, kept, seal));
  return { run: run.id, ...spellOutWarnings(warnings) };
}

function requireConfirmedCount(confirm: number, ids: number): void {
  if (confirm === ids) return;
  throw new Problem(
    'conflict',
    `the plan holds ${plural(ids, 'ids')}, not ${confirm}`,
    'type how many ids it deletes',
    { confirm: ids },
  );
}

/**
 * The plan as it was kept; with other rules a new plan of the same ids, with the date and the planner of the old one. Throws conflict if that would
 * name another person as the planner of these rules, if the plan has to be approved, or if the list now reads differently.
 */
async function sealedFor(
  { deps, caller }: Pick<Call, 'deps' | 'caller'>,
  { kept, before, files: { folder, list } }: { kept: KeptPlan; before: SealedPlan; files: PlanFiles },
  { partial, ...others }: Record<string, string | undefined>,
): Promise<SealedPlan> {
  const rules = settingsOf(others);
  if (Object.keys(rules).length === 0) return before;
  if (before.approve_by !== null || (!kept.isDraft && !isSamePerson(before.planned_by, caller.name)))
    throw new Problem(
      'conflict',
      `${approverText(before.approve_by ?? caller.name)} approves the plan of ${before.planned_by} as it is`,
      'apply it without other rules',
    );
  const action = toListAction(deps, caller, {
    target: targetOf(kept.baseUrl, kept.account),
    texts: { ...changedTexts(before), ...rules },
    options: { partial: partial === 'true' || isPartial(before) },
    reason: before.reason,
  });
  const { planned_at, planned_by, approve_by, reason } = before;
  const origin = { planned_at, planned_by, approve_by, reason };
  const { plan } = await withUpload(action.config, { folder, path: list, isPiped: false, isNew: false }, (read) =>
    makePlan(deps.session.redis, action, read, { origin }),
  );
  if (plan.ids.sha256 !== before.ids.sha256 || plan.ids.rows !== before.ids.rows)
    throw new Problem('conflict', 'the list reads otherwise with these rules', 'plan it again');
  return plan;
}
