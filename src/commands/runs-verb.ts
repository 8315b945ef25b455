import * as parse from '../config/parse-setting.ts';
import { runOrders } from '../ledger/list-runs.ts';
import { runStates } from '../ledger/run.ts';
import { type Command, json, type OwnOption, reason, store, yes } from './command.ts';

/** Which runs are listed, and in which order. */
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
  settings: store,
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
      settings: store,
      options: [yes, reason, json],
      examples: [
        ['expunge runs remove 20261120-1602-m4tz', 'asks first'],
        ['expunge runs remove 20261120-1602-m4tz --yes --reason "a trial"', 'for scripts'],
      ],
      load: () => import('./runs.ts'),
    },
  ],
  load: () => import('./runs.ts'),
};
