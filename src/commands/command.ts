import type { Config, SettingName, Sources } from '../config/settings.ts';

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
