import * as parse from '../../config/parse-setting.ts';
import { parseApprover } from '../../model/approver.ts';
import { resources } from '../../model/resource.ts';
import { input, ofRuns } from '../../operations/list-settings.ts';
import {
  type Command,
  confirmHost,
  json,
  notifying,
  only,
  partial,
  reason,
  sending,
  server,
  startAt,
  store,
  target,
  targetName,
  yes,
} from '../command.ts';

// The commands that agree on a run before it starts, and that show and prove its outcomes afterwards.

export const plan: Command = {
  name: 'plan',
  summary: 'seal what a run would delete, where and how, for approval; send nothing',
  arguments: '<files...>',
  settings: [...input, ...targetName, ...ofRuns, ...store, ...server, 'keep'],
  options: [
    partial,
    {
      flags: '--approve-by <who>',
      help: 'who must apply it: the login or EXPUNGE_USER of another person, or, for any other person with that role, role:operate or role:admin',
      parse: parseApprover,
    },
    reason,
    json,
  ],
  examples: [
    ['expunge plan old.csv --resource annotations', 'leaves the plan in the inbox'],
    ['expunge plan old.csv --resource views --rate 200/s --approve-by ben', 'for a second person'],
  ],
  overServer: true,
  load: () => import('../runs/plan.ts'),
};

const plansCommand = () => import('../runs/plans.ts');
const inInbox = [...store, ...server];

export const plans: Command = {
  name: 'plans',
  summary: 'list the plans that wait to be applied, and refuse or withdraw them',
  settings: inInbox,
  options: [{ flags: '--all', help: 'also those that were decided, or have expired, in the last 30 days' }, json],
  examples: [
    ['expunge plans', 'what waits, for whom and since when'],
    ['expunge plans show 3f9a1c20', 'a plan by the end of its id'],
  ],
  subcommands: [
    {
      name: 'show',
      summary: 'show a plan that waits',
      arguments: '<plan>',
      settings: inInbox,
      options: [json],
      examples: [['expunge plans show 3f9a1c20', 'its ids, target and rules']],
      overServer: true,
      load: plansCommand,
    },
    {
      name: 'refuse',
      summary: 'refuse a plan for good',
      arguments: '<plan>',
      settings: inInbox,
      options: [reason, json],
      examples: [['expunge plans refuse 3f9a1c20 --reason "wrong list"', 'and say why']],
      overServer: true,
      load: plansCommand,
    },
    {
      name: 'withdraw',
      summary: 'remove a plan and its list from the inbox',
      arguments: '<plan>',
      settings: inInbox,
      options: [yes, json],
      examples: [['expunge plans withdraw 3f9a1c20', 'asks first']],
      overServer: true,
      load: plansCommand,
    },
  ],
  overServer: true,
  load: plansCommand,
};

export const apply: Command = {
  name: 'apply',
  summary: 'carry out a plan, if list, target and rules are still as planned; repeat to resume',
  arguments: '<plan>',
  settings: [...target, ...sending, ...notifying, ...store, ...server, 'keep'],
  options: [
    startAt,
    { flags: '--detach', help: 'leave the deleting to the workers of this target' },
    yes,
    { flags: '--confirm <n>', help: 'confirm if exactly this many ids would be deleted', parse: parse.count },
    confirmHost,
    json,
    reason,
  ],
  examples: [
    ['expunge apply 3f9a1c20', 'shows the plan whose id ends so, and asks for the number of ids'],
    ['expunge apply 3f9a1c20 --confirm 6001 --reason OPS-77 --detach', 'for scripts, with the workers'],
  ],
  overServer: true,
  load: () => import('../runs/apply.ts'),
};

export const report: Command = {
  name: 'report',
  summary: 'write what happened to every row of a run',
  arguments: '[run]',
  settings: [...store, ...server, 'resource', 'resourceColumn', 'column', 'noHeader', 'delimiter', 'comments', 'limit'],
  options: [
    {
      flags: '--format <format>',
      help: 'csv, ndjson, or html: a page about the run (default: csv)',
      parse: parse.oneOf(['csv', 'ndjson', 'html']),
    },
    { flags: '-o, --output <file>', help: 'write to this file instead of stdout' },
    only('only these rows, by outcome or code: failed,unknown,http_409'),
    {
      flags: '--join <files...>',
      help: 'the CSV files of the run, to copy with the outcome of each row in added columns',
    },
    {
      flags: '--manifest <file>',
      help: 'also write the SHA-256 of this report, of the list and of the definitions, with the totals of the ended run',
      parse: parse.text,
    },
    {
      flags: '--check <file>',
      help: 'compute the report of a manifest again, and name what differs',
      parse: parse.text,
    },
    { flags: '--verify', help: 'check that every row has exactly one outcome' },
    { flags: '--spreadsheet-safe', help: 'also neutralise ids a spreadsheet could take for formulas' },
    { flags: '--json', help: 'with --output, --verify or --check: print what was done as JSON on stdout' },
  ],
  examples: [
    ['expunge report 20261120-1602-m4tz --output report.csv', 'one line per row, in input order'],
    ['expunge report 20261120-1602-m4tz --only rejected,http_403 -o rest.csv', 'some of the rows; a list again'],
    [
      'expunge report 20261120-1602-m4tz --join old.csv --column view_id -o joined.csv',
      'next to the columns of the list',
    ],
    ['expunge report 20261120-1602-m4tz --format ndjson | jq -r .outcome', 'for other tools'],
    ['expunge report 20261120-1602-m4tz -o report.csv --manifest manifest.json', 'for an auditor'],
    ['expunge report --check manifest.json', 'exits 1 and names what differs'],
    ['expunge report 20261120-1602-m4tz --format html --output report.html', 'a page to read, also on a phone'],
    ['expunge report 20261120-1602-m4tz --verify', 'exits 1 if the ledger does not add up'],
  ],
  overServer: true,
  load: () => import('../evidence/report.ts'),
};

export const verify: Command = {
  name: 'verify',
  summary: 'send the DELETE of some deleted ids of a run again: all must be gone',
  arguments: '<run>',
  settings: [...target, 'requestTimeoutMs', 'stopFile', 'protect', 'protectColumn', ...store],
  options: [
    {
      flags: '--sample <n>',
      help: 'how many of its deleted ids, chosen at random; needed',
      parse: parse.integerFrom(1, 10_000), // the sample is held in memory
    },
    yes,
    { flags: '--confirm <n>', help: 'confirm if exactly this many requests would be sent', parse: parse.count },
    confirmHost,
    reason,
    json,
  ],
  examples: [
    ['expunge verify 20261120-1602-m4tz --sample 200', 'shows what is sent and asks; exits 0 if all were gone'],
    ['expunge verify 20261120-1602-m4tz --sample 50 --confirm 50 --json', 'for scripts'],
  ],
  load: () => import('../evidence/verify.ts'),
};

export const explain: Command = {
  name: 'explain',
  summary: 'show the outcome of one id in every run of the target, and the reason',
  get arguments() {
    return `<${resources.join('|')}> <id>`;
  },
  settings: ['baseUrl', 'account', 'clientId', ...store, ...server],
  options: [json],
  examples: [
    ['expunge explain annotations a-000017', 'each run and line it was in, newest first'],
    ['expunge explain views v-12 --json | jq -r .outcome', 'for scripts'],
  ],
  overServer: true,
  load: () => import('../evidence/explain.ts'),
};
