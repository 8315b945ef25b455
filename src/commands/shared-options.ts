import * as parse from '../config/parse-setting.ts';
import { priorities } from '../ledger/priority.ts';
import type { OwnOption } from './command.ts';

// Groups of settings and options that several verbs have.

const token = [
  'tokenFile',
  'tokenCommand',
  'tokenUrl',
  'clientId',
  'clientSecretFile',
  'refreshTokenFile',
  'scope',
  'tokenAudience',
  'tokenAuth',
] as const;

/** Where requests go, and what proves who we are. */
export const target = ['baseUrl', 'account', ...token, 'allowHttp', 'caFile', 'proxy', 'separateLimits'] as const;

/** Which target is meant, for verbs that send it nothing. */
export const targetName = ['baseUrl', 'account', 'clientId', 'allowHttp', 'separateLimits'] as const;

export const sending = [
  'maxConcurrency',
  'requestTimeoutMs',
  'retryDelays',
  'patienceMs',
  'strictConnections',
  'stopFile',
] as const;

/** The settings of whatever only needs Redis. */
export const store = [
  'stateDir',
  'allowPlaintextRedis',
  'redisUsernameFile',
  'redisPasswordFile',
  'sentinelUsernameFile',
  'sentinelPasswordFile',
  'redisCaFile',
  'redisCertFile',
  'redisKeyFile',
  'redisServerName',
] as const;

export const json: OwnOption = { flags: '--json', help: 'print JSON on stdout, one object a line' };
export const yes: OwnOption = { flags: '-y, --yes', help: 'do not ask for confirmation' };
export const reason: OwnOption = {
  flags: '--reason <text>',
  help: 'why, for whoever looks at it later',
  parse: parse.textUpTo(500),
};

export const share: OwnOption = {
  flags: '--priority <share>',
  help: 'its share of the workers beside other detached runs: high, normal or low (default: normal)',
  parse: parse.oneOf(priorities),
};
