import * as parse from '../config/parse-setting.ts';
import { type SettingName, settings } from '../config/settings.ts';
import { type Command, json, reason, sending, share, store, target, yes } from './command.ts';
import { shells } from './completion-scripts.ts';
import { runs } from './runs-verb.ts';
import { sandbox } from './sandbox-verb.ts';
import { schedule } from './schedule-verbs.ts';
import { startAll, stopAll, target as targetVerbs } from './target-verbs.ts';

const input = [
  'resource',
  'resourceColumn',
  'format',
  'column',
  'noHeader',
  'delimiter',
  'limit',
  'protect',
  'allowIdChars',
  'allowPlaceholders',
  'expectRejected',
  'maxDeletes',
] as const;

const run: Command = {
  name: 'run',
  summary: 'delete the ids of a list and report what happened to each; repeat to resume',
  arguments: '<files...>',
  settings: [...input, ...target, 'onStatus', 'expectAbsent', 'rate', 'burst', ...sending, ...store, 'keep'],
  options: [
    { flags: '-n, --dry-run', help: 'read everything and show the plan; send nothing' },
    { flags: '--detach', help: 'leave the deleting to the workers of this target' },
    share,
    yes,
    { flags: '--confirm <n>', help: 'confirm if exactly this many ids would be deleted', parse: parse.count },
    json,
    reason,
  ],
  examples: [
    ['expunge run old.csv --resource annotations --dry-run', 'show what would happen'],
    ['expunge run old.csv.gz --resource views --column view_id --rate 400/s', 'delete at most 400 a second'],
    ['zcat old.txt.gz | expunge run - --resource views --confirm 1203', 'take ids from a pipe'],
  ],
  load: () => import('./run.ts'),
};

const worker: Command = {
  name: 'worker',
  summary: 'process the detached runs of a target until stopped; start as many as needed',
  settings: [...target, 'rate', 'burst', ...sending, ...store, 'http', 'logLevel'],
  options: [
    {
      flags: '--workers <n>',
      help: 'run this many processes under one supervisor (default: 1)',
      parse: parse.integerFrom(1, 256),
    },
  ],
  examples: [
    ['expunge worker --base-url https://api.example.com', 'serve one target'],
    ['expunge worker --base-url https://api.example.com --max-concurrency 32', 'at most 32 requests at once'],
    ['expunge worker --base-url https://api.example.com --http 9464', 'with probes and metrics'],
    ['expunge worker --base-url https://api.example.com --workers 4', 'with four processes'],
  ],
  load: () => import('./worker.ts'),
};

const status: Command = {
  name: 'status',
  summary: 'show the progress of a run; without a run, the state of the target',
  arguments: '[run]',
  settings: [...store, 'baseUrl', 'account', 'clientId', 'separateLimits'],
  options: [
    { flags: '--watch', help: 'keep showing it until it ends' },
    { flags: '--audit', help: 'show everything that was done to it: by whom, when and why' },
    json,
  ],
  examples: [
    ['expunge status 20261120-1602-m4tz', 'once'],
    ['expunge status 20261120-1602-m4tz --audit', 'with its whole audit trail'],
    ['expunge status 20261120-1602-m4tz --watch', 'with a live panel'],
    ['expunge status 20261120-1602-m4tz --json | jq .pending', 'for scripts'],
    ['expunge status --base-url https://api.example.com', 'whether a target is stopped or held, by whom, until when'],
  ],
  load: () => import('./status.ts'),
};

const steer = () => import('./steer.ts');

const pause: Command = {
  name: 'pause',
  summary: 'stop sending requests of a run, within a second, from any machine',
  arguments: '<run>',
  settings: store,
  options: [reason, json],
  examples: [
    ['expunge pause 20261120-1602-m4tz', 'until somebody resumes it'],
    ['expunge pause 20261120-1602-m4tz --reason "release window"', 'and say why'],
  ],
  load: steer,
};

const resume: Command = {
  name: 'resume',
  summary: 'resume a paused or halted run',
  arguments: '<run>',
  settings: [...store, 'expectAbsent'],
  options: [
    { flags: '--detach', help: 'leave a run whose command has ended to the workers of its target' },
    reason,
    json,
  ],
  examples: [
    ['expunge resume 20261120-1602-m4tz', 'go on'],
    ['expunge resume 20261120-1602-m4tz --reason "release is out"', 'and say why'],
    ['expunge resume 20261120-1602-m4tz --expect-absent', 'of a list that is mostly gone already'],
    ['expunge resume 20261120-1602-m4tz --detach', 'by the workers, where its command was killed'],
  ],
  load: steer,
};

const cancel: Command = {
  name: 'cancel',
  summary: 'end a run permanently; ids not yet attempted are left alone',
  arguments: '<run>',
  settings: store,
  options: [yes, reason, json],
  examples: [
    ['expunge cancel 20261120-1602-m4tz', 'asks first'],
    ['expunge cancel 20261120-1602-m4tz --yes --reason "wrong list"', 'for scripts'],
  ],
  load: steer,
};

const rate: Command = {
  name: 'rate',
  summary: 'give a live run another rate, within a second, from any machine',
  arguments: '<run> <rate|none>',
  settings: store,
  options: [
    {
      flags: '--burst <n>',
      help: 'requests that may leave at once (default: as before)',
      parse: parse.integerFrom(1, 1_000_000),
    },
    reason,
    json,
  ],
  examples: [
    ['expunge rate 20261120-1602-m4tz 200/s', 'at most 200 a second, spread evenly'],
    ['expunge rate 20261120-1602-m4tz 200/s,100000/day', 'and never more than 100,000 in any 24 hours'],
    ['expunge rate 20261120-1602-m4tz none --reason "the night is ours"', 'no bound of its own any more'],
  ],
  load: () => import('./rate.ts'),
};

const priority: Command = {
  name: 'priority',
  summary: 'give a live run another share of the workers, within a second, from any machine',
  arguments: '<run> <high|normal|low>',
  settings: store,
  options: [reason, json],
  examples: [
    ['expunge priority 20261120-1602-m4tz high', 'four times what a normal run gets beside it'],
    ['expunge priority 20261120-1602-m4tz low --reason "it can wait"', 'a quarter of it'],
  ],
  load: () => import('./priority.ts'),
};

const report: Command = {
  name: 'report',
  summary: 'write what happened to every row of a run',
  arguments: '<run>',
  settings: store,
  options: [
    { flags: '--format <format>', help: 'csv or ndjson (default: csv)', parse: parse.oneOf(['csv', 'ndjson']) },
    { flags: '-o, --output <file>', help: 'write to this file instead of stdout' },
    { flags: '--verify', help: 'check that every row has exactly one outcome' },
    { flags: '--spreadsheet-safe', help: 'also neutralise ids a spreadsheet could take for formulas' },
    { flags: '--json', help: 'with --output or --verify: print JSON on stdout about what was done' },
  ],
  examples: [
    ['expunge report 20261120-1602-m4tz --output report.csv', 'one line a row, in input order'],
    ['expunge report 20261120-1602-m4tz --format ndjson | jq -r .outcome', 'for other tools'],
    ['expunge report 20261120-1602-m4tz --verify', 'exits 1 if the ledger does not add up'],
  ],
  load: () => import('./report.ts'),
};

const check: Command = {
  name: 'check',
  summary: 'check settings, token, Redis and API; deletes nothing except what --probe-id names',
  settings: [...target, 'onStatus', 'resource', 'requestTimeoutMs', ...store],
  options: [
    { flags: '--verdicts', help: 'print what each answer of the API would mean, and which halt a run' },
    { flags: '--probe-id <id>', help: 'delete this object of --resource, to test the API' },
    reason,
    json,
  ],
  examples: [
    ['expunge check --base-url https://api.example.com', 'before the first run'],
    [
      'expunge check --resource views --probe-id v-000001',
      'and whether the API takes the token, by deleting this view',
    ],
    ['expunge check --verdicts', 'what a 404, a 409 or a 503 would mean'],
    ['expunge check --verdicts --on-status 404=failed', 'the same with another meaning of 404'],
  ],
  load: () => import('./check.ts'),
};

const config: Command = {
  name: 'config',
  summary: 'show settings and where they come from',
  settings: [],
  examples: [],
  subcommands: [
    {
      name: 'show',
      summary: 'show every setting, its value and where it comes from',
      settings: Object.keys(settings) as SettingName[],
      options: [json],
      examples: [
        ['expunge config show', 'what a command would use here'],
        ['expunge config show --config staging.json', 'with another configuration file'],
      ],
      load: () => import('./config.ts'),
    },
  ],
  load: null,
};

const redis: Command = {
  name: 'redis',
  summary: 'show or stop the private Redis of this folder',
  settings: [],
  examples: [],
  subcommands: [
    {
      name: 'status',
      summary: 'show whether the private Redis is running, and where its data is',
      settings: store,
      options: [json],
      examples: [
        ['expunge redis status', 'of ./.expunge'],
        ['expunge redis status --state-dir /var/lib/expunge', 'of another folder'],
      ],
      load: () => import('./redis.ts'),
    },
    {
      name: 'stop',
      summary: 'stop the private Redis; its data is kept; where others use it, it asks first',
      settings: store,
      options: [yes, json],
      examples: [
        ['expunge redis stop', 'of ./.expunge'],
        ['expunge redis stop --yes', 'also under a worker'],
        ['expunge redis stop --state-dir /var/lib/expunge', 'of another folder'],
      ],
      load: () => import('./redis.ts'),
    },
  ],
  load: null,
};

const quickstart: Command = {
  name: 'quickstart',
  summary: 'show a whole run against a sandbox',
  settings: store,
  examples: [['npm run quickstart', 'sandbox, run and report in one go']],
  hidden: true,
  load: () => import('./quickstart.ts'),
};

const help: Command = {
  name: 'help',
  summary: 'explain a topic or a command; without one, list them',
  arguments: '[topic...]',
  settings: [],
  options: [{ flags: '--all', help: 'of a command: every setting' }],
  examples: [
    ['expunge help rates', 'how fast ids are deleted, and what makes a run wait'],
    ['expunge help exit-codes', 'what a script can rely on'],
  ],
  load: () => import('./show-help.ts'),
};

const completion: Command = {
  name: 'completion',
  summary: 'print a script that lets a shell complete verbs, options, their values and run ids',
  arguments: `<${shells.join('|')}>`,
  settings: [],
  examples: [
    ['source <(expunge completion bash)', 'in ~/.bashrc'],
    ['source <(expunge completion zsh)', 'in ~/.zshrc, below compinit'],
    ['expunge completion fish | source', 'in ~/.config/fish/config.fish'],
  ],
  withoutSettings: true,
  load: () => import('./completion.ts'),
};

/** Every verb, in the order of the help. */
export const verbs: readonly Command[] = [
  run,
  worker,
  schedule,
  runs,
  status,
  pause,
  resume,
  cancel,
  rate,
  priority,
  stopAll,
  startAll,
  targetVerbs,
  report,
  check,
  config,
  redis,
  sandbox,
  completion,
  help,
  quickstart,
];
