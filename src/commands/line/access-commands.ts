import * as parse from '../../config/parse-setting.ts';
import { baseUrl } from '../../config/parse-url.ts';
import { roles } from '../../model/role.ts';
import { type Command, json, store } from '../command.ts';

// The commands for access over HTTP: the dashboard, and the tokens that open it.

export const dashboard: Command = {
  name: 'dashboard',
  summary: 'serve the dashboard of all runs on this machine, and print a link that logs in',
  settings: [...store, 'logLevel', 'logFormat'],
  options: [
    {
      flags: '--port <n>',
      help: 'listen here; 0 takes a free one (default: 9465)',
      parse: parse.integerFrom(0, 65_535),
    },
    json,
  ],
  examples: [
    ['expunge dashboard', 'then open the link that it prints'],
    ['expunge dashboard --port 8090', 'on another port'],
  ],
  load: () => import('../processes/dashboard.ts'),
};

const baseUrls = (text: string): string => [...new Set(text.split(',').map((one) => baseUrl(one.trim())))].join(',');

export const token: Command = {
  name: 'token',
  summary: 'make, list and revoke tokens for the API and the dashboard of workers',
  settings: [],
  examples: [],
  subcommands: [
    {
      name: 'add',
      summary: 'make a token and print it, only this once',
      arguments: '<name>',
      settings: [...store, 'account', 'clientId'],
      options: [
        {
          flags: '--target <urls>',
          help: 'bind it to the targets of these base URLs (comma-separated) and of --account; it can see and steer no others',
          parse: baseUrls,
        },
        {
          flags: '--role <role>',
          help: 'read, plan, operate or admin (default: read)',
          parse: parse.oneOf(roles),
        },
        {
          flags: '--expires <duration>',
          help: 'how long it is valid: 90d (default: until it is revoked)',
          parse: parse.duration,
        },
        json,
      ],
      examples: [
        ['expunge token add ana --role operate', 'for a person'],
        ['expunge token add prometheus --role read', 'for a scraper'],
        ['expunge token add acme --role read --target https://acme.example.com', 'for one target only'],
      ],
      load: () => import('../setup/token.ts'),
    },
    {
      name: 'list',
      summary: 'list the names of all tokens',
      settings: store,
      options: [json],
      examples: [['expunge token list', 'with role, who made each and when']],
      load: () => import('../setup/token.ts'),
    },
    {
      name: 'revoke',
      summary: 'revoke a token, and log out every session that it opened',
      arguments: '<name>',
      settings: store,
      options: [json],
      examples: [['expunge token revoke ana', 'within a second']],
      load: () => import('../setup/token.ts'),
    },
  ],
  load: null,
};
