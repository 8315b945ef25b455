import { createReadStream } from 'node:fs';
import { Readable } from 'node:stream';
import { parse } from 'csv-parse';
import { z } from 'zod';
import { ExpungeError } from '../errors.ts';
import { isoTime, plural } from '../format.ts';
import type { List } from '../input/with-list.ts';
import { findRunOfList } from '../ledger/create-run.ts';
import { findOverlappingRuns } from '../ledger/list-runs.ts';
import { refuseUnprotected } from '../ledger/protection.ts';
import { isFinalized } from '../ledger/run.ts';
import { readAbsentAnswers } from '../ledger/semantics.ts';
import { priorities } from '../model/priority.ts';
import { sumIds } from '../model/resource.ts';
import { hashList, type Target } from '../model/target.ts';
import { protectedHost } from '../model/target-pattern.ts';
import { mapAdvice } from '../model/to-type.ts';
import { type AppliedPlan, requirePlanCode } from '../operations/applied-plan.ts';
import { actionOfPlan, checkPlanned, refuseChangedFiles } from '../operations/apply-plan.ts';
import type { ListAction, RunOptions } from '../operations/list-action.ts';
import { type MadePlan, makePlan, newOrigin } from '../operations/make-plan.ts';
import { readPlanFile } from '../operations/plan-file.ts';
import { type ListHistory, noListHistory } from '../operations/plan-list.ts';
import { readBeforeRun } from '../operations/read-bounds.ts';
import { withUpload } from '../operations/read-list.ts';
import { changedRules, isPartial, planCode } from '../operations/sealed-plan.ts';
import { scopesOf, startList } from '../operations/start-list.ts';
import type { RedisClient } from '../redis/client.ts';
import { forecastFacts } from '../terminal/forecast-text.ts';
import type { Plan } from '../terminal/plan-text.ts';
import { listActionOf } from './list-action.ts';
import { withOwnRedis } from './own-redis.ts';
import { forgottenAt, type KeptPlan, PlanStore } from './plan-store.ts';
import { Problem } from './problem.ts';
import { type Call, type Route, route } from './route.ts';
import { reason } from './run-routes.ts';
import { listSettings, ruleSettings } from './sent-settings.ts';
import { queryFields } from './setting-fields.ts';
import * as shapes from './shapes.ts';
import { knownTargetOf } from './targets.ts';
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
  approve_by: z.string().min(1).max(100).optional().describe('who has to apply it'),
  reason,
});

const applyBody = z.strictObject({
  confirm: z.int().min(0).describe('how many ids are to be deleted, as a person typed it'),
  confirm_host: shapes.confirmHost,
  ...queryFields(ruleSettings),
  partial,
  expect_unprotected: flag.describe('the person has seen that the list holds none of the ids that the server protects'),
  priority: z.enum(priorities).optional(),
  start_at: shapes.startAt,
  stop_at: z.iso.datetime().optional(),
  max_duration_seconds: z.int().min(1).max(31_536_000).optional(),
  reason,
});

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
    method: 'post',
    path: '/plans',
    role: 'operate',
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
    role: 'operate',
    summary: 'a plan that was not applied yet',
    answer: shapes.plan,
    handle: async ({ deps, params }) => (await storeOf(deps).find(params.plan!)).shown,
  }),
  route({
    method: 'get',
    path: '/plans/{plan}/rejects',
    role: 'operate',
    summary: 'all rows of its list that hold no usable id, and why',
    answer: null,
    types: ['text/csv'],
    handle: async ({ deps, params }) => rejectsAnswer(await storeOf(deps).find(params.plan!)),
  }),
  route({
    method: 'delete',
    path: '/plans/{plan}',
    role: 'operate',
    summary: 'forget a plan and its list',
    answer: z.object({ plan: z.string() }),
    handle: async ({ deps, params }) => {
      const { id } = await storeOf(deps).find(params.plan!);
      await storeOf(deps).remove(id);
      return { plan: id };
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
        throw withoutPaths(error, [storeOf(call.deps).pathOf(call.params.plan!), call.deps.config.stateDir]);
      }),
  }),
];

function storeOf({ config }: { config: { stateDir: string } }): PlanStore {
  return new PlanStore(config.stateDir);
}

async function plan(call: Call<z.output<typeof planQuery>>) {
  const end = call.deps.streams.begin('uploads');
  try {
    return await planUpload(call);
  } finally {
    end();
  }
}

/** A plan as the API shows it. */
export type ShownPlan = Awaited<ReturnType<typeof planUpload>>;

async function planUpload({ deps, query, context, caller }: Call<z.output<typeof planQuery>>) {
  const { target: fp, name, reason, approve_by: approveBy, partial, piped, ...others } = query;
  const target = await knownTargetOf(deps.session, fp);
  const store = storeOf(deps);
  const bytes = Number(context.req.header('content-length') ?? 0);
  const { id, list } = await store.open(`${name}${suffixOf(context.req.header('content-type'))}`, bytes);
  try {
    await store.write(context.req.raw.body as Parameters<PlanStore['write']>[0], list);
    const settings = settingsOf(others);
    const at = Date.now();
    const isPiped = piped === 'true';
    const options = { partial: partial === 'true' };
    const action = listActionOf(deps, caller, { target, texts: settings, options, reason });
    const made = await makePlan(action, {
      paths: [list],
      read: (body) => withUpload(action.config, { folder: store.pathOf(id), path: list, isPiped }, body),
      output: store.pathOf(id, 'plan.json'),
      origin: newOrigin(action.by, approveBy),
      historyOf: (read) => readHistory(deps.session.redis, action, target, read),
    });
    // The protected ids are read again when the plan is applied.
    await refuseUnprotected(deps.session.redis, fp, { isProtected: made.plan.protect !== null, ids: [] });
    const rejected_samples = await readRejectedRows(made.shown.rejectsFile);
    const protected_host = protectedHost(deps.config.protectedTargets, target.baseUrl);
    const plan = { plan: id, expires_at: isoTime(forgottenAt(at)), fp, name, protected_host };
    const shown = { ...plan, ...shownPlan(made), rejected_samples };
    await store.keep({ id, by: caller.name, fp, at, list, settings, shown, rejects: made.shown.rejectsFile });
    return shown;
  } catch (error) {
    await store.remove(id);
    throw withoutPaths(error, [store.pathOf(id), deps.config.stateDir]);
  }
}

/** Names of lists that were given none; they do not connect a list with other lists of that name. */
const namesOfNothing = ['list', 'stdin'].flatMap((name) => Object.values(uploads).map((suffix) => name + suffix));

/** What Redis knows about a list. Its unfinished run is not resumed: applying the plan names that run instead. */
async function readHistory(redis: RedisClient, action: ListAction, target: Target, list: List): Promise<ListHistory> {
  const last = await findRunOfList(redis, hashList(target, list.spool.sha256, ''));
  const isUnfinished = last !== null && !isFinalized(last.state);
  const files = isUnfinished ? [] : list.spool.files.filter((name) => !namesOfNothing.includes(name));
  const [overlapping, before, proof] = await Promise.all([
    findOverlappingRuns(redis, target, { files }),
    readBeforeRun(redis, target.fp, scopesOf(action, list), null),
    readAbsentAnswers(redis, target.fp),
  ]);
  return { ...noListHistory, ...before, proof, last, overlapping };
}

/** A rejected row of a list, and the reason, also in words. */
type RejectedRow = { line: number; id: string; code: string; reason?: string };

const shownRows = 20;
const shownLength = 200;

/** The first rows in a file of rejected rows; none without a file. */
async function readRejectedRows(path: string | null): Promise<RejectedRow[]> {
  if (path === null) return [];
  const rows: RejectedRow[] = [];
  const file = createReadStream(path);
  try {
    for await (const { line, id_safe: id, code, reason } of file.pipe(parse({ columns: true, to: shownRows })))
      rows.push({ line: Number(line), id: id.slice(0, shownLength), code, reason });
  } finally {
    file.destroy();
  }
  return rows;
}

function rejectsAnswer({ rejects, shown: { name } }: KeptPlan): Response {
  if (!rejects) throw new Problem('not_found', 'no row of this list was rejected');
  const body = Readable.toWeb(createReadStream(rejects)) as ConstructorParameters<typeof Response>[0];
  const file = `rejected-rows-of-${String(name).replace(/[^\w-]/g, '_')}.csv`;
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
function settingsOf(given: Record<string, string | undefined>): KeptPlan['settings'] {
  const entries = Object.entries(given).filter(([, value]) => value !== undefined);
  return Object.fromEntries(
    entries.map(([name, value]) => [name.replace(/_(\w)/g, (_, letter) => letter.toUpperCase()), value]),
  );
}

function shownPlan({ plan, sha256, shown }: MadePlan) {
  const { target, account } = { target: shown.baseUrl, account: shown.account };
  return {
    code: planCode(sha256),
    plan_sha256: sha256,
    target,
    account,
    confirm: sumIds(shown.ids),
    counts: { rows: shown.rows, ...shown.ids, ...shown.settled },
    rejected: shown.rejected,
    duplicates: shown.settled.duplicate,
    samples: shown.samples,
    column: shown.column,
    first: shown.firstUrl === null ? null : { url: shown.firstUrl },
    forecast: plan.forecast,
    expected: forecastFacts(shown.forecast),
    rules: plan.rules,
    changed_rules: changedRules(plan),
    limited: shown.limited,
    protected_read: shown.protectedRead,
    record: {
      ...shown,
      rejectsFile: null,
      tokenSource: 'its workers',
    } satisfies Plan,
    planned_by: plan.planned_by,
    planned_at: plan.planned_at,
    approve_by: plan.approve_by,
    reason: plan.reason,
  };
}

/** Carries out the plan, or a plan of the same ids with other rules; after that Redis has the list, and the plan is forgotten. */
async function apply({ deps, params, body, caller, onRun }: Call<unknown, z.output<typeof applyBody>>) {
  const store = storeOf(deps);
  const kept = await store.find(params.plan!);
  const { confirm, confirm_host: confirmHost, reason, priority, ...timed } = body;
  const { start_at: startAt, stop_at: stopAt, max_duration_seconds: maxDuration, ...more } = timed;
  const { expect_unprotected: isExpected, ...others } = more;
  requireConfirmedCount(confirm, Number(kept.shown.confirm));
  const target = await knownTargetOf(deps.session, kept.fp);
  const { file, code } = await sealedFor({ deps, caller }, kept, target, others);
  const applied: AppliedPlan = { ...(await readPlanFile(file)), isUpload: true };
  requirePlanCode(applied, code);
  const options: RunOptions = {
    detach: true,
    confirmHost,
    ...(priority && { priority }),
    ...(startAt && { startAt: Date.parse(startAt) }),
    ...(stopAt && { stopAt: Date.parse(stopAt) }),
    ...(maxDuration && { maxDuration: maxDuration * 1_000 }),
  };
  const isAsked = isExpected === 'true';
  const given = listActionOf(deps, caller, { target, options, reason, isAsked, onRun });
  const { action } = actionOfPlan(given, applied);
  await refuseChangedFiles(applied, [kept.list]);
  const { run, warnings } = await withUpload(action.config, uploadOf(store, kept), (list) => {
    checkPlanned(action, applied, list);
    return withOwnRedis(deps, (session) => startList(session, action, { target, list, retries: null, applied }));
  });
  await store.remove(kept.id);
  return { run: run.id, ...spellOutWarnings(warnings) };
}

/** An upload that was already read completely. */
function uploadOf(store: PlanStore, { id, list }: KeptPlan) {
  return { folder: store.pathOf(id), path: list, isPiped: false };
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
 * The file and the code of the plan; with other rules those of a new plan of the same ids, with the date and the planner of the old one. Throws
 * conflict if the list now reads differently.
 */
async function sealedFor(
  { deps, caller }: Pick<Call, 'deps' | 'caller'>,
  kept: KeptPlan,
  target: Target,
  { partial, ...others }: Record<string, string | undefined>,
) {
  const rules = settingsOf(others);
  const store = storeOf(deps);
  if (Object.keys(rules).length === 0)
    return { file: store.pathOf(kept.id, 'plan.json'), code: String(kept.shown.code) };
  if (kept.shown.approve_by !== null)
    throw new Problem(
      'conflict',
      `${kept.shown.approve_by} approves the plan as it is`,
      'apply it without other rules',
    );
  const file = store.pathOf(kept.id, `plan-${Date.now()}.json`);
  const { plan: before } = await readPlanFile(store.pathOf(kept.id, 'plan.json'));
  const { planned_at, planned_by, approve_by, reason } = before;
  const origin = { planned_at, planned_by, approve_by, reason };
  const action = listActionOf(deps, caller, {
    target,
    texts: { ...kept.settings, ...rules },
    options: { partial: partial === 'true' || isPartial(before) },
    reason,
  });
  const { plan, sha256 } = await makePlan(action, {
    paths: [kept.list],
    read: (body) => withUpload(action.config, uploadOf(store, kept), body),
    output: file,
    origin,
  });
  if (plan.ids.sha256 !== before.ids.sha256 || plan.ids.rows !== before.ids.rows)
    throw new Problem('conflict', 'the list reads otherwise with these rules', 'plan it again');
  return { file, code: planCode(sha256) };
}
