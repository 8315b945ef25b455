import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import * as parse from '../config/parse-setting.ts';
import { messageOf } from '../errors.ts';
import { plural } from '../format.ts';
import { noteFailedAction } from '../ledger/audit.ts';
import { awaitsResults } from '../ledger/results.ts';
import { countPending, isFinalized, type Run } from '../ledger/run.ts';
import { givenRules, type ResumeSettings } from '../ledger/run-rules.ts';
import { maxReasonLength, storedReason } from '../model/person.ts';
import { parseRate } from '../model/rate.ts';
import { parseRetrySelection, type Selection } from '../model/selection.ts';
import { targetOf } from '../model/target.ts';
import type { Advice } from '../model/to-type.ts';
import type { RunAction } from '../operations/action.ts';
import type { RunOptions } from '../operations/list-action.ts';
import { localRuns } from '../operations/local.ts';
import type { RunOperations } from '../operations/operations.ts';
import { retryRun } from '../operations/retry-list.ts';
import type { SteeredRun } from '../operations/steer-run.ts';
import { toListAction } from './list-action.ts';
import { runSummary } from './overview.ts';
import { withOwnRedis } from './own-redis.ts';
import { Problem, parsedAs } from './problem.ts';
import { type ApiDeps, type Call, type Route, route } from './route.ts';
import { findRunById } from './run-view.ts';
import { type Field, queryFields } from './setting-fields.ts';
import * as shapes from './shapes.ts';
import { spellOutWarnings } from './warnings.ts';

/** The reason for an action, for the audit trail. */
export const reason = z
  .string()
  .trim()
  .max(maxReasonLength)
  .overwrite(storedReason)
  .default('')
  .describe('why, for the audit trail');

/** The rules that a resumed run can get; a missing one stays as it is. */
const resumeFields = {
  expect_absent: z.boolean().default(false).describe('absent ids do not halt it any more'),
  expect: z.string().max(200).optional().describe('refusals that do not halt it any more, by status: 403'),
  on_status: z.string().max(200).optional().describe('what a status means from now on: 403=wait'),
  max_deletes: z.int().min(1).nullable().optional().describe('how many ids it may send in all; null = any number'),
} satisfies Record<Field<keyof ResumeSettings>, z.ZodType>;

/** Routes that steer a run. Each action works like its command, with its checks and its entry in the audit trail. */
export const runRoutes: readonly Route[] = [
  route({
    method: 'post',
    path: '/runs/{run}/pause',
    role: 'operate',
    summary: 'pause a run',
    body: z.strictObject({ reason }),
    answer: shapes.steered,
    mayTakeLong: true,
    handle: (call) => steer(call, 'pause', (runs, action) => runs.pause(action)),
  }),
  route({
    method: 'post',
    path: '/runs/{run}/resume',
    role: 'operate',
    summary: 'resume a run',
    body: z.strictObject({
      reason,
      seen: shapes.seen,
      detach: z.boolean().default(false).describe('leave a run whose command has ended to the workers'),
      ...resumeFields,
    }),
    answer: shapes.steered,
    mayTakeLong: true,
    handle: (call) => {
      const { seen, detach, expect_absent: expectAbsent, max_deletes: maxDeletes } = call.body;
      const { expect: statuses = '', on_status: meanings = '' } = call.body;
      const expect = statuses && parsedAs('body.expect', statuses, parse.refusals);
      const onStatus = meanings && parsedAs('body.on_status', meanings, parse.onStatus);
      const config: ResumeSettings = { expectAbsent, expect, onStatus, maxDeletes };
      const rules = givenRules({ config });
      return steer(call, 'resume', (runs, action) => runs.resume({ ...action, seen, detach, rules }));
    },
  }),
  route({
    method: 'post',
    path: '/runs/{run}/cancel',
    role: 'operate',
    summary: 'cancel a run for good',
    body: z.strictObject({
      reason,
      left: z.int().min(0).describe('how many ids are left, as a person typed it'),
      shown: z.int().min(0).describe('how many were left when the person was asked'),
    }),
    answer: shapes.steered,
    mayTakeLong: true,
    handle: async (call) => {
      requireShownCount(await findRunById(call.deps.session, call.params.run!), call.body);
      return steer(call, 'cancel', (runs, action) => runs.cancel(action, () => {}));
    },
  }),
  route({
    method: 'post',
    path: '/runs/{run}/rate',
    role: 'operate',
    summary: 'give a run another rate',
    body: z.strictObject({
      reason,
      rate: z.string().min(1).max(200).nullable().describe('200/s or 200/s,100000/day; null = none of its own'),
    }),
    answer: z.looseObject({
      run: z.string(),
      state: z.string(),
      rate: z.string().nullable(),
    }),
    handle: (call) => {
      const { rate: text } = call.body;
      const rate = text === null ? null : parsedAs('body.rate', text, parseRate);
      return changeRun(call, (runs, given) => runs.changeRate({ ...given, rate }));
    },
  }),
  route({
    method: 'post',
    path: '/runs/{run}/retry',
    role: 'operate',
    summary: 'a new run of ids that an ended one left',
    body: z.strictObject({
      reason,
      confirm: z.int().min(0).describe('how many ids are to be sent again, as a person typed it'),
      confirm_host: shapes.confirmHost,
      only: z.array(z.string().max(50)).min(1).max(50).optional().describe('outcomes and codes; all that failed'),
      ...queryFields(['grace']),
      start_at: shapes.startAt,
    }),
    answer: shapes.made,
    status: 201,
    isCreating: true,
    handle: async (call) => {
      const only = call.body.only && parsedAs('body.only', call.body.only.join(','), parseRetrySelection);
      const made = await retry(call, only);
      if (made !== null) return { run: made.run.id, ...spellOutWarnings(made.warnings) };
      throw new Problem('conflict', `run ${call.params.run} has no matching ids to retry`);
    },
  }),
  route({
    method: 'delete',
    path: '/runs/{run}',
    role: 'operate',
    summary: 'remove a run that has ended',
    query: z.strictObject({
      reason,
      rows: z.string().regex(/^\d+$/).transform(Number).describe('how many rows it has, as a person typed it'),
      seen: z.string().regex(/^\d+$/).transform(Number).describe('its revision when that person saw it'),
    }),
    answer: z.looseObject({ run: z.string(), rows: z.int(), warnings: shapes.warnings }),
    handle: async (call) => {
      const { rows, seen, reason } = call.query;
      requireRemovable(await findRunById(call.deps.session, call.params.run!), rows);
      const { warnings } = await changeRun({ ...call, body: { reason } }, (runs, given) =>
        runs.remove({ ...given, seen }),
      );
      return { run: call.params.run!, rows, warnings };
    },
  }),
];

type RunCall = Call<unknown, { reason: string }>;
type RetryBody = {
  reason: string;
  confirm: number;
  confirm_host?: string | undefined;
  grace?: string | undefined;
  start_at?: string | undefined;
};
type RetryCall = Call<unknown, RetryBody>;

/** Makes a run of the ids that the run of the path has left; null if there are none. */
async function retry({ deps, params, body, caller, onRun }: RetryCall, only: Selection | undefined) {
  const { id, baseUrl, account } = await findRunById(deps.session, params.run!);
  const { confirm: expected, confirm_host: confirmHost, grace, start_at: startAt, reason } = body;
  const options: RunOptions = {
    detach: true,
    confirmHost,
    ...(startAt && { startAt: Date.parse(startAt) }),
  };
  const target = targetOf(baseUrl, account);
  const action = toListAction(deps, caller, { target, texts: { grace }, options, reason, onRun });
  return withOwnRedis(deps, (session) => retryRun(session, action, { run: id, only, expected }));
}

/** Does an operation on the run of the path, on a separate connection, so that a hanging action delays no other request. */
async function changeRun<T>(
  { deps, params, body, caller }: RunCall,
  work: (runs: RunOperations, action: RunAction) => Promise<T>,
): Promise<T> {
  const { id } = await findRunById(deps.session, params.run!);
  const given = { run: id, by: { who: caller.name, reason: body.reason } };
  return withOwnRedis(deps, (session) => work(localRuns(session), given));
}

/** Answers within two seconds: a cancelled run ends when its requests in flight have their answers. 202 = the action is still being carried out. */
async function steer(
  call: RunCall,
  action: 'pause' | 'resume' | 'cancel',
  work: (runs: RunOperations, action: RunAction) => Promise<SteeredRun & { warnings?: readonly Advice[] }>,
) {
  const { deps, params, caller, body, context } = call;
  const done = changeRun(call, work);
  const given = { run: params.run!, action, who: caller.name, reason: body.reason };
  const isDone = await isDoneSoon(deps, given, done);
  const now = runSummary(await findRunById(deps.session, params.run!), Date.now());
  if (!isDone) return context.json({ ...now, warnings: [], changed: null }, 202);
  const { warnings = [], isChanged } = await done;
  return { ...now, ...spellOutWarnings(warnings), changed: isChanged };
}

/** An action for a run: who gave it, and why. */
type Given = { run: string; action: string; who: string; reason: string };

const answerAfterMs = 2_000;
const noteEveryMs = 2_000;
const maxNotes = 300; // ten minutes: Redis may be why the action failed, and must be back for the note

/**
 * Whether an action is done within two seconds; throws its error until then. A longer one continues: if it fails, the audit trail of its run says so,
 * for a caller that was answered with 202.
 */
async function isDoneSoon(deps: Pick<ApiDeps, 'session' | 'log'>, given: Given, done: Promise<unknown>) {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<false>((resolve) => {
    timer = setTimeout(resolve, answerAfterMs, false).unref();
  });
  try {
    const isDone = await Promise.race([done.then(() => true), late]);
    if (!isDone) done.catch((error) => noteFailure(deps, given, messageOf(error)));
    return isDone;
  } finally {
    clearTimeout(timer);
  }
}

async function noteFailure({ session, log }: Pick<ApiDeps, 'session' | 'log'>, given: Given, error: string) {
  const { run, action, ...author } = given;
  log.warn({ run, action, reason: error }, 'an action was not carried out');
  const failed = { at: Date.now(), ...author, failedAction: action, error };
  for (let n = 0; n < maxNotes; n++) {
    try {
      return await noteFailedAction(session.redis, run, failed);
    } catch {
      await sleep(noteEveryMs, undefined, { ref: false });
    }
  }
}

/**
 * Throws conflict unless the typed number is the number that was shown, and that many were left before: the number left only decreases, also after a
 * pause.
 */
export function requireShownCount(run: Run, { left, shown }: { left: number; shown: number }): void {
  if (isFinalized(run.state)) return; // nothing is left to lose
  const now = countPending(run);
  if (left === shown && now <= shown && shown <= run.rows) return;
  const what =
    left === shown ? `run ${run.id} has ${plural(now, 'ids')} left` : `expected ${shown}, the number that is left`;
  throw new Problem('conflict', what, 'look at the run again, and type how many ids are left', { left: now });
}

/** Throws conflict for another number of rows, and while the results of the run are not delivered yet: the outcomes of its ids would be lost. */
function requireRemovable(run: Run, rows: number): void {
  if (rows !== run.rows)
    throw new Problem(
      'conflict',
      `run ${run.id} has ${plural(run.rows, 'rows')}, not ${rows}`,
      'type how many it has',
      {
        rows: run.rows,
      },
    );
  if (!awaitsResults(run)) return;
  throw new Problem(
    'conflict',
    `the results of run ${run.id} are not delivered yet`,
    (toType) => `wait for a worker with --results, or give them up in a terminal: ${toType('runs remove', run.id)}`,
  );
}
