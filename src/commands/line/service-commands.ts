import * as parse from '../../config/parse-setting.ts';
import { flagSettings } from '../../config/settings.ts';
import { throttlingStatus } from '../../model/status.ts';
import { retryAfterForms } from '../../sandbox/fault-kinds.ts';
import {
  type Command,
  confirmHost,
  faults,
  json,
  notifying,
  type OwnOption,
  protectReading,
  reason,
  sending,
  store,
  target,
  yes,
} from '../command.ts';
import { shells } from './completion.ts';

// The commands that run, check and configure the services around a run: workers, the private Redis, the sandbox and the shell.

export const worker: Command = {
  name: 'worker',
  summary: 'process the detached runs of a target until stopped; start as many as needed',
  settings: [
    ...target,
    ...sending,
    ...store,
    'workers',
    'http',
    'openMetrics',
    'trustProxyUser',
    'trustProxyFrom',
    'trustProxyHost',
    'trustProxyRole',
    'trustProxyGroups',
    'trustProxyGroupRoles',
    'logLevel',
    'logFormat',
    'results',
    'resultsHeaderFile',
    ...notifying,
  ],
  examples: [
    ['expunge worker --base-url https://api.example.com', 'serve one target'],
    ['expunge worker --base-url https://api.example.com --max-concurrency 32', 'at most 32 requests at once'],
    ['expunge worker --base-url https://api.example.com --http 9464', 'with probes and metrics'],
    ['expunge worker --base-url https://api.example.com --workers 4', 'with four processes'],
    [
      'expunge worker --base-url https://api.example.com --results /srv/results',
      'and write the report files of each run to a folder',
    ],
    [
      'expunge worker --base-url https://api.example.com --notify https://ops.example.com/hook',
      'and post its events to a webhook',
    ],
  ],
  load: () => import('../processes/worker.ts'),
};

export const check: Command = {
  name: 'check',
  summary: 'check settings, token, Redis and API; sends no DELETE without --probe-id or --semantics',
  settings: [...target, 'onStatus', 'resource', 'protect', ...protectReading, 'requestTimeoutMs', ...store],
  options: [
    { flags: '--verdicts', help: 'print what each answer of the API would mean, and which halt a run' },
    { flags: '--probe-id <id>', help: 'delete this object of --resource, to test the API' },
    {
      flags: '--semantics',
      help: 'send DELETEs for objects that cannot exist, and remember whether the API answers with a success',
    },
    {
      flags: '--absent-id <id>',
      help: 'with --semantics: this id of --resource, which does not exist (default: a random one)',
    },
    yes,
    {
      flags: '--confirm <n>',
      help: 'confirm --semantics if exactly this many requests would be sent',
      parse: parse.count,
    },
    confirmHost,
    reason,
    json,
  ],
  examples: [
    ['expunge check --base-url https://api.example.com', 'before the first run'],
    [
      'expunge check --resource views --probe-id v-000001',
      'and whether the API accepts the token, by deleting this view',
    ],
    ['expunge check --semantics', 'what a 204 of this API proves; asks before it sends anything'],
    ['expunge check --verdicts', 'what a 404, a 409 or a 503 would mean'],
    ['expunge check --verdicts --on-status 404=failed', 'the same with another meaning of 404'],
  ],
  load: () => import('../setup/check.ts'),
};

export const config: Command = {
  name: 'config',
  summary: 'show settings and where they come from',
  settings: [],
  examples: [],
  subcommands: [
    {
      name: 'show',
      summary: 'show every setting, its value and where it comes from',
      settings: flagSettings,
      options: [json],
      examples: [
        ['expunge config show', 'what a command would use here'],
        ['expunge config show --config staging.json', 'with another configuration file'],
      ],
      load: () => import('../setup/config.ts'),
    },
  ],
  load: null,
};

export const redis: Command = {
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
      load: () => import('../processes/redis.ts'),
    },
    {
      name: 'stop',
      summary: 'stop the private Redis and keep its data; asks first if other processes use it',
      settings: store,
      options: [yes, json],
      examples: [
        ['expunge redis stop', 'of ./.expunge'],
        ['expunge redis stop --yes', 'also under a worker'],
        ['expunge redis stop --state-dir /var/lib/expunge', 'of another folder'],
      ],
      load: () => import('../processes/redis.ts'),
    },
  ],
  load: null,
};

/** Options for the contents, the speed and the faults of the sandbox. */
const sandboxOptions: readonly OwnOption[] = [
  { flags: '--port <n>', help: 'listen here (default: any free port)', parse: parse.integerFrom(0, 65_535) },
  { flags: '--host <address>', help: 'listen on this address (default: 127.0.0.1)' },
  {
    flags: '--resource <counts>',
    help: 'create these: annotations=5000,views=20 (default: 1000 of each resource)',
    parse: parse.objectCounts,
  },
  { flags: '--objects <file>', help: 'a CSV of resource,id instead of made objects' },
  { flags: '--rate-limit <n/s>', help: `answer ${throttlingStatus} above this rate`, parse: parse.perSecond },
  {
    flags: '--rate-window <duration>',
    help: 'count the rate in windows of this length instead of evenly: 1s, 1min',
    parse: windowMs,
  },
  {
    flags: '--retry-after <form>',
    help: `send Retry-After with those ${throttlingStatus}: ${retryAfterForms.join(', ')}`,
    parse: parse.oneOf(retryAfterForms),
  },
  faults,
  { flags: '--latency-ms <ms>', help: 'answer after this long', parse: parse.integerFrom(0, 600_000) },
  { flags: '--write-token <file>', help: 'write the access token there, for --token-file' },
  { flags: '--journal', help: 'keep every request, and show at /journal what came and what was executed' },
  json,
];

export const sandbox: Command = {
  name: 'sandbox',
  summary: 'serve a test API on this machine, with fault injection',
  settings: [],
  options: sandboxOptions,
  examples: [
    ['expunge sandbox --port 8080', 'with 1,000 annotations and 1,000 views'],
    ['expunge sandbox --rate-limit 300/s --faults status-503=0.02,reset=0.005', 'with faults'],
    ['expunge sandbox --rate-limit 6000/min --rate-window 1min --retry-after seconds', 'with a quota for each minute'],
  ],
  load: () => import('../processes/sandbox.ts'),
};

export const alerts: Command = {
  name: 'alerts',
  summary: 'print alert rules for Prometheus',
  settings: [],
  examples: [['expunge alerts', 'redirect them to a rules file of Prometheus']],
  withoutSettings: true,
  load: () => import('../setup/alerts.ts'),
};

export const completion: Command = {
  name: 'completion',
  summary: 'print a script that lets a shell complete commands, options, their values and run ids',
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

export const help: Command = {
  name: 'help',
  summary: 'explain a topic or a command; without one, list them',
  arguments: '[topic...]',
  settings: [],
  withoutSettings: true, // people need it while a setting is wrong
  options: [{ flags: '--all', help: 'of a command: every setting' }],
  examples: [
    ['expunge help rates', 'how fast ids are deleted, and what makes a run wait'],
    ['expunge help exit-codes', 'what a script can rely on'],
  ],
  load: () => import('./show-help.ts'),
};

export const quickstart: Command = {
  name: 'quickstart',
  summary: 'show a whole run against a sandbox',
  settings: store,
  examples: [['npm run quickstart', 'sandbox, run and report in one go']],
  hidden: true,
  load: () => import('../setup/quickstart.ts'),
};

function windowMs(text: string): number {
  const ms = parse.duration(text);
  if (ms > 0) return ms;
  throw new Error(`expected a duration above 0, got "${text}"`);
}
