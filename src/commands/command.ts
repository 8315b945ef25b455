import * as parse from '../config/parse-setting.ts';
import type { Sources } from '../config/read-config.ts';
import { type Config, type SettingFor, type SettingName, settings, settingsFor } from '../config/settings.ts';
import { haltCodes } from '../ledger/run.ts';
import type { Verbosity } from '../logger.ts';
import { maxReasonLength, storedReason } from '../model/person.ts';
import type { ToType } from '../model/to-type.ts';
import type { RedisAddress } from '../redis/address.ts';
import type { Options } from './options.ts';

/** An option of a command that is not a setting: it has no variable, and the configuration file cannot contain it. */
export type OwnOption = {
  flags: string; // in commander's syntax: '-n, --dry-run', '--reason <text>'
  help: string;
  isRare?: true; // shown only by `--help --all`
  parse?: (text: string) => unknown; // throws an Error that says what was expected; without it, the value is the text
};

/** The declaration of a command: enough to read its command line and to print its help before its code is loaded. */
export type Command = {
  name: string;
  summary: string;
  arguments?: string; // in commander's syntax: '<files...>', '<run>'
  settings: readonly SettingName[]; // those that it reads; some have no flag
  options?: readonly OwnOption[];
  examples: readonly Example[];
  hidden?: boolean;
  /** Whether the command ignores all settings, so that a mistake in a variable or in the configuration file does not stop it. */
  withoutSettings?: boolean;
  subcommands?: readonly Command[];
  /** Whether the command also works through the API of a server (`--server`), or the code that does; without it the command needs Redis itself. */
  overServer?: true | (() => Promise<CommandModule>);
  /** Loads the code of the command; null for a group, which only has subcommands. */
  load: (() => Promise<CommandModule>) | null;
};

/** A line to type, and its effect. */
type Example = readonly [line: string, does: string];

/** The module of a command. `execute` returns the exit code, and throws ExpungeError for whatever the operator can change. */
export type CommandModule = { execute(invocation: Invocation): Promise<number> };

/** Where signals arrive and how a second one ends everything: the process itself. */
export type SignalSource = Pick<NodeJS.Process, 'on' | 'off' | 'exit'>;

/** The input of a command. A command listens for signals itself; only a second one ends the process. */
export type Invocation = {
  commandName: string; // 'run', 'runs remove'
  args: string[];
  options: Options;
  config: Config;
  sources: Sources;
  program: string; // as a shell starts it again: expunge, ./expunge
  toType: ToType; // writes the commands that this command prints
  argv: readonly string[]; // the whole command line after the program's name
  verbosity: Verbosity;
  env: NodeJS.ProcessEnv;
  signals: SignalSource;
  stdin: NodeJS.ReadStream;
  stdout: NodeJS.WriteStream;
  stderr: NodeJS.WriteStream;
  /** The Redis of a process that runs commands for other processes. It stays connected, so a command does not disconnect it. */
  address?: RedisAddress;
  /** Aborted when the reader of stdout has closed it, so that a command that only prints can end. */
  outputClosed: AbortSignal;
};

/** Writes one object per line for `--json`; without `--json`, nothing. */
export type JsonLines = (type: string, facts: Record<string, unknown>) => void;

export function jsonLines(stdout: NodeJS.WriteStream, wanted: unknown): JsonLines {
  if (wanted !== true) return () => {};
  return (type, facts) => stdout.write(`${JSON.stringify({ v: 1, type, ...facts })}\n`);
}

/** The text of `--reason`, for the audit trail; '' if not given. */
export function readReason({ reason = '' }: Pick<Options, 'reason'>): string {
  return storedReason(reason);
}

/** The settings that the command takes as flags. */
export function flagsOf({ settings: names }: Pick<Command, 'settings'>): SettingName[] {
  return names.filter((name) => !settings[name].isFlagless);
}

// Groups of settings and options that several commands share.

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

/** How to read a file of protected ids if there is no list. */
export const protectReading = [
  'protectColumn',
  'delimiter',
  'comments',
  'allowIdChars',
  'allowPlaceholders',
  'allowInvisible',
  'allowColumnNames',
  'allowDamagedNumbers',
] as const;

/** Whether a retry takes each setting of a list. Its ids are in Redis, so it reads no file but the protected ids. */
const isOnRetry: Record<SettingFor<'list'>, boolean> = {
  resource: false,
  resourceColumn: false,
  format: false,
  column: false,
  noHeader: false,
  delimiter: true,
  comments: true,
  limit: true,
  protect: true,
  protectColumn: true,
  expectUnprotected: true,
  expectProtected: false,
  allowIdChars: true,
  idPattern: false,
  allowMixedIds: false,
  allowInvisible: true,
  allowColumnNames: true,
  allowDamagedNumbers: true,
  allowPlaceholders: true,
  expectRejected: false,
  allowEmpty: false,
  allowOpenEnd: false,
  expectCount: true,
};

/** Which ids of a run are retried, and which are protected. */
export const retryInput = [...settingsFor('list').filter((name) => isOnRetry[name]), 'maxDeletes'] as const;

/** The connection to the API. */
export const connection = ['caFile', 'certFile', 'keyFile', 'proxy'] as const;

/** Where requests go, and the credentials for them. */
export const target = ['baseUrl', 'account', ...token, 'allowHttp', ...connection] as const;

/** Settings that name a target, for commands that send it nothing. */
export const targetName = ['baseUrl', 'account', 'clientId', 'allowHttp'] as const;

/** Settings that name the receivers of events. */
export const notifying = ['notify', 'notifySecretFile', 'dashboardUrl'] as const;

export const sending = [
  'maxConcurrency',
  'requestTimeoutMs',
  'retryDelays',
  'unreachableTimeoutMs',
  'stopFile',
] as const;

/** Settings for commands that only need Redis. */
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

/** Settings for commands that can also use the API of a server. */
export const server = ['server', 'serverTokenFile'] as const;

export const json: OwnOption = { flags: '--json', help: 'print JSON on stdout, one object per line' };
export const yes: OwnOption = { flags: '-y, --yes', help: 'do not ask for confirmation' };
export const reason: OwnOption = {
  flags: '--reason <text>',
  help: 'why, for the audit trail',
  parse: parse.textUpTo(maxReasonLength),
};

/** Options that steer everything of a target that the same halt stopped. */
export function allHalted(things: string): readonly OwnOption[] {
  return [
    { flags: '--all', help: `all ${things} of the target that the halts of --halted stopped; asks once` },
    {
      flags: '--halted <reason>',
      help: 'with --all: only for this reason, as --json names it: credentials, target_unreachable, …',
      parse: parse.oneOf(haltCodes),
    },
    yes,
  ];
}

/** Accepts a run now that starts later. */
export const startAt: OwnOption = {
  flags: '--start-at <moment>',
  isRare: true,
  help: 'accept the run, and send nothing of it before then: 06:00, "06:00 Europe/Berlin", 2026-11-20T16:00Z; none: at once',
  parse: parse.orNone((text) => parse.futureMoment(text), 0),
};

/** Names the host of a protected target. */
export const confirmHost: OwnOption = {
  flags: '--confirm-host <host>',
  isRare: true,
  help: 'confirm a protected target by its host name, instead of typing it',
};

/** Lets `--max-deletes` delete a part of a list that holds more ids. */
export const partial: OwnOption = {
  flags: '--partial',
  isRare: true,
  help: 'if the list has more ids than --max-deletes, send the first ones on purpose, then halt',
};

/** An option that chooses rows of a run. */
export function only(help: string): OwnOption {
  return { flags: '--only <rows>', help, parse: parse.selection };
}

/** The faults of a sandbox. */
export const faults: OwnOption = {
  flags: '--faults <list>',
  help: 'faults and how often: status-503=0.01,reset=0.005',
};
