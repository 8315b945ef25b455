import * as parse from '../../config/parse-setting.ts';
import { runOrders } from '../../ledger/list-runs.ts';
import { runStates } from '../../ledger/run.ts';
import type { ResumeSettings } from '../../ledger/run-rules.ts';
import { input, ofRuns } from '../../operations/list-settings.ts';
import {
  allHalted,
  type Command,
  confirmHost,
  faults,
  json,
  notifying,
  type OwnOption,
  only,
  partial,
  reason,
  retryInput,
  sending,
  server,
  startAt,
  store,
  target,
  yes,
} from '../command.ts';

// The commands that make, show and change runs.

/** The flags of `resume` for rules of the run; `--max-deletes` is an option of its own there, with another meaning. */
const resumeSettings = Object.keys({
  expectAbsent: true,
  expect: true,
  onStatus: true,
} satisfies Record<Exclude<keyof ResumeSettings, 'maxDeletes'>, true>) as Exclude<keyof ResumeSettings, 'maxDeletes'>[];

/** Options for how the ids of a list are deleted. */
const deletion: readonly OwnOption[] = [
  partial,
  startAt,
  {
    flags: '--stop-at <moment>',
    isRare: true,
    help: 'pause it then, until it is resumed: 06:00, "06:00 Europe/Berlin", 2026-11-20T16:00Z; none: never',
    parse: parse.orNone((text) => parse.futureMoment(text), 0),
  },
  {
    flags: '--max-duration <time>',
    isRare: true,
    help: 'pause it after this much deleting time since it was last started: 90min, 2h; none: never',
    parse: parse.orNone(parse.longDuration, 0),
  },
  { flags: '-n, --dry-run', help: 'read everything and show the plan; send nothing' },
  { flags: '--detach', help: 'leave the deleting to the workers of this target' },
  yes,
  { flags: '--confirm <n>', help: 'confirm if exactly this many ids would be deleted', parse: parse.count },
  confirmHost,
  json,
  reason,
];

/** Options of a rehearsal. */
const rehearsal: readonly OwnOption[] = [
  { flags: '--rehearse', help: 'do it all against a sandbox here, and delete nothing' },
  { ...faults, help: `with --rehearse: ${faults.help}`, isRare: true },
];

export const run: Command = {
  name: 'run',
  summary: 'delete the ids of a list and report what happened to each; repeat to resume',
  arguments: '<files...>',
  settings: [...input, ...target, ...ofRuns, ...sending, ...notifying, ...store, ...server, 'keep'],
  options: [...deletion, ...rehearsal],
  examples: [
    ['expunge run old.csv --resource annotations --dry-run', 'show what would happen'],
    ['expunge run old.csv.gz --resource views --column view_id --rate 400/s', 'delete at most 400 a second'],
    ['zcat old.txt.gz | expunge run - --resource views --confirm 1203', 'take ids from a pipe'],
  ],
  overServer: () => import('../runs/send-list.ts'),
  load: () => import('../runs/run.ts'),
};

export const retry: Command = {
  name: 'retry',
  summary: 'delete the ids of an ended run that failed, are unknown or were not attempted, as a new run',
  arguments: '<run>',
  settings: [...retryInput, ...target, ...ofRuns, ...sending, ...notifying, ...store, ...server, 'keep'],
  options: [
    {
      ...only('only these of them, by outcome or code: failed,http_409 (default: all)'),
      parse: parse.retrySelection,
    },
    ...deletion,
  ],
  examples: [
    ['expunge retry 20261120-1602-m4tz', 'what failed, is unknown or was not attempted'],
    ['expunge retry 20261120-1602-m4tz --only http_409,timeout --dry-run', 'show what would be retried'],
    ['expunge retry 20261120-1602-m4tz --only unknown --yes --detach', 'with the workers'],
  ],
  overServer: () => import('../runs/retry-at-server.ts'),
  load: () => import('../runs/retry.ts'),
};

/** Options for which runs are listed, and in which order. */
const choosing: readonly OwnOption[] = [
  {
    flags: '--state <states>',
    help: 'only those in one of these states: running,paused',
    parse: parse.someOf(runStates),
  },
  {
    flags: '--since <time>',
    help: 'only those submitted since: 2d, 90min, 2026-11-20, 2026-11-20T16:00Z',
    parse: (text) => parse.momentOrAgo(text),
  },
  { flags: '--target <text>', help: 'only those whose base URL or account contains this text', parse: parse.text },
  { flags: '--list <text>', help: 'only those with a file whose name contains this text', parse: parse.text },
  {
    flags: '--label <name=value>',
    help: 'only those that have this label; several are separated by commas',
    parse: parse.labels,
  },
  { flags: '--by <text>', help: 'only those whose submitter contains this text', parse: parse.text },
  {
    flags: '--sort <order>',
    help: `by ${runOrders.join(', ')}; the newest or largest first (default: created)`,
    parse: parse.oneOf(runOrders),
  },
  { flags: '--limit <n>', help: 'at most this many (default: 50; with --json all)', parse: parse.positiveInteger },
  { flags: '--all', help: 'all of them' },
];

export const runs: Command = {
  name: 'runs',
  summary: 'list the runs that Redis knows',
  settings: [...store, ...server],
  options: [...choosing, json],
  examples: [
    ['expunge runs', 'the newest 50'],
    ['expunge runs --state running,paused --since 2d', 'what began in the last two days and has not ended'],
    ['expunge runs --target api.example.com --sort failed --limit 5', 'where most ids failed'],
    ['expunge runs remove 20261120-1602-m4tz', 'forget an ended run'],
  ],
  subcommands: [
    {
      name: 'remove',
      summary: 'remove an ended run from Redis; a report of it that was written stays',
      arguments: '<run>',
      settings: [...store, ...server],
      options: [yes, reason, json],
      examples: [
        ['expunge runs remove 20261120-1602-m4tz', 'asks first'],
        ['expunge runs remove 20261120-1602-m4tz --yes --reason "a trial"', 'for scripts'],
      ],
      overServer: true,
      load: () => import('../evidence/runs.ts'),
    },
  ],
  overServer: true,
  load: () => import('../evidence/runs.ts'),
};

export const status: Command = {
  name: 'status',
  summary: 'show the progress of a run; without a run, the state of the target',
  arguments: '[run]',
  settings: [...store, ...server, 'baseUrl', 'account', 'clientId'],
  options: [
    { flags: '--watch', help: 'keep showing it until it ends, halts or is paused, then exit with its exit code' },
    { flags: '--audit', help: 'show everything that was done to it: by whom, when and why' },
    { flags: '--history', help: 'with --json: its progress over time, and its events' },
    json,
  ],
  examples: [
    ['expunge status 20261120-1602-m4tz', 'once'],
    ['expunge status 20261120-1602-m4tz --audit', 'with its whole audit trail'],
    ['expunge status 20261120-1602-m4tz --watch', 'with a live panel'],
    ['expunge status 20261120-1602-m4tz --json | jq .pending', 'for scripts'],
    [
      'expunge status --base-url https://api.example.com',
      'whether a target is stopped or throttled, by whom, until when',
    ],
  ],
  overServer: true,
  load: () => import('../evidence/status.ts'),
};

const steer = () => import('../actions/steer.ts');

export const pause: Command = {
  name: 'pause',
  summary: 'stop sending requests of a run, within a second, from any machine',
  arguments: '<run>',
  settings: [...store, ...server],
  options: [reason, json],
  examples: [
    ['expunge pause 20261120-1602-m4tz', 'until it is resumed'],
    ['expunge pause 20261120-1602-m4tz --reason "release window"', 'and say why'],
  ],
  overServer: true,
  load: steer,
};

export const resume: Command = {
  name: 'resume',
  summary: 'resume a paused or halted run, or all of a target that the same halt stopped',
  arguments: '[run]',
  settings: [...store, ...server, 'baseUrl', 'account', 'clientId', ...resumeSettings],
  options: [
    ...allHalted('runs'),
    { flags: '--detach', help: 'leave a run whose command has ended to the workers of its target' },
    {
      flags: '--max-deletes <n>',
      help: 'continue until this many ids of the run have an outcome, and send no others; none: any number',
      parse: parse.positiveOrNone,
    },
    reason,
    json,
  ],
  examples: [
    ['expunge resume 20261120-1602-m4tz', 'resume it'],
    ['expunge resume 20261120-1602-m4tz --reason "release is out"', 'and say why'],
    ['expunge resume 20261120-1602-m4tz --expect-absent', 'of a list that is mostly gone already'],
    ['expunge resume 20261120-1602-m4tz --on-status 403=wait', 'if the API answers 403 above its rate'],
    ['expunge resume 20261120-1602-m4tz --detach', 'with the workers, after its command was killed'],
    [
      'expunge resume --all --halted credentials --base-url https://api.example.com',
      'all of a target, with a new token',
    ],
  ],
  overServer: true,
  load: steer,
};

export const cancel: Command = {
  name: 'cancel',
  summary: 'end a run permanently; ids not yet attempted are left alone',
  arguments: '<run>',
  settings: [...store, ...server],
  options: [yes, reason, json],
  examples: [
    ['expunge cancel 20261120-1602-m4tz', 'asks first'],
    ['expunge cancel 20261120-1602-m4tz --yes --reason "wrong list"', 'for scripts'],
  ],
  overServer: true,
  load: steer,
};

export const rate: Command = {
  name: 'rate',
  summary: 'give a live run another rate, within a second, from any machine',
  arguments: '<run> <rate|none>',
  settings: [...store, ...server],
  options: [reason, json],
  examples: [
    ['expunge rate 20261120-1602-m4tz 200/s', 'at most 200 a second, spread evenly'],
    ['expunge rate 20261120-1602-m4tz 200/s,100000/day', 'and never more than 100,000 in any 24 hours'],
    ['expunge rate 20261120-1602-m4tz none --reason "the night is ours"', 'no rate of its own any more'],
  ],
  overServer: true,
  load: () => import('../actions/rate.ts'),
};
