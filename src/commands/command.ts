import * as parse from '../config/parse-setting.ts';
import type { Sources } from '../config/read-config.ts';
import type { Config, SettingName } from '../config/settings.ts';
import { priorities } from '../ledger/run.ts';

/** An option that only one verb has. It is no setting: it has no variable and cannot stand in the configuration file. */
export type OwnOption = {
  flags: string; // in commander's syntax: '-n, --dry-run', '--reason <text>'
  help: string;
  parse?: (text: string) => unknown; // throws an Error that says what was expected; without it the text is the value
};

/** What is known of a verb before its code is loaded: enough to read its command line and to print its help. */
export type Command = {
  name: string;
  summary: string;
  arguments?: string; // in commander's syntax: '<files...>', '<run>'
  settings: readonly SettingName[];
  options?: readonly OwnOption[];
  examples: readonly Example[];
  hidden?: boolean;
  subcommands?: readonly Command[];
  /** Null for a group, which only has subcommands. */
  load: (() => Promise<Verb>) | null;
};

/** A line to type and what it does. */
type Example = readonly [line: string, does: string];

/** The module of a verb. `execute` returns the exit code, and throws ExpungeError for what the operator can change. */
export type Verb = { execute(invocation: Invocation): Promise<number> };

/** What a verb is given. Signals are its own business; it never ends the process. */
export type Invocation = {
  verb: string; // 'run', 'runs remove'
  args: string[];
  options: Record<string, unknown>; // its own options, by their name in camelCase; those not given are missing
  config: Config;
  sources: Sources;
  env: NodeJS.ProcessEnv;
  stdin: NodeJS.ReadStream;
  stdout: NodeJS.WriteStream;
  stderr: NodeJS.WriteStream;
  /** Aborted when whoever read stdout has gone: a verb that only shows something can end then. */
  outputClosed: AbortSignal;
};

/** Writes one `--json` object a line; without `--json` nothing. */
export type JsonLines = (type: string, facts: Record<string, unknown>) => void;

export function jsonLines(stdout: NodeJS.WriteStream, wanted: unknown): JsonLines {
  if (wanted !== true) return () => {};
  return (type, facts) => stdout.write(`${JSON.stringify({ v: 1, type, ...facts })}\n`);
}

/** What `--reason` says: why something is done, for the audit trail. '' where nobody said. */
export function reasonOf(options: Record<string, unknown>): string {
  return typeof options.reason === 'string' ? options.reason.trim() : '';
}

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
  'unreachableTimeoutMs',
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
  help: 'why, for the audit trail',
  parse: parse.textUpTo(500),
};

export const share: OwnOption = {
  flags: '--priority <share>',
  help: 'its share of the workers: high, normal or low (default: normal)',
  parse: parse.oneOf(priorities),
};
