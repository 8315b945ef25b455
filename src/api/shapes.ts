import { z } from 'zod';
import { runStates } from '../ledger/run.ts';
import { causes } from '../ledger/standing.ts';
import { outcomes } from '../model/outcome.ts';
import { roles } from '../model/role.ts';

// The contents of answers. The objects are those that --json prints, and may get further fields: expunge help json explains them.

const time = z.iso.datetime();
const text = z.string();
const count = z.int().min(0);
const optional = <T extends z.ZodType>(schema: T) => schema.nullable();

export const list = <T extends z.ZodType>(item: T) => z.object({ items: z.array(item) });

const outcomeWord = z.object({
  outcome: text,
  means: text,
  is_success: z.boolean(),
  is_retryable: z.boolean(),
  of_id: z.boolean(),
  is_left: z.boolean().describe('never sent, because the run ended before; this is not a failure'),
});

const reach = optional(z.array(z.object({ fp: text, target: text, account: text }))).describe(
  'all that it sees and steers; null: every target',
);

export const me = z.object({
  name: text,
  role: z.enum(roles),
  targets: reach,
  version: text.describe('of the server'),
  worker_of: z.string().nullable().describe('fingerprint of the target whose worker answers; null: a dashboard'),
});

/** The host of a protected target, as a person typed it. */
export const confirmHost = z
  .string()
  .max(300)
  .optional()
  .describe('the host of a protected target, as a person typed it');

/** A moment that a body gives. A moment of 1970 or before would mean none, as 0 does in a record. */
const givenMoment = z.iso.datetime().refine((text) => Date.parse(text) > 0, 'expected a future time');

/** The earliest start of a run, in a body that makes one. */
export const startAt = givenMoment.optional().describe('nothing of the run is sent before then');

/** When a run pauses, in a body that makes one. */
export const stopAt = givenMoment.optional();

export const words = z.object({
  outcomes: z.array(outcomeWord),
  resources: z.array(text),
  definitions: z.record(text, z.looseObject({ path: text })).describe('how the configured resources are deleted'),
});

const states = z.enum(runStates);
const counts = Object.fromEntries(outcomes.map((outcome) => [outcome, count]));

/** Why nothing is sent; null while requests are sent, and for a run that has ended. */
const standing = optional(
  z.object({
    why: z.enum(causes),
    text: text.describe('the same for people'),
    since: optional(time),
    until: optional(time).describe('null: no time ends it, or it is not known'),
    by: optional(text).describe('who asked for it'),
    next: optional(text).describe('the command that ends it; null: it ends by itself'),
    also: z.array(z.enum(causes)).describe('the other causes that hold it'),
  }),
);

const runSummary = z.looseObject({
  run: text,
  revision: count.describe('moves with every change of its state, its rules and its pauses'),
  state: states,
  reason: text,
  standing,
  rows: count,
  pending: count,
  ...counts,
  attempts: count,
  answers_with_body: count.describe('answers that were a 204 with a body'),
  seconds: z.number(),
  exit: optional(z.int()),
  starts_at: optional(time).describe('nothing of it is sent before this moment'),
  target: text,
  account: text,
  fp: text,
  files: z.array(text),
  note: text,
  labels: z.record(text, text),
  created_at: time,
  created_by: text,
  started_at: optional(time),
  changed_at: optional(time),
  ended_at: optional(time),
  who: text,
  detached: z.boolean(),
  per_second: optional(z.number()),
  seconds_left: optional(z.number()),
  retry_of: optional(text),
  retried_by: z.array(text),
});

/** The revision in an action that continues or removes a run. */
export const seen = count.describe(
  'the revision of the run that the person was shown; if it has changed since, nothing is done',
);

/** The revision in an action that loosens something for a target. */
export const seenTarget = count.describe(
  'the revision of the target that the person was shown; if it has changed since, nothing is done',
);

/** The revision in an action that runs, continues or removes a schedule. */
export const seenSchedule = count.describe(
  'the revision of the schedule that the person was shown; if it has changed since, nothing is done',
);

/** Warnings that a person must not miss, such as a target without a worker; [] = none. */
export const warnings = z.array(text);

/** The commands in an answer, each as its words without the program: the name of the command comes first. */
export const commands = z.array(z.array(text).min(1)).optional();

export const steered = runSummary.extend({
  warnings,
  commands,
  changed: z.boolean().nullable().describe('whether the action changed anything; null = it is still being done'),
});

export const runPage = list(runSummary).extend({ next: optional(text) });

const audit = z.array(z.looseObject({ at: time, action: text, by: text, who: text, reason: text }));

const haltExample = z.object({ id: text, outcome: text, code: text, excerpt: text });

export const runDetail = runSummary.extend({
  sentence: text.describe('what it does now, and why not faster'),
  starts_in_seconds: optional(z.number()).describe('until its start; null once it has come'),
  abandoned: z.boolean(),
  protected_host: optional(text).describe('the host that has to be typed before ids are sent again'),
  has_command: optional(z.boolean()).describe(
    'whether a command deletes it; null: workers do, it has ended, or Redis does not say',
  ),
  note: text,
  command: text,
  plan: optional(text),
  ids: count,
  plan_changed: optional(text).describe('which rules of the plan were loosened since, and by whom'),
  settings: z.looseObject({ rate: optional(text), window: optional(text) }),
  warnings,
  examples: z.array(haltExample).describe('a few ids that show why it halted, with what was answered'),
  behind_halt: optional(text).describe('the outcomes of all of them, as `only` of its report takes them'),
  audit,
});

export const verification = z.object({
  run: text,
  retry_of: optional(text),
  retried_by: z.array(text),
  adds_up: z.boolean(),
  problem: optional(text),
  rows: count,
  pending: count,
  ...counts,
});

export const runRecord = z
  .looseObject({
    run: z.looseObject({ id: text, state: states }),
    context: z.looseObject({}),
    audit: z.array(z.looseObject({})),
  })
  .describe('a run as it is stored, for the command of the same version; its form changes with that');

export const targetRecord = z
  .looseObject({ status: z.looseObject({}), trail: z.array(z.looseObject({})) })
  .describe('a target as it is stored, for the command of the same version');

export const history = z.object({
  points: z.array(z.looseObject({ from: time, to: time, open: z.boolean(), requests: count, throttled: count })),
  events: z.array(z.object({ at: time, event: text, text })),
  waits: z.array(z.object({ from: time, to: z.nullable(time), text })),
});

const stop = optional(z.looseObject({ by: text, who: text, reason: text, at: time }));

export const target = z.looseObject({
  fp: text,
  target: text,
  account: text,
  revision: count.describe('moves with every change of its stops, its limit, its grace and its known losses'),
  stop,
  processes: count,
  per_second: optional(z.number()),
  limit: optional(z.looseObject({ rate: text })).describe('the limit of all that is sent to it'),
  min_grace: optional(z.looseObject({ grace: text })).describe('the shortest grace period of its later runs'),
  limiter: optional(z.looseObject({ per_second: z.number() })).describe('null: nothing was ever sent there'),
  runs: z.record(text, count).describe('runs that have not ended, by state'),
});

const worker = z.object({
  fp: text,
  target: text,
  account: text,
  process: text,
  seen_at: time,
  stop,
  connections: optional(count).describe('how many requests at once it has room for; null while it has no ids to send'),
});

export const targetDetail = target.extend({ workers: z.array(worker), audit });

export const schedule = z.looseObject({
  warnings: warnings.optional().describe('of an action'),
  commands: commands.describe('in its warnings'),
  fp: text,
  target: text,
  account: text,
  name: text,
  state: text,
  revision: count.describe('moves with every change of its definition, its state and its pauses'),
  reason: text,
  cron: text,
  tz: text,
  from: text,
  when: text.describe('in words'),
  next: optional(time),
});

export const found = list(z.looseObject({ run: z.looseObject({ id: text }), found: z.looseObject({}) }))
  .extend({ searched: z.object({ runs: count, rows: count }), warnings: z.array(text) })
  .describe('rows as they are stored, for the command of the same version');

export const knownTargets = list(
  z.looseObject({ fp: text, baseUrl: text, account: text, live: z.record(text, count), stops: z.looseObject({}) }),
).describe('targets as they are stored, for the command of the same version');

export const scheduleRecords = list(
  z.looseObject({
    schedule: z.looseObject({ name: text }),
    history: z.array(z.looseObject({})),
    facts: z.looseObject({}),
  }),
).describe('schedules as they are stored, for the command of the same version');

export const overview = z.object({
  at: time,
  runs: z.object({ active: z.array(runSummary), recent: z.array(runSummary), ended: count }),
  targets: z.array(target),
  workers: z.array(worker),
  schedules: z.array(schedule),
});

export const made = z.object({ run: text, warnings, commands });

const expected = z.object({
  seconds: optional(count).describe('null: the speed of the API is not known'),
  seconds_from: count.describe('at least'),
  seconds_to: optional(count).describe('at most, if nothing fails'),
  ends_at: optional(time),
  ends_from: time,
  ends_to: optional(time),
  per_second: optional(z.number()).describe('the rate that is expected'),
  fits: optional(count).describe('ids that are sent before the run pauses; null: all of them'),
  because: z.array(text),
});

/** A plan that Redis keeps, and the decision about it. */
const keptPlanFields = {
  plan: text,
  fp: text,
  target: text,
  account: text,
  name: text,
  state: z.enum(['waiting', 'applied', 'refused', 'expired']),
  confirm: count.describe('how many ids it deletes'),
  planned_by: text,
  planned_at: time,
  reason: text,
  approve_by: optional(text).describe('who has to apply it: a name, role:operate or role:admin; null: anyone who may'),
  expires_at: time,
  decided_by: optional(text),
  decided_at: optional(time),
  decision: optional(text).describe('why it was applied or refused'),
  run: optional(text).describe('the run that carries it out'),
  may_apply: z.boolean().optional().describe('whether the caller may apply it'),
};

export const keptPlan = z.object(keptPlanFields);

export const plan = z.looseObject({
  plan: text,
  expires_at: time,
  fp: text,
  target: text,
  account: text,
  name: text,
  state: text,
  may_apply: z.boolean().describe('whether the caller may apply it'),
  waits: z.boolean().describe('whether it is in the inbox'),
  confirm: count,
  counts: z.record(text, count),
  rejected: z.record(text, count).describe('rows by the code of their rejection'),
  rejected_samples: z
    .array(z.object({ line: count, id: text, code: text, reason: text.optional() }))
    .describe('the first of these rows'),
  record: z.looseObject({}).describe('the plan as the command of the same version shows it'),
  changed_rules: z.record(text, text).describe('rules that are not as by default, by their flags'),
  samples: z.array(text),
  looks: z
    .object({
      shapes: z.array(z.object({ count, like: text, file: text, line: count, is_odd: z.boolean() })),
      odd: count.describe('ids that look unlike nearly all others'),
      pattern: optional(text).describe('what all ids but those match'),
    })
    .describe('what its ids look like, with the first id of each shape'),
  first: optional(z.object({ url: text })),
  requests: count.describe('how many it takes at least'),
  expected,
  starts_after_seconds: z
    .number()
    .describe('how long after it is accepted its run starts, by its grace period and the minimum of the target'),
});

export const failures = z.object({
  items: z.array(
    z.looseObject({
      outcome: text,
      code: text,
      words: text,
      count,
      samples: z.array(z.looseObject({ file: text, line: count, id: text, excerpt: text })),
    }),
  ),
});
