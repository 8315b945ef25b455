import { type Command, json, type OwnOption, reason, server, store } from '../command.ts';

// The commands that change all runs of a target at once.

const who = ['baseUrl', 'account', 'clientId'] as const;
const steer = () => import('../actions/target.ts');

export const target: Command = {
  name: 'target',
  summary:
    'release a wait or an open circuit; forget the learned rate; set a limit or a minimum grace period; acknowledge lost data',
  settings: [],
  examples: [],
  subcommands: [
    {
      name: 'release',
      summary: 'end a wait that the server asked for (Retry-After) and an open circuit, within a second',
      settings: [...who, ...store, ...server],
      options: [reason, json],
      examples: [
        ['expunge target release --base-url https://api.example.com --reason "they answered by mistake"', 'resume now'],
        ['expunge status --base-url https://api.example.com', 'what there is to release'],
      ],
      overServer: true,
      load: steer,
    },
    {
      name: 'forget-rate',
      summary: 'forget the learned rate of the target and probe for it again',
      settings: [...who, ...store, ...server],
      options: [reason, json],
      examples: [
        [
          'expunge target forget-rate --base-url https://api.example.com --reason "they raised it"',
          'begins slowly again',
        ],
        ['expunge target forget-rate --account acme', 'of another account'],
      ],
      overServer: true,
      load: steer,
    },
    {
      name: 'limit',
      summary:
        'limit the requests of all runs and schedules of the target together, over all processes, until it is ended',
      arguments: '<limit|none>',
      settings: [...who, ...store, ...server],
      options: [reason, json],
      examples: [
        [
          'expunge target limit 200/s,100000/day --base-url https://api.example.com --reason "as agreed"',
          'at most 200 a second, and never more than 100,000 in any 24 hours, however many runs there are',
        ],
        ['expunge target limit 200/s', 'spread evenly'],
        ['expunge target limit 100000/day,10000/h', 'as fast as the API allows until 10,000 are sent within an hour'],
        ['expunge target limit none', 'no limit any more'],
      ],
      overServer: true,
      load: steer,
    },
    {
      name: 'grace',
      summary:
        'give each later run of the target at least this grace period, whatever its command says, until it is ended',
      arguments: '<time|none>',
      settings: [...who, ...store, ...server],
      options: [reason, json],
      examples: [
        [
          'expunge target grace 10min --base-url https://api.example.com --reason "time to object"',
          'no run sends anything in its first ten minutes',
        ],
        ['expunge target grace none', 'no minimum any more'],
      ],
      overServer: true,
      load: steer,
    },
    {
      name: 'acknowledge',
      summary: 'confirm that you have seen what Redis has lost of the target; its workers are then ready again',
      settings: [...who, ...store, ...server],
      options: [reason, json],
      examples: [
        [
          'expunge target acknowledge --base-url https://api.example.com --reason "schedules added again"',
          'after the workers have said what is lost',
        ],
        ['expunge target acknowledge --account acme', 'of another account'],
      ],
      overServer: true,
      load: steer,
    },
  ],
  load: null,
};

const allAccounts: OwnOption = {
  flags: '--all-accounts',
  help: 'for all accounts of the base URL that Redis knows',
};
const stop = () => import('../actions/stop-all.ts');

export const stopAll: Command = {
  name: 'stop-all',
  summary: 'stop sending requests of all runs of a target, within a second, until start-all; asks for no confirmation',
  settings: [...who, ...store, ...server],
  options: [allAccounts, reason, json],
  examples: [
    ['expunge stop-all --base-url https://api.example.com --reason "they call us"', 'no run sends anything any more'],
    ['expunge stop-all', 'the target of the configuration file'],
    ['expunge stop-all --base-url https://api.example.com --all-accounts', 'of all accounts'],
  ],
  overServer: true,
  load: stop,
};

export const startAll: Command = {
  name: 'start-all',
  summary: 'resume the runs of a target that stop-all stopped',
  settings: [...who, ...store, ...server],
  options: [allAccounts, reason, json],
  examples: [
    ['expunge start-all --base-url https://api.example.com', 'runs that were running continue'],
    ['expunge start-all --reason "solved"', 'and say why'],
    ['expunge start-all --base-url https://api.example.com --all-accounts', 'the runs of all accounts'],
  ],
  overServer: true,
  load: stop,
};
