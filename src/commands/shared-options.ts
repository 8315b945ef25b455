import * as parse from '../parse-setting.ts';
import type { OwnOption } from './command.ts';

// What several verbs have in common.

/** The settings of whatever only needs Redis. */
export const store = ['stateDir', 'allowPlaintextRedis'] as const;

export const json: OwnOption = { flags: '--json', help: 'print JSON on stdout, one object a line' };
export const yes: OwnOption = { flags: '-y, --yes', help: 'do not ask for confirmation' };
export const reason: OwnOption = {
  flags: '--reason <text>',
  help: 'why, for whoever looks at the run later',
  parse: parse.textUpTo(500),
};
