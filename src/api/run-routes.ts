import { z } from 'zod';
import { changeRunPriority } from '../commands/priority.ts';
import { changeRunRate, jsonPace, readPace } from '../commands/rate.ts';
import { steerRun } from '../commands/steer.ts';
import { messageOf } from '../errors.ts';
import { plural } from '../format.ts';
import { isSealed, pendingOf, priorities, type Run } from '../ledger/run.ts';
import { parseRetrySelection } from '../model/selection.ts';
import { type Target, targetOf } from '../model/target.ts';
import { invokeVerb } from './invoke.ts';
import { runSummary } from './overview.ts';
import { Problem } from './problem.ts';
import { type Call, type Route, route } from './route.ts';
import { findRunById } from './run-view.ts';
import * as shapes from './shapes.ts';

/** Why somebody does this, for the audit trail. */
export const reason = z.string().trim().max(500).default('').describe('why, for the audit trail');

const waitMs = 2_000;

/** What steers a run: each order is checked and recorded as that of the command. */
export const runRoutes: readonly Route[] = [
  route({
    ...{ method: 'post', path: '/runs/{run}/pause', role: 'operate', summary: 'pause a run' },
    ...{ body: z.strictObject({ reason }), answer: shapes.runSummary },
    handle: (call) => steer(call, 'pause'),
  }),
  route({
    ...{ method: 'post', path: '/runs/{run}/resume', role: 'operate', summary: 'let a run go on' },
    body: z.strictObject({
      reason,
      expect_absent: z.boolean().default(false).describe('absent ids do not halt it any more'),
      detach: z.boolean().default(false).describe('leave a run whose command has ended to the workers'),
    }),
    answer: shapes.runSummary,
    handle: (call) => (call.body.detach ? resumeDetached(call) : steer(call, 'resume', call.body.expect_absent)),
  }),
  route({
    ...{ method: 'post', path: '/runs/{run}/cancel', role: 'operate', summary: 'cancel a run for good' },
    body: z.strictObject({
      reason,
      left: z.int().min(0).describe('how many rows are left, as a person typed it'),
      shown: z.int().min(0).describe('how many were left when they were asked'),
    }),
    answer: shapes.runSummary,
    handle: async (call) => {
      refuseOtherCount(await findRunById(call.deps.session, call.params.run!), call.body);
      return steer(call, 'cancel');
    },
  }),
  route({
    ...{ method: 'post', path: '/runs/{run}/rate', role: 'operate', summary: 'give a run another rate' },
    body: z.strictObject({
      reason,
      rate: z.string().min(1).max(200).nullable().describe('200/s or 200/s,100000/day; null = none of its own'),
      burst: z.int().min(1).max(1_000_000).optional(),
    }),
    answer: z.looseObject({ run: z.string(), state: z.string(), rate: z.string().nullable() }),
    handle: async ({ deps: { session }, params, body, caller }) => {
      const wanted = readPace(body.rate ?? 'none', body.burst);
      const run = await findRunById(session, params.run!);
      const { state, before } = await changeRunRate(session, run, wanted, { who: caller.name, reason: body.reason });
      return { run: run.id, state, ...jsonPace({ ...before, ...wanted }), before: jsonPace(before) };
    },
  }),
  route({
    ...{ method: 'post', path: '/runs/{run}/priority', role: 'operate', summary: 'give a run another share' },
    body: z.strictObject({ reason, priority: z.enum(priorities) }),
    answer: z.looseObject({ run: z.string(), state: z.string(), priority: z.string() }),
    handle: async ({ deps: { session }, params, body: { priority, reason }, caller }) => {
      const run = await findRunById(session, params.run!);
      const by = { who: caller.name, reason };
      const { state, before } = await changeRunPriority(session, run, priority, by);
      return { run: run.id, state, priority, before: { priority: before } };
    },
  }),
  route({
    ...{
      method: 'post',
      path: '/runs/{run}/retry',
      role: 'operate',
      summary: 'a new run of ids that an ended one left',
    },
    body: z.strictObject({
      reason,
      only: z.array(z.string().max(50)).min(1).max(50).optional(),
      priority: z.enum(priorities).optional(),
    }),
    ...{ answer: shapes.made, status: 201, isCreating: true },
    handle: retry,
  }),
  route({
    ...{ method: 'delete', path: '/runs/{run}', role: 'operate', summary: 'remove a run that has ended' },
    query: z.strictObject({ reason }),
    answer: z.looseObject({ run: z.string() }),
    handle: async ({ deps, params, query, caller }) => {
      const run = await findRunById(deps.session, params.run!);
      const order = { verb: 'runs remove', args: [run.id], options: { reason: query.reason }, target: placeOf(run) };
      return (await invokeVerb(deps, caller, order, () => import('../commands/runs.ts'))).lines.at(-1);
    },
  }),
];

/** Answers after two seconds at the latest: a cancelled run ends when its requests in flight have their answers. */
async function steer(
  { deps: { session, log }, params, body, caller }: Call<unknown, { reason: string }>,
  action: 'pause' | 'resume' | 'cancel',
  expectAbsent = false,
) {
  const run = await findRunById(session, params.run!);
  const by = { who: caller.name, reason: body.reason };
  const done = steerRun(session, run, action, { by, expectAbsent, say: () => {} });
  done.catch((error) => log.info({ run: run.id, reason: messageOf(error) }, 'an order over HTTP was not carried out'));
  const late = new Promise<null>((resolve) => setTimeout(() => resolve(null), waitMs).unref());
  const after = (await Promise.race([done, late])) ?? (await findRunById(session, run.id));
  return runSummary(after, Date.now());
}

async function resumeDetached({
  deps,
  params,
  body,
  caller,
}: Call<unknown, { reason: string; expect_absent: boolean }>) {
  const run = await findRunById(deps.session, params.run!);
  const settings = body.expect_absent ? { expectAbsent: 'true' } : {};
  const order = { args: [run.id], options: { reason: body.reason, detach: true }, target: placeOf(run), settings };
  await invokeVerb(deps, caller, { verb: 'resume', ...order }, () => import('../commands/steer.ts'));
  return runSummary(await findRunById(deps.session, run.id), Date.now());
}

/** Throws conflict unless what was typed is what was shown, and that can be what is left now. */
export function refuseOtherCount(run: Run, { left, shown }: { left: number; shown: number }): void {
  if (isSealed(run.state)) return; // there is nothing left to lose
  const now = pendingOf(run);
  const isMoving = run.state === 'running' || run.state === 'cancelling';
  if (left === shown && (isMoving ? now <= shown : now === shown)) return;
  const what =
    left === shown ? `run ${run.id} has ${plural(now, 'rows')} left` : `expected ${shown}, the number that is left`;
  throw new Problem('conflict', what, 'look at the run again, and type how many rows are left', { left: now });
}

async function retry({
  deps,
  params,
  body,
  caller,
}: Call<unknown, { reason: string; only?: string[] | undefined; priority?: string | undefined }>) {
  const run = await findRunById(deps.session, params.run!);
  const { reason, priority } = body;
  const only = body.only && readSelection(body.only.join(','));
  const options = { reason, detach: true, ...(only && { only }), ...(priority && { priority }) };
  const order = { verb: 'retry', args: [run.id], options, target: placeOf(run) };
  const { lines } = await invokeVerb(deps, caller, order, () => import('../commands/retry.ts'));
  const last = lines.at(-1);
  if (last?.type !== 'summary') throw new Problem('conflict', `run ${run.id} has nothing of that to retry`);
  return { run: String(last.run) };
}

function readSelection(text: string) {
  try {
    return parseRetrySelection(text);
  } catch (error) {
    throw new Problem('invalid', `body.only: ${messageOf(error)}`);
  }
}

function placeOf({ baseUrl, account }: Run): Target {
  return targetOf(baseUrl, account);
}
