import type { Command, OwnOption } from './command.ts';
import { json, reason, store } from './shared-options.ts';

const stopSettings = ['baseUrl', 'account', 'clientId', ...store] as const;
const allAccounts: OwnOption = {
  flags: '--all-accounts',
  help: 'of all accounts of that base URL that Redis knows by a run, a worker, a schedule or a stop',
};
const stopOptions = [allAccounts, reason, json];
const loadStop = () => import('./stop-all.ts');

export const stopAll: Command = {
  name: 'stop-all',
  summary: 'stop sending requests of all runs of a target, within a second, until start-all; nothing is asked',
  settings: stopSettings,
  options: stopOptions,
  examples: [
    ['expunge stop-all --base-url https://api.example.com --reason "they call us"', 'no run sends anything any more'],
    ['expunge stop-all', 'the target of the configuration file'],
    ['expunge stop-all --base-url https://api.example.com --all-accounts', 'whatever account they are for'],
  ],
  load: loadStop,
};

export const startAll: Command = {
  name: 'start-all',
  summary: 'let the runs of a target go on that stop-all stopped',
  settings: stopSettings,
  options: stopOptions,
  examples: [
    ['expunge start-all --base-url https://api.example.com', 'those that were running go on'],
    ['expunge start-all --reason "solved"', 'and say why'],
    ['expunge start-all --base-url https://api.example.com --all-accounts', 'those of all accounts'],
  ],
  load: loadStop,
};
