import * as parse from '../config/parse-setting.ts';
import type { Sources } from '../config/read-config.ts';
import type { Config, SettingName } from '../config/settings.ts';
import { haltCodes } from '../ledger/run.ts';
import type { Verbosity } from '../logger.ts';
import { longestReason, storedReason } from '../model/person.ts';
import { priorities } from '../model/priority.ts';
import type { ToType } from '../model/to-type.ts';
import type { RedisAddress } from '../redis/address.ts';
import type { Options } from './options.ts';

/** An option of a verb that is no setting: it has no variable, and the configuration file cannot hold it. */
export type OwnOption = {
  flags: string; // in commander's syntax: '-n, --dry-run', '--reason <text>'
  help: string;
  isRare?: true; // only `--help --all` shows it
  parse?: (text: string) => unknown; // throws an Error that says what was expected; without it the text is the value
};

/** The declaration of a verb: enough to read its command line and to print its help before its code is loaded. */
export type Command = {
  name: string;
  summary: string;
  arguments?: string; // in commander's syntax: '<files...>', '<run>'
  settings: readonly SettingName[];
  options?: readonly OwnOption[];
  examples: readonly Example[];
  hidden?: boolean;
  /** Goes by no setting: a mistake in a variable or in the configuration file doesn't keep it from doing its work. */
  withoutSettings?: boolean;
  subcommands?: readonly Command[];
  /** Whether it does the same by the API of a server, with --server, or what does; without it the verb needs Redis itself. */
  overServer?: true | (() => Promise<Verb>);
  /** Null for a group, which only has subcommands. */
  load: (() => Promise<Verb>) | null;
};

/** A line to type and what it does. */
type Example = readonly [line: string, does: string];

/** The module of a verb. `execute` returns the exit code, and throws ExpungeError for what the operator can change. */
export type Verb = { execute(invocation: Invocation): Promise<number> };

/** Where signals arrive and how a second one ends everything: the process itself. */
export type SignalSource = Pick<NodeJS.Process, 'on' | 'off' | 'exit'>;

/** What a process answers when SIGUSR1 asks for its status; at first the name of its verb and its age. A verb that knows more replaces it. */
export type StatusAnswer = { give(): void };

/** The input of a verb. A verb listens for signals itself; only a second one ends the process. */
export type Invocation = {
  verb: string; // 'run', 'runs remove'
  args: string[];
  options: Options;
  config: Config;
  sources: Sources;
  program: string; // as a shell starts it again: expunge, ./expunge
  toType: ToType; // the commands that the verb prints
  argv: readonly string[]; // the whole command line behind the program's name
  verbosity: Verbosity;
  env: NodeJS.ProcessEnv;
  signals: SignalSource;
  status: StatusAnswer;
  stdin: NodeJS.ReadStream;
  stdout: NodeJS.WriteStream;
  stderr: NodeJS.WriteStream;
  /** The Redis of a process that does verbs for others: it stays connected, so a verb does not leave it. */
  address?: RedisAddress;
  /** Aborted when the reader of stdout has closed it: a verb that only prints can end then. */
  outputClosed: AbortSignal;
};

/** Writes one `--json` object a line; without `--json` nothing. */
export type JsonLines = (type: string, facts: Record<string, unknown>) => void;

export function jsonLines(stdout: NodeJS.WriteStream, wanted: unknown): JsonLines {
  if (wanted !== true) return () => {};
  return (type, facts) => stdout.write(`${JSON.stringify({ v: 1, type, ...facts })}\n`);
}

/** The text of `--reason`, for the audit trail; '' without it. */
export function reasonOf({ reason = '' }: Pick<Options, 'reason'>): string {
  return storedReason(reason);
}

// Groups of settings and options that several verbs share.

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

/** How a file of protected ids is read where there is no list. */
export const protectReading = [
  'protectColumn',
  'delimiter',
  'allowIdChars',
  'allowPlaceholders',
  'allowInvisible',
  'allowColumnNames',
  'allowDamagedNumbers',
] as const;

/** Which ids of a run are retried, and which are protected; they themselves are in Redis. */
export const retryInput = [
  'limit',
  'protect',
  ...protectReading,
  'expectUnprotected',
  'maxDeletes',
  'expectCount',
] as const;

/** Where requests go, and the credentials for them. */
export const target = ['baseUrl', 'account', ...token, 'allowHttp', 'caFile', 'proxy', 'separateLimits'] as const;

/** Names a target, for verbs that send it nothing. */
export const targetName = ['baseUrl', 'account', 'clientId', 'allowHttp', 'separateLimits'] as const;

/** Who is told what happens. */
export const notifying = ['notify', 'notifySecretFile'] as const;

export const sending = [
  'maxConcurrency',
  'workers',
  'requestTimeoutMs',
  'retryDelays',
  'unreachableTimeoutMs',
  'strictConnections',
  'maxHeaderSize',
  'stopFile',
] as const;

/** For verbs that only need Redis. */
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

/** Where the API is, for verbs that a server can do as well. */
export const server = ['server', 'serverTokenFile'] as const;

export const json: OwnOption = { flags: '--json', help: 'print JSON on stdout, one object per line' };
export const yes: OwnOption = { flags: '-y, --yes', help: 'do not ask for confirmation' };
export const reason: OwnOption = {
  flags: '--reason <text>',
  help: 'why, for the audit trail',
  parse: parse.textUpTo(longestReason),
};

/** One order for everything of a target that the same halt stopped. */
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

export const share: OwnOption = {
  flags: '--priority <share>',
  help: 'its share of the workers: high, normal or low (default: normal)',
  parse: parse.oneOf(priorities),
};

/** What makes `--max-deletes` take a part of a list that holds more ids. */
export const partial: OwnOption = {
  flags: '--partial',
  isRare: true,
  help: 'if the list has more ids than --max-deletes, send the first ones on purpose, then halt',
};

/** Refuses a list that cannot be deleted by then. */
export const finishBy: OwnOption = {
  flags: '--finish-by <moment>',
  isRare: true,
  help: 'show the rate needed to end by then, and refuse if no allowed rate is enough: 06:00, 2026-11-20T16:00Z',
  parse: (text) => parse.momentAhead(text),
};

/** Chooses rows of a run. */
export function only(help: string): OwnOption {
  return { flags: '--only <rows>', help, parse: parse.selection };
}
