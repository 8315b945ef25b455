import type { Command } from './command.ts';
import { json, reason, store } from './shared-options.ts';

const settings = ['baseUrl', 'account', 'clientId', 'separateLimits', ...store] as const;
const options = [reason, json];
const load = () => import('./target.ts');

/** What an operator can do about how fast a target is used. */
export const target: Command = {
  name: 'target',
  summary: 'lift what a server asked for, and forget or pin what was learned of its rate',
  settings: [],
  examples: [],
  subcommands: [
    {
      name: 'release',
      summary: 'end a wait that the server asked for (Retry-After) and an open circuit, within a second',
      settings,
      options,
      examples: [
        ['expunge target release --base-url https://api.example.com --reason "they answered by mistake"', 'go on now'],
        ['expunge status --base-url https://api.example.com', 'what there is to release'],
      ],
      load,
    },
    {
      name: 'forget-rate',
      summary: 'look for the rate of the target anew, as if nothing had been learned of it',
      settings,
      options,
      examples: [
        [
          'expunge target forget-rate --base-url https://api.example.com --reason "they raised it"',
          'begins slowly again',
        ],
        ['expunge target forget-rate --account acme', 'of another account'],
      ],
      load,
    },
    {
      name: 'pin-rate',
      summary: 'begin at this rate and never exceed it, for all runs of the target, until it is unpinned',
      arguments: '<rate|none>',
      settings,
      options,
      examples: [
        [
          'expunge target pin-rate 200/s --base-url https://api.example.com --reason "as agreed"',
          'whatever is learned',
        ],
        ['expunge target pin-rate none', 'learn it again'],
      ],
      load,
    },
  ],
  load: null,
};
