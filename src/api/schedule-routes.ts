import { z } from 'zod';
import { namePattern, nameRule } from '../config/list-source.ts';
import { timeOfDay } from '../config/parse-setting.ts';
import { apiField, type Config, settings } from '../config/settings.ts';
import type { Target } from '../model/target.ts';
import type { Advice } from '../model/to-type.ts';
import type { ScheduleAction } from '../operations/action.ts';
import { localSchedules } from '../operations/local-schedules.ts';
import type { ScheduleOperations } from '../operations/operations.ts';
import { madeFacts } from '../operations/run-schedule.ts';
import { toDefinition } from '../operations/schedule-definition.ts';
import {
  type Definition,
  missedPolicies,
  parseStoredSettings,
  type Schedule,
  type ScheduledSettings,
  scheduledSettings,
} from '../schedule/schedule.ts';
import { readSchedule } from '../schedule/schedule-store.ts';
import { whenText } from '../terminal/schedule-text.ts';
import { targetFields } from './overview.ts';
import { withOwnRedis } from './own-redis.ts';
import { Problem, parsedAs } from './problem.ts';
import { type Call, type Route, route } from './route.ts';
import { reason } from './run-routes.ts';
import { scheduleSettings } from './sent-settings.ts';
import { bodyFields } from './setting-fields.ts';
import * as shapes from './shapes.ts';
import { findKnownTarget } from './targets.ts';
import { spellOutWarnings } from './warnings.ts';

const name = z.string().regex(namePattern, `expected a name of ${nameRule}`);
const replace = z.boolean().optional().describe('change the schedule of that name: what is not given stays as it is');

const definition = z.strictObject({
  target: z.string().length(16).describe('fingerprint of the target'),
  name,
  cron: z.string().min(1).max(1_000).describe('five fields, or six with seconds'),
  tz: z.string().min(1).max(100).optional().describe('UTC by default'),
  from: name.describe('a source by its name in the configuration file of the workers; no command and no URL'),
  missed: z.enum(missedPolicies).optional(),
  max_delay_seconds: z.number().min(0).optional(),
  max_growth: z.number().gt(1).optional(),
  at_most: z.int().min(0).optional().describe('0 = all'),
  retry_failed: z.boolean().optional(),
  max_duration_seconds: z.number().min(0).max(31_536_000).optional().describe('0 = no limit'),
  stop_at: z.string().max(100).optional().describe('06:00 or 06:00 Europe/Berlin; empty = never'),
  replace,
  ...bodyFields(scheduleSettings),
  max_deletes: z.int().min(1),
  confirm_host: shapes.confirmHost,
  reason: reason
    .removeDefault()
    .optional()
    .describe('why; where a schedule is changed without one, it keeps the one it has'),
});

const steered = z.looseObject({ name: z.string(), state: z.string(), warnings: shapes.warnings });

const runNow = z.strictObject({ reason, seen: shapes.seenSchedule });

/** Routes that steer schedules. Their lists come from named sources only: a request cannot name a command, a file or a URL. */
export const scheduleRoutes: readonly Route[] = [
  route({
    method: 'post',
    path: '/schedules',
    role: 'operate',
    about: 'target',
    summary: 'add a schedule, or change one',
    body: definition,
    answer: shapes.schedule,
    status: 201,
    isCreating: true,
    handle: add,
  }),
  route({
    method: 'post',
    path: '/schedules/{fp}/{name}/pause',
    role: 'operate',
    summary: 'pause a schedule',
    body: z.strictObject({ reason }),
    answer: steered,
    handle: (call) => steer(call, (schedules, given) => schedules.pause(given)),
  }),
  route({
    method: 'post',
    path: '/schedules/{fp}/{name}/resume',
    role: 'operate',
    summary: 'resume a schedule',
    body: z.strictObject({ reason, seen: shapes.seenSchedule }),
    answer: steered,
    handle: (call) => steer(call, (schedules, given) => schedules.resume({ ...given, seen: call.body.seen })),
  }),
  route({
    method: 'post',
    path: '/schedules/{fp}/{name}/remove',
    role: 'operate',
    summary: 'remove a schedule; its runs stay',
    body: z.strictObject({ reason, seen: shapes.seenSchedule }),
    answer: steered,
    handle: (call) => steer(call, (schedules, given) => schedules.remove({ ...given, seen: call.body.seen })),
  }),
  route({
    method: 'post',
    path: '/schedules/{fp}/{name}/run',
    role: 'operate',
    summary: 'make a run of it now',
    body: runNow,
    answer: z.looseObject({ schedule: z.string(), warnings: shapes.warnings }),
    isCreating: true,
    made: ({ name: schedule }, run) => ({ schedule, outcome: 'started', run, warnings: [] }),
    handle: run,
  }),
];

/**
 * Throws unless this server is a worker of the target: the list would come from the source of that name in its own configuration file, and only
 * workers of the target have the right one.
 */
function requireOwnTarget({ workerOf }: Call['deps'], { fp, name }: Record<string, string>): void {
  if (workerOf === fp) return;
  throw new Problem(
    'conflict',
    `this server is not a worker of the target of schedule ${name}: its own sources may be lists of other targets`,
    (toType) =>
      `send this to a worker of that target with --http, or run it on its machine: ${toType('schedule run', name!)}`,
  );
}

/** Source commands learn who asked for the run. */
function withSchedules<T>(
  { deps, caller }: Pick<Call, 'deps' | 'caller'>,
  body: (schedules: ScheduleOperations) => Promise<T>,
): Promise<T> {
  const { config, log } = deps;
  const env = { ...deps.env, EXPUNGE_USER: caller.name };
  return withOwnRedis(deps, (session) => body(localSchedules(session, { config, env, log })));
}

type ActionCall = Call<unknown, { reason: string }>;

/** An action for the schedule of the path, in the name of the caller. */
async function actionOf({ deps, params, body, caller }: ActionCall): Promise<ScheduleAction> {
  const target = await findKnownTarget(deps.session, params.fp!);
  return { target, name: params.name!, by: { who: caller.name, reason: body.reason } };
}

async function steer(
  call: ActionCall,
  does: (schedules: ScheduleOperations, action: ScheduleAction) => ReturnType<ScheduleOperations['pause']>,
) {
  const action = await actionOf(call);
  const { facts } = await withSchedules(call, (schedules) => does(schedules, action));
  return placed(action.target, facts, []);
}

async function run(call: Call<unknown, z.output<typeof runNow>>) {
  requireOwnTarget(call.deps, call.params);
  const { seen } = call.body;
  const action = { ...(await actionOf(call)), stop: new AbortController().signal };
  const { name: schedule, target } = action;
  return withSchedules(call, async (schedules) => {
    const { made, warnings } = await schedules.run({ ...action, seen, onRun: call.onRun });
    return placed(target, madeFacts(schedule, made), warnings);
  });
}

function placed(target: Target, facts: Record<string, unknown>, warnings: readonly Advice[]) {
  return { ...facts, ...targetFields(target), ...spellOutWarnings(warnings) };
}

type Body = z.output<typeof definition>;

async function add(call: Call<unknown, Body>) {
  const { deps, caller, body } = call;
  const target = await findKnownTarget(deps.session, body.target);
  const found = body.replace === true ? await readSchedule(deps.session.redis, target.fp, body.name) : null;
  const before = found?.state === 'removed' ? null : found;
  const action = {
    target,
    name: body.name,
    by: { who: caller.name, reason: body.reason ?? '' },
    definition: definedBy(body, before, deps.config),
    replace: body.replace === true,
    confirmHost: body.confirm_host,
    seen: before?.revision ?? (body.replace === true ? 0 : undefined), // 0: none existed, and one that was added since belongs to another action
    // A file that the settings of this server add is read again; any other file is on the machines of the workers.
    protectedList: before?.settings.protect === undefined ? undefined : before.protectedList,
  };
  const { done, facts, warnings } = await withSchedules(call, (schedules) => schedules.add(action));
  const when = whenText(action.definition);
  return placed(target, { done, ...facts, when }, warnings);
}

/**
 * The definition in a body, with what stays of a schedule that is changed, including its heartbeat and its protected ids, which a body cannot
 * contain.
 */
function definedBy(body: Body, before: Schedule | null, own: Config): Definition {
  const { max_delay_seconds: maxDelaySeconds, max_duration_seconds: maxSeconds, stop_at: stopAt } = body;
  return toDefinition({
    cron: body.cron,
    tz: body.tz ?? before?.tz,
    from: body.from,
    missed: body.missed ?? before?.missed,
    maxDelayMs: maxDelaySeconds === undefined ? before?.maxDelayMs : Math.round(1_000 * maxDelaySeconds),
    maxGrowth: body.max_growth ?? before?.maxGrowth,
    atMost: body.at_most ?? before?.atMost,
    retryFailed: body.retry_failed ?? before?.retryFailed,
    maxActiveMs: maxSeconds === undefined ? before?.maxActiveMs : Math.round(1_000 * maxSeconds),
    stopAt: stopAt ? parsedAs('body.stop_at', stopAt, timeOfDay) : (stopAt ?? before?.stopAt),
    settings: readSettings(textsOf(body, before, own)),
    heartbeat: before?.heartbeat,
    note: body.reason ?? before?.note,
  });
}

type Texts = Definition['settings'];

/** The settings as texts for their flags; missing ones mean the default. */
function textsOf(body: Body, before: Schedule | null, own: Config): Texts {
  const texts = changedBy(body, before?.settings ?? {});
  return texts.protect === undefined && own.protect !== undefined ? { ...protectionOf(own), ...texts } : texts;
}

/** The settings with the values of a body: a text, true or false; null = the default, and a missing one stays as it is. */
function changedBy(body: Body, before: Texts): Texts {
  const values = body as Record<string, string | number | boolean | null | undefined>;
  const texts = { ...before };
  for (const name of scheduleSettings) {
    const value = values[apiField(name)];
    if (value === null) delete texts[name];
    else if (value !== undefined) texts[name] = String(value);
  }
  return texts;
}

/** The protected ids of the server apply to the schedules that it adds: they only ever keep ids from being deleted. */
function protectionOf({ protect, protectColumn, expectUnprotected }: Config): Texts {
  return {
    protect: protect!,
    ...(protectColumn !== undefined && { protectColumn }),
    expectUnprotected: String(expectUnprotected),
  };
}

/** The values of these settings. Throws `invalid` for any value that a flag would also refuse. */
function readSettings(texts: Texts): ScheduledSettings {
  const given = scheduledSettings.filter((name) => texts[name] !== undefined);
  const values = given.map((name) => [name, parsedAs<unknown>(apiField(name), texts[name]!, settings[name].parse)]);
  return { ...parseStoredSettings({ settings: {} }), ...Object.fromEntries(values) };
}
