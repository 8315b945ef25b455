import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import type { Verb } from '../commands/command.ts';
import { messageOf } from '../errors.ts';
import { plural } from '../format.ts';
import { noteFailedOrder } from '../ledger/audit.ts';
import { awaitsResults } from '../ledger/results.ts';
import { isSealed, pendingOf, type Run, runStates } from '../ledger/run.ts';
import { priorities } from '../model/priority.ts';
import { parseRetrySelection } from '../model/selection.ts';
import { targetOf } from '../model/target.ts';
import { invokeVerb, lastFacts, type Order } from './invoke.ts';
import { runSummary } from './overview.ts';
import { Problem, parsedAs } from './problem.ts';
import { type ApiDeps, type Call, type Route, route } from './route.ts';
import { findRunById } from './run-view.ts';
import * as shapes from './shapes.ts';

/** Why somebody does this, for the audit trail. */
export const reason = z.string().trim().max(500).default('').describe('why, for the audit trail');

/** What steers a run: each order goes the way of the command, with its checks and its entry in the audit trail. */
export const runRoutes: readonly Route[] = [
  route({
    method: 'post',
    path: '/runs/{run}/pause',
    role: 'operate',
    summary: 'pause a run',
    body: z.strictObject({ reason }),
    answer: shapes.steered,
    mayTakeLong: true,
    handle: (call) => steer(call, 'pause'),
  }),
  route({
    method: 'post',
    path: '/runs/{run}/resume',
    role: 'operate',
    summary: 'let a run go on',
    body: z.strictObject({
      reason,
      expect_absent: z.boolean().default(false).describe('absent ids do not halt it any more'),
      detach: z.boolean().default(false).describe('leave a run whose command has ended to the workers'),
      max_deletes: z.int().min(1).optional().describe('how many ids it may send in all'),
    }),
    answer: shapes.steered,
    mayTakeLong: true,
    handle: (call) => {
      const { expect_absent: expectAbsent, detach, max_deletes: maxDeletes } = call.body;
      const settings = { expectAbsent: String(expectAbsent) };
      return steer(call, 'resume', { detach: detach || undefined, maxDeletes }, settings);
    },
  }),
  route({
    method: 'post',
    path: '/runs/{run}/cancel',
    role: 'operate',
    summary: 'cancel a run for good',
    body: z.strictObject({
      reason,
      left: z.int().min(0).describe('how many rows are left, as a person typed it'),
      shown: z.int().min(0).describe('how many were left when they were asked'),
    }),
    answer: shapes.steered,
    mayTakeLong: true,
    handle: async (call) => {
      refuseOtherCount(await findRunById(call.deps.session, call.params.run!), call.body);
      return steer(call, 'cancel');
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
      burst: z.int().min(1).max(1_000_000).optional(),
    }),
    answer: z.looseObject({
      run: z.string(),
      state: z.string(),
      rate: z.string().nullable(),
      warnings: shapes.warnings,
    }),
    handle: (call) => change(call, 'rate', call.body.rate ?? 'none', { burst: call.body.burst }),
  }),
  route({
    method: 'post',
    path: '/runs/{run}/priority',
    role: 'operate',
    summary: 'give a run another share',
    body: z.strictObject({ reason, priority: z.enum(priorities) }),
    answer: z.looseObject({ run: z.string(), state: z.string(), priority: z.string(), warnings: shapes.warnings }),
    handle: (call) => change(call, 'priority', call.body.priority),
  }),
  route({
    method: 'post',
    path: '/runs/{run}/retry',
    role: 'operate',
    summary: 'a new run of ids that an ended one left',
    body: z.strictObject({
      reason,
      confirm: z.int().min(0).describe('how many ids are to be sent again, as a person typed it'),
      only: z.array(z.string().max(50)).min(1).max(50).optional().describe('outcomes and codes; all that failed'),
      priority: z.enum(priorities).optional(),
    }),
    answer: shapes.made,
    status: 201,
    isCreating: true,
    handle: async (call) => {
      const only = call.body.only && parsedAs('body.only', call.body.only.join(','), parseRetrySelection);
      const { priority, confirm: expectChosen } = call.body;
      const options = { detach: true, newRunOnly: true, only, priority, expectChosen, onRun: call.onRun };
      const { lines, warnings } = await order(call, { verb: 'retry', options }, () => import('../commands/retry.ts'));
      const last = lines.at(-1);
      if (last?.type === 'summary') return { run: String(last.run), warnings };
      throw new Problem('conflict', `run ${call.params.run} has nothing of that to retry`);
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
      state: z.enum(runStates).describe('its state when that person saw it: in another one it is not removed'),
    }),
    answer: z.looseObject({ run: z.string() }),
    handle: async (call) => {
      refuseRemoval(await findRunById(call.deps.session, call.params.run!), call.query.rows);
      const { state, ...body } = call.query;
      const given = { ...call, body };
      const options = { seen: { state } };
      return (await order(given, { verb: 'runs remove', options }, () => import('../commands/runs.ts'))).lines.at(-1);
    },
  }),
];

type RunCall = Call<unknown, { reason: string }>;

/** Does a verb on the run of the path. */
async function order(
  { deps, params, body, caller }: RunCall,
  { verb, args = [], options = {}, settings = {} }: Omit<Order, 'target'>,
  load: () => Promise<Verb>,
) {
  const run = await findRunById(deps.session, params.run!);
  const given = Object.entries({ reason: body.reason, ...options }).filter(([, value]) => value !== undefined);
  const target = targetOf(run.baseUrl, run.account);
  const whole: Order = { verb, args: [run.id, ...args], options: Object.fromEntries(given), settings, target };
  return invokeVerb(deps, caller, whole, load);
}

/** Answers after two seconds: a cancelled run ends when its requests in flight have their answers. 202 = it is still being done. */
async function steer(
  call: RunCall,
  verb: 'pause' | 'resume' | 'cancel',
  options: Record<string, unknown> = {},
  settings: Order['settings'] & object = {},
) {
  const { deps, params, caller, body, context } = call;
  const done = order(call, { verb, options, settings }, () => import('../commands/steer.ts'));
  const given = { run: params.run!, order: verb, who: caller.name, reason: body.reason };
  const isDone = await isDoneSoon(deps, given, done);
  const now = runSummary(await findRunById(deps.session, params.run!), Date.now());
  if (!isDone) return context.json({ ...now, warnings: [], changed: null }, 202);
  const { lines, warnings } = await done;
  return { ...now, warnings, changed: lines.at(-1)?.changed !== false };
}

/** An order for a run, and who gave it why. */
type Given = { run: string; order: string; who: string; reason: string };

const answerAfterMs = 2_000;
const noteEveryMs = 2_000;
const notesAtMost = 300; // ten minutes: Redis, which may be why the order failed, has to be back for the note

/**
 * Whether an order is done within two seconds; throws what it throws until then. One that takes longer goes on: if it fails, the audit trail
 * of its run says so, for whoever was answered that it is being done.
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
  const { run, ...order } = given;
  log.warn({ run, order: order.order, reason: error }, 'an order was not carried out');
  const failed = { at: Date.now(), ...order, error };
  for (let n = 0; n < notesAtMost; n++) {
    try {
      return await noteFailedOrder(session.redis, run, failed);
    } catch {
      await sleep(noteEveryMs, undefined, { ref: false });
    }
  }
}

const changes = { rate: () => import('../commands/rate.ts'), priority: () => import('../commands/priority.ts') };

async function change(call: RunCall, verb: keyof typeof changes, to: string, options: Record<string, unknown> = {}) {
  const { lines, warnings } = await order(call, { verb, args: [to], options }, changes[verb]);
  return { ...lastFacts(lines), warnings };
}

/** Throws conflict unless what was typed is what was shown, and that was left before: what is left only becomes less, also after a pause. */
export function refuseOtherCount(run: Run, { left, shown }: { left: number; shown: number }): void {
  if (isSealed(run.state)) return; // there is nothing left to lose
  const now = pendingOf(run);
  if (left === shown && now <= shown && shown <= run.rows) return;
  const what =
    left === shown ? `run ${run.id} has ${plural(now, 'rows')} left` : `expected ${shown}, the number that is left`;
  throw new Problem('conflict', what, 'look at the run again, and type how many rows are left', { left: now });
}

/** Throws conflict for another number of rows, and while the results of the run are still to be delivered: what became of its ids would be lost. */
function refuseRemoval(run: Run, rows: number): void {
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
    `wait for a worker with --results, or give them up in a terminal: expunge runs remove ${run.id}`,
  );
}
