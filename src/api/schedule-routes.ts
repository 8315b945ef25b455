import { z } from 'zod';
import { namePattern, nameRule } from '../config/list-source.ts';
import { priorities } from '../ledger/run.ts';
import { resources } from '../model/resource.ts';
import { missedPolicies, overlapPolicies } from '../schedule/schedule.ts';
import { invokeVerb, type Order } from './invoke.ts';
import { type Call, type Route, route } from './route.ts';
import { reason } from './run-routes.ts';
import * as shapes from './shapes.ts';
import { knownTargetOf } from './targets.ts';

const name = z.string().regex(namePattern, `expected a name of ${nameRule}`);
const setting = z.string().min(1).max(500).optional();

const definition = z.strictObject({
  target: z.string().length(16).describe('fingerprint of the target'),
  name,
  cron: z.string().min(1).max(200).describe('five fields, or six with seconds'),
  tz: z.string().min(1).max(100).default('UTC'),
  from: name.describe('a source by its name in the configuration file of the workers; no command and no URL'),
  max_deletes: z.int().min(1),
  resource: z.enum(resources).optional(),
  ...{ overlap: z.enum(overlapPolicies).optional(), missed: z.enum(missedPolicies).optional() },
  ...{ grace_seconds: z.number().min(1).max(86_400).optional(), max_growth: z.number().gt(1).max(1_000).optional() },
  ...{ allow_empty: z.boolean().optional(), priority: z.enum(priorities).optional(), replace: z.boolean().optional() },
  ...{ rate: setting, max_failures: setting, on_status: setting, canary: setting, window: setting, column: setting },
  expect_absent: z.boolean().optional(),
  reason,
});

/** What steers schedules. Their lists come from named sources only: nobody can name a command, a file or a URL here. */
export const scheduleRoutes: readonly Route[] = [
  route({
    ...{ method: 'post', path: '/schedules', role: 'operate', summary: 'add a schedule, or change one' },
    ...{ body: definition, answer: shapes.schedule, status: 201, isCreating: true },
    handle: add,
  }),
  steer('pause', 'pause a schedule'),
  steer('resume', 'let a schedule go on'),
  steer('remove', 'remove a schedule; its runs stay'),
  route({
    ...{ method: 'post', path: '/schedules/{fp}/{name}/run', role: 'operate', summary: 'make a run of it now' },
    body: z.strictObject({ reason, dry_run: z.boolean().default(false) }),
    ...{ answer: z.looseObject({ schedule: z.string() }), isCreating: true },
    handle: (call) => {
      const options = { reason: call.body.reason, ...(call.body.dry_run && { dryRun: true }) };
      return invoke(call, 'schedule run', options, () => import('../commands/schedule-run.ts'));
    },
  }),
];

function steer(action: 'pause' | 'resume' | 'remove', summary: string): Route {
  return route({
    ...{ method: 'post', path: `/schedules/{fp}/{name}/${action}`, role: 'operate', summary },
    ...{ body: z.strictObject({ reason }), answer: z.looseObject({ name: z.string(), state: z.string() }) },
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
  const { lines } = await invokeVerb(deps, caller, { verb, args: [params.name!], options: options!, target }, load);
  const { v: _, type: __, ...facts } = lines.at(-1) ?? {};
  return { ...facts, fp: target.fp, target: target.baseUrl, account: target.account };
}

function add(call: Call<unknown, z.output<typeof definition>>) {
  const { body } = call;
  const text = (value: unknown) => (value === undefined ? undefined : String(value));
  const options = {
    ...{ cron: body.cron, tz: body.tz, from: body.from, reason: body.reason },
    ...{ overlap: body.overlap, missed: body.missed, priority: body.priority, maxGrowth: body.max_growth },
    ...{ grace: body.grace_seconds && body.grace_seconds * 1_000, allowEmpty: body.allow_empty, replace: body.replace },
  };
  const settings = {
    ...{ maxDeletes: text(body.max_deletes), resource: body.resource, rate: body.rate, canary: body.canary },
    ...{ maxFailures: body.max_failures, onStatus: body.on_status, window: body.window, column: body.column },
    ...(body.expect_absent && { expectAbsent: 'true' }),
  };
  return addTo(call, options, settings);
}

async function addTo(
  { deps, caller, body }: Call<unknown, z.output<typeof definition>>,
  options: object,
  settings: object,
) {
  const target = await knownTargetOf(deps.session, body.target);
  const given = Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));
  const order: Order = { verb: 'schedule add', args: [body.name], options: given, settings, target };
  const { lines } = await invokeVerb(deps, caller, order, () => import('../commands/schedule-add.ts'));
  const { v: _, type: __, ...facts } = lines.at(-1) ?? {};
  return { ...facts, fp: target.fp, target: target.baseUrl, account: target.account };
}
