import { z } from 'zod';
import type { Verb } from '../commands/command.ts';
import { messageOf } from '../errors.ts';
import { plural } from '../format.ts';
import { isSealed, pendingOf, priorities, type Run } from '../ledger/run.ts';
import { parseRetrySelection } from '../model/selection.ts';
import { targetOf } from '../model/target.ts';
import { invokeVerb, type Order } from './invoke.ts';
import { runSummary } from './overview.ts';
import { Problem } from './problem.ts';
import { type Call, type Route, route } from './route.ts';
import { findRunById } from './run-view.ts';
import * as shapes from './shapes.ts';

/** Why somebody does this, for the audit trail. */
export const reason = z.string().trim().max(500).default('').describe('why, for the audit trail');

const waitMs = 2_000;

/** What steers a run: each order goes the way of the command, with its checks and its entry in the audit trail. */
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
      max_deletes: z.int().min(1).optional().describe('how many ids it may send in all'),
    }),
    answer: shapes.runSummary,
    handle: (call) => {
      const { expect_absent: expectAbsent, detach, max_deletes: maxDeletes } = call.body;
      const settings = expectAbsent ? { expectAbsent: 'true' } : {};
      return steer(call, 'resume', { detach: detach || undefined, maxDeletes }, settings);
    },
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
    handle: (call) => change(call, 'rate', call.body.rate ?? 'none', { burst: call.body.burst }),
  }),
  route({
    ...{ method: 'post', path: '/runs/{run}/priority', role: 'operate', summary: 'give a run another share' },
    body: z.strictObject({ reason, priority: z.enum(priorities) }),
    answer: z.looseObject({ run: z.string(), state: z.string(), priority: z.string() }),
    handle: (call) => change(call, 'priority', call.body.priority),
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
      only: z.array(z.string().max(50)).min(1).max(50).optional().describe('outcomes and codes; all that failed'),
      priority: z.enum(priorities).optional(),
    }),
    ...{ answer: shapes.made, status: 201, isCreating: true },
    handle: async (call) => {
      const only = call.body.only && readSelection(call.body.only.join(','));
      const options = { detach: true, only, priority: call.body.priority };
      const { lines } = await order(call, { verb: 'retry', options }, () => import('../commands/retry.ts'));
      const last = lines.at(-1);
      if (last?.type === 'summary') return { run: String(last.run) };
      throw new Problem('conflict', `run ${call.params.run} has nothing of that to retry`);
    },
  }),
  route({
    ...{ method: 'delete', path: '/runs/{run}', role: 'operate', summary: 'remove a run that has ended' },
    query: z.strictObject({ reason }),
    answer: z.looseObject({ run: z.string() }),
    handle: async (call) => {
      const given = { ...call, body: call.query };
      return (await order(given, { verb: 'runs remove' }, () => import('../commands/runs.ts'))).lines.at(-1);
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

/** Answers after two seconds at the latest: a cancelled run ends when its requests in flight have their answers. */
async function steer(
  call: RunCall,
  verb: 'pause' | 'resume' | 'cancel',
  options: Record<string, unknown> = {},
  settings: Order['settings'] & object = {},
) {
  const { session, log } = call.deps;
  const done = order(call, { verb, options, settings }, () => import('../commands/steer.ts'));
  done.catch((error) => log.info({ verb, reason: messageOf(error) }, 'an order was not carried out'));
  const late = new Promise((resolve) => setTimeout(resolve, waitMs).unref());
  await Promise.race([done, late]);
  return runSummary(await findRunById(session, call.params.run!), Date.now());
}

const changes = { rate: () => import('../commands/rate.ts'), priority: () => import('../commands/priority.ts') };

async function change(call: RunCall, verb: keyof typeof changes, to: string, options: Record<string, unknown> = {}) {
  const { lines } = await order(call, { verb, args: [to], options }, changes[verb]);
  const { v: _, type: __, ...facts } = lines.at(-1) ?? {};
  return facts;
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

function readSelection(text: string) {
  try {
    return parseRetrySelection(text);
  } catch (error) {
    throw new Problem('invalid', `body.only: ${messageOf(error)}`);
  }
}
