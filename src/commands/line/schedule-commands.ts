import * as parse from '../../config/parse-setting.ts';
import { webhookUrl } from '../../config/parse-url.ts';
import { missedPolicies, scheduledSettings } from '../../schedule/schedule.ts';
import {
  allHalted,
  type Command,
  confirmHost,
  json,
  type OwnOption,
  reason,
  server,
  store,
  targetName,
  yes,
} from '../command.ts';

const where = [...targetName, ...store] as const;
const adding = () => import('../schedules/schedule-add.ts');
const listing = () => import('../schedules/schedule-list.ts');
const running = () => import('../schedules/schedule-run.ts');
const steering = () => import('../schedules/schedule-steer.ts');

const addOptions: readonly OwnOption[] = [
  { flags: '--cron <pattern>', help: 'when: five fields, or six with seconds, as in "0 3 * * *"' },
  { flags: '--tz <zone>', help: 'time zone: Europe/Berlin (default: UTC)' },
  {
    flags: '--from <source>',
    help: 'where the list comes from: a name among the "sources" of the workers’ configuration file',
  },
  {
    flags: '--missed <policy>',
    help: 'occurrences missed while no worker listened: backfill none (default) or latest',
    parse: parse.oneOf(missedPolicies),
  },
  {
    flags: '--max-delay <duration>',
    help: 'an occurrence handled later than this is missed (default: 10min)',
    parse: parse.duration,
  },
  {
    flags: '--max-growth <k>',
    help: 'pause at a list of more than k × the median of the last ten (default: 3)',
    parse: parse.factor,
  },
  {
    flags: '--heartbeat <url>',
    help: 'call this URL (GET) at the end of each successful occurrence, so that a monitor notices a missing one',
    parse: webhookUrl,
  },
  {
    flags: '--at-most <n>',
    help: 'delete at most this many ids of the list per occurrence, and carry the others over to the next (default: all)',
    parse: parse.integerFrom(1, 1_000_000_000),
  },
  {
    flags: '--max-duration <time>',
    help: 'pause each run after this much deleting time: 90min, 2h (default: no limit)',
    parse: parse.longDuration,
  },
  {
    flags: '--stop-at <time>',
    help: 'pause each run at this time of day, by the clocks of --tz: 06:00, "06:00 Europe/Berlin" (default: never)',
    parse: parse.timeOfDay,
  },
  { flags: '--retry-failed', help: 'send again the ids that the run of the last occurrence left as failed or unknown' },
  { flags: '--replace', help: 'change the schedule of that name' },
];

const add: Command = {
  name: 'add',
  summary: 'add a schedule: workers of the target that have its source make its runs',
  arguments: '<name>',
  settings: [...scheduledSettings, ...where, ...server],
  options: [...addOptions, confirmHost, reason, json],
  examples: [
    [
      'expunge schedule add nightly --cron "0 3 * * *" --tz Europe/Berlin --from expired --resource views --max-deletes 5000',
      'every night, never more than 5,000',
    ],
    [
      'expunge schedule add hourly --cron "0 * * * *" --from inbox --resource annotations --max-deletes 100',
      'each hour, unless the last run has not ended',
    ],
    [
      'expunge schedule add backlog --cron "0 1 * * *" --from expired --resource views --max-deletes 5000 --at-most 5000 --retry-failed',
      'a long list in parts, a part every night',
    ],
  ],
  overServer: true,
  load: adding,
};

const list: Command = {
  name: 'list',
  summary: 'show the schedules of a target, when they are due next, and how the last occurrences ended',
  settings: [...where, ...server],
  options: [json],
  examples: [
    ['expunge schedule list', 'as a table'],
    ['expunge schedule list --json | jq .reason', 'with definition, history and audit trail'],
  ],
  overServer: true,
  load: listing,
};

const preview: Command = {
  name: 'preview',
  summary: 'show the next runs, across clock changes',
  arguments: '<name>',
  settings: [...where, ...server],
  options: [
    { flags: '--count <n>', help: 'how many (default: 5)', parse: parse.integerFrom(1, 1_000) },
    {
      flags: '--after <time>',
      help: 'from this moment on, as in 2027-03-13T12:00Z (default: now)',
      parse: parse.moment,
    },
    json,
  ],
  examples: [
    ['expunge schedule preview nightly', 'the next five'],
    ['expunge schedule preview nightly --after 2027-03-27 --count 3', 'around a clock change'],
  ],
  overServer: true,
  load: listing,
};

const run: Command = {
  name: 'run',
  summary: 'make a run of a schedule now, on this machine, under the same guards',
  arguments: '<name>',
  settings: [...where, ...server, 'proxy'],
  options: [{ flags: '-n, --dry-run', help: 'read the list and evaluate the guards; delete nothing' }, reason, json],
  examples: [
    ['expunge schedule run nightly --dry-run', 'what would be deleted today'],
    ['expunge schedule run nightly --reason "after the import"', 'leave it to the workers, and say why'],
  ],
  overServer: true,
  load: running,
};

const pause: Command = {
  name: 'pause',
  summary: 'start no more runs; a running one continues',
  arguments: '<name>',
  settings: [...where, ...server],
  options: [reason, json],
  examples: [
    ['expunge schedule pause nightly', 'until it is resumed'],
    ['expunge schedule pause nightly --reason "audit"', 'and say why'],
  ],
  overServer: true,
  load: steering,
};

const resume: Command = {
  name: 'resume',
  summary: 'resume with the next occurrence, and accept the list that a guard rejected',
  arguments: '[name]',
  settings: [...where, ...server],
  options: [...allHalted('schedules'), reason, json],
  examples: [
    ['expunge schedule resume nightly', 'resume it'],
    ['expunge schedule resume nightly --reason "the list is right"', 'and say why'],
    [
      'expunge schedule resume --all --halted credentials',
      'all that the same halts paused, once their runs are resumed',
    ],
  ],
  overServer: true,
  load: steering,
};

const remove: Command = {
  name: 'remove',
  summary: 'remove a schedule; its runs stay',
  arguments: '<name>',
  settings: [...where, ...server],
  options: [yes, reason, json],
  examples: [
    ['expunge schedule remove nightly', 'asks first'],
    ['expunge schedule remove nightly --yes --reason "done for good"', 'for scripts'],
  ],
  overServer: true,
  load: steering,
};

/** `expunge schedule …`. */
export const schedule: Command = {
  name: 'schedule',
  summary: 'delete on a schedule: add, list, preview, run, pause, resume and remove schedules',
  settings: [],
  examples: [],
  subcommands: [add, list, preview, run, pause, resume, remove],
  load: null,
};
