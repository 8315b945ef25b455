import { z } from 'zod';
import { namePattern, nameRule } from '../config/list-source.ts';
import { apiField, settings, settingText } from '../config/settings.ts';
import { priorities } from '../model/priority.ts';
import { missedPolicies, overlapPolicies, type Schedule } from '../schedule/schedule.ts';
import { readSchedule } from '../schedule/schedule-store.ts';
import { invokeVerb, lastFacts, type Order } from './invoke.ts';
import { Problem } from './problem.ts';
import { type Call, type Route, route } from './route.ts';
import { reason } from './run-routes.ts';
import { scheduleSettings } from './sent-settings.ts';
import { bodyFields } from './setting-fields.ts';
import * as shapes from './shapes.ts';
import { knownTargetOf } from './targets.ts';

const name = z.string().regex(namePattern, `expected a name of ${nameRule}`);
const replace = z.boolean().optional().describe('change the schedule of that name: what is not given stays as it is');

const definition = z.strictObject({
  target: z.string().length(16).describe('fingerprint of the target'),
  name,
  cron: z.string().min(1).max(1_000).describe('five fields, or six with seconds'),
  tz: z.string().min(1).max(100).optional().describe('UTC by default'),
  from: name.describe('a source by its name in the configuration file of the workers; no command and no URL'),
  overlap: z.enum(overlapPolicies).optional(),
  missed: z.enum(missedPolicies).optional(),
  grace_seconds: z.number().min(0).optional(),
  max_growth: z.number().gt(1).optional(),
  at_most: z.int().min(0).optional().describe('0 = all'),
  retry_failed: z.boolean().optional(),
  priority: z.enum(priorities).optional(),
  replace,
  ...bodyFields(scheduleSettings),
  max_deletes: z.int().min(1),
  reason: reason
    .removeDefault()
    .optional()
    .describe('why; where a schedule is changed without one, it keeps the one it has'),
});

/** What steers schedules. Their lists come from named sources only: nobody can name a command, a file or a URL here. */
export const scheduleRoutes: readonly Route[] = [
  route({
    method: 'post',
    path: '/schedules',
    role: 'operate',
    summary: 'add a schedule, or change one',
    body: definition,
    answer: shapes.schedule,
    status: 201,
    isCreating: true,
    handle: add,
  }),
  steer('pause', 'pause a schedule'),
  steer('resume', 'let a schedule go on'),
  steer('remove', 'remove a schedule; its runs stay'),
  route({
    method: 'post',
    path: '/schedules/{fp}/{name}/run',
    role: 'operate',
    summary: 'make a run of it now',
    body: z.strictObject({ reason, dry_run: z.boolean().default(false) }),
    answer: z.looseObject({ schedule: z.string(), warnings: shapes.warnings }),
    isCreating: true,
    made: ({ name: schedule }, run) => ({ schedule, outcome: 'started', run, warnings: [] }),
    handle: (call) => {
      refuseElsewhere(call.deps, call.params);
      const { reason, dry_run: isDry } = call.body;
      const options = { reason, onRun: call.onRun, ...(isDry && { dryRun: true }) };
      return invoke(call, 'schedule run', options, () => import('../commands/schedule-run.ts'));
    },
  }),
];

/** The list would come from the source of that name in the configuration file of this server: only workers of the target have the right one. */
function refuseElsewhere({ workerOf }: Call['deps'], { fp, name }: Record<string, string>): void {
  if (workerOf === fp) return;
  throw new Problem(
    'conflict',
    `this server is no worker of the target of schedule ${name}: its own sources may be lists of other targets`,
    `order it at a worker of that target with --http, or on its machine: expunge schedule run ${name}`,
  );
}

function steer(action: 'pause' | 'resume' | 'remove', summary: string): Route {
  return route({
    method: 'post',
    path: `/schedules/{fp}/{name}/${action}`,
    role: 'operate',
    summary,
    body: z.strictObject({ reason }),
    answer: z.looseObject({ name: z.string(), state: z.string(), warnings: shapes.warnings }),
    handle: (call) =>
      invoke(call, `schedule ${action}`, { reason: call.body.reason }, () => import('../commands/schedule-steer.ts')),
  });
}

async function invoke(
  call: Call<unknown, unknown>,
  verb: string,
  options: Order['options'],
  load: Parameters<typeof invokeVerb>[3],
) {
  const { deps, caller, params } = call;
  const target = await knownTargetOf(deps.session, params.fp!);
  const { lines, warnings } = await invokeVerb(
    deps,
    caller,
    { verb, args: [params.name!], options: options!, target },
    load,
  );
  return { ...lastFacts(lines), fp: target.fp, target: target.baseUrl, account: target.account, warnings };
}

type AddCall = Call<unknown, z.output<typeof definition>>;

async function add({ deps, caller, body }: AddCall) {
  const target = await knownTargetOf(deps.session, body.target);
  const before = body.replace === true ? await readSchedule(deps.session.redis, target.fp, body.name) : null;
  const kept = before === null || before.state === 'removed' ? null : keptOf(before, body.reason === undefined);
  const options = { ...kept?.options, ...given(optionsOf(body)) };
  const settings = { keep: defaultKeep, ...withoutNulls({ ...kept?.settings, ...given(settingsOf(body)) }) };
  if (settings.rate === undefined && body.burst == null) delete settings.burst; // it says nothing, and would be refused
  const order: Order = { verb: 'schedule add', args: [body.name], options, settings, target };
  const { lines, warnings } = await invokeVerb(deps, caller, order, () => import('../commands/schedule-add.ts'));
  return { ...lastFacts(lines), fp: target.fp, target: target.baseUrl, account: target.account, warnings };
}

const defaultKeep = settingText('keep', settings.keep.fallback)!; // not that of this server

function optionsOf(body: AddCall['body']) {
  return {
    cron: body.cron,
    tz: body.tz,
    from: body.from,
    reason: body.reason,
    overlap: body.overlap,
    missed: body.missed,
    priority: body.priority,
    maxGrowth: body.max_growth,
    grace: body.grace_seconds === undefined ? undefined : Math.round(1_000 * body.grace_seconds),
    replace: body.replace,
    atMost: body.at_most,
    retryFailed: body.retry_failed,
  };
}

/** The settings of a body, as texts for their flags; null = as by default. */
function settingsOf(body: AddCall['body']): Record<string, string | null | undefined> {
  const values = body as Record<string, string | number | boolean | null | undefined>;
  const texts = scheduleSettings.map((name) => [name, values[apiField(name)]] as const);
  return Object.fromEntries(texts.map(([name, value]) => [name, value == null ? value : String(value)]));
}

/** What stays of a schedule that is changed: also what cannot be said here, like its protected ids, which are on the machines of its workers. */
function keptOf({ tz, overlap, missed, priority, maxGrowth, graceMs, ...schedule }: Schedule, isNoteKept: boolean) {
  const { atMost, retryFailed, heartbeat: keptHeartbeat, note, protectedList, settings } = schedule;
  const options = {
    tz,
    overlap,
    missed,
    priority,
    maxGrowth,
    atMost,
    retryFailed,
    keptHeartbeat,
    // A file that the settings of this server add is read anew.
    protectedList: settings.protect === undefined ? undefined : protectedList,
  };
  return { options: { ...options, grace: graceMs, ...(isNoteKept && { note }) }, settings };
}

function given<T extends object>(all: T): Partial<T> {
  return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined)) as Partial<T>;
}

function withoutNulls(all: Record<string, string | null | undefined>): NonNullable<Order['settings']> {
  return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== null));
}
