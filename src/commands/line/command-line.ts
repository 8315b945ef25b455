import { CommanderError, Option, Command as Program } from 'commander';
import { type SettingName, settings } from '../../config/settings.ts';
import { ExpungeError, messageOf } from '../../errors.ts';
import { isTopic, topicNames } from '../../help/topics.ts';
import type { Verbosity } from '../../logger.ts';
import { resourcesText } from '../../model/resource.ts';
import { suggest } from '../../model/suggest.ts';
import type { Advice } from '../../model/to-type.ts';
import { type Command, flagsOf, type OwnOption } from '../command.ts';
import type { Options } from '../options.ts';
import { commands } from './commands.ts';
import { commandHeading, configureHelp, settingOption } from './help.ts';

/** The request that a command line makes. */
export type Call = {
  commandName: string; // 'run', 'runs remove'
  command: Command;
  args: string[];
  options: Options;
  flags: Record<string, string | boolean>; // keys are names of settings
  configFile: string | undefined;
  color: boolean;
  verbosity: Verbosity;
};

type Write = (text: string) => void;

/**
 * Reads the arguments after the program's name. Returns null after writing the help or the version that they asked for. Throws USAGE, with a
 * suggestion, for anything unknown; never repeats a value that followed an unknown flag.
 */
export function readCommandLine(argv: string[], version: string, write: Write): Call | null {
  let call: Call | null = null;
  // `runs` also has such an option: next to --help it does no harm there.
  const all = argv.includes('--all') || (argv[0] === 'help' && argv.length === 1);
  const program = makeProgram(version, write, { all, isNamed: (name) => argv.includes(name) }, (made) => {
    call = made.commandName === 'help' ? topicCall(made, program) : made;
  });
  try {
    program.parse(argv.length === 0 ? ['--help'] : argv, { from: 'user' });
  } catch (error) {
    if (!(error instanceof CommanderError) || error.exitCode !== 0) throw error;
  }
  return call;
}

/** Writes the help of a program for `expunge help` with a command, or without one. `expunge help TOPIC` is returned as an ordinary call. */
function topicCall(call: Call, program: Program): Call | null {
  const [first = '', ...more] = call.args;
  if (isTopic(first) && more.length === 0) return call;
  const asked = call.args.reduce<Program | undefined>(
    (above, name) => above?.commands.find((sub) => sub.name() === name),
    program,
  );
  if (!asked) {
    const known = [...topicNames, ...program.commands.map((sub) => sub.name())];
    throw new ExpungeError('USAGE', `no such topic or command: ${call.args.join(' ')}.${suggest(first, known)}`, {
      next: (toType) => `${toType('help')} lists them`,
    });
  }
  asked.outputHelp();
  return null;
}

/** The model of all commands and flags, for code that inspects them instead of running one. */
export function allOptions(): Program {
  return makeProgram(
    '',
    () => {},
    { all: true, isNamed: () => true },
    () => {},
  );
}

/** `all`: whether help shows every option. `isNamed`: whether a command may be meant; the others have no options, which take most of the time. */
type Extent = { all: boolean; isNamed(name: string): boolean };

/** Makes the program. `found` gets the call that a line makes. */
function makeProgram(version: string, write: Write, extent: Extent, found: (call: Call) => void): Program {
  const program = new Program('expunge')
    .description(`Deletes ${resourcesText('and')} in bulk, and says what happened to every id.`)
    .version(version, '-V, --version', 'print the version')
    .option('--config <file>', 'read settings from this file (default: EXPUNGE_CONFIG, then ./expunge.config.json)')
    .option('--no-color', 'no colours (also: NO_COLOR=1)')
    .option('-q, --quiet', 'only results, warnings, errors and questions: no progress, no next steps')
    .option('-v, --verbose', 'log to stderr, down to debug, and show where an error comes from')
    .helpOption('-h, --help', 'print this help; with --all, all of it')
    .helpCommand(false)
    .configureOutput({ writeOut: write, writeErr: () => {}, outputError: () => {} });
  configureHelp(program, '', null, extent.all);
  throwUsage(program);
  for (const command of commands) addCommand(program, command, command.name, extent, found);
  return program;
}

function addCommand(
  parent: Program,
  command: Command,
  commandName: string,
  extent: Extent,
  found: (call: Call) => void,
): void {
  const { all, isNamed } = extent;
  const program = parent
    .command(command.name, { hidden: command.hidden ?? false })
    .description(command.summary)
    .helpGroup(commandHeading(commandName));
  if (command.arguments) program.arguments(command.arguments);
  if (!isNamed(command.name)) return;
  for (const { flags, help, isRare } of command.options ?? [])
    program.addOption(new Option(flags, help).hideHelp(isRare === true && !all));
  for (const name of flagsOf(command)) program.addOption(settingOption(name, all));
  for (const flags of ['-q, --quiet', '-v, --verbose']) program.addOption(new Option(flags).hideHelp()); // for -yq: letters in a row belong to one commandName
  configureHelp(program, commandName, command, all);
  throwUsage(program);
  if (command.load) program.action(() => found(readCall(program, command, commandName)));
  for (const sub of command.subcommands ?? []) addCommand(program, sub, `${commandName} ${sub.name}`, extent, found);
}

function readCall(program: Program, command: Command, commandName: string): Call {
  const { config, color, quiet, verbose } = program.optsWithGlobals();
  const options = Object.fromEntries((command.options ?? []).flatMap((option) => readOwn(program, option)));
  const flags = Object.fromEntries(flagsOf(command).flatMap((name) => readFlag(program, name)));
  if (quiet && verbose) throw new ExpungeError('USAGE', '--quiet and --verbose exclude each other');
  if ((quiet || verbose) && flags.logLevel !== undefined)
    throw new ExpungeError(
      'USAGE',
      `--log-level and --${quiet ? 'quiet' : 'verbose'} both set what is logged: give only one of them`,
    );
  const verbosity = quiet ? 'quiet' : verbose ? 'verbose' : 'normal';
  // Each option has the type that its `parse` returns.
  return {
    commandName,
    command,
    args: program.args,
    options: options as Options,
    flags,
    configFile: config,
    color,
    verbosity,
  };
}

function readFlag(program: Program, name: SettingName): [string, string | boolean][] {
  const option = settingOption(name);
  const value = givenValue(program, option);
  return value === undefined ? [] : [[name, option.negate ? true : value]];
}

function readOwn(program: Program, { flags, help, parse }: OwnOption): [string, unknown][] {
  const option = new Option(flags, help);
  const value = givenValue(program, option);
  if (value === undefined) return [];
  try {
    return [[option.attributeName(), parse ? parse(String(value)) : value]];
  } catch (error) {
    throw new ExpungeError('USAGE', `${option.long}: ${messageOf(error)}`);
  }
}

/** The value given on the command line, without commander's defaults. A subcommand also takes the options of its parent. */
function givenValue(program: Program, option: Option): string | boolean | undefined {
  const key = option.attributeName();
  return program.getOptionValueSourceWithGlobals(key) === 'cli' ? program.optsWithGlobals()[key] : undefined;
}

/** Makes the program throw USAGE where commander would print its own error. */
function throwUsage(program: Program): void {
  program.exitOverride((error) => {
    if (error.exitCode === 0) throw error;
    const next =
      secretAdvice(error) ??
      variableAdvice(error) ??
      switchAdvice(error, program) ??
      workersAdvice(error, program) ??
      helpOf(program);
    throw new ExpungeError('USAGE', describe(error, program), { next });
  });
}

function describe({ code, message }: CommanderError, program: Program): string {
  const quoted = quotedIn(message);
  const subcommands = program.commands.map((sub) => sub.name());
  if (code === 'commander.unknownOption' && quoted === '--server')
    return `no such option: ${quoted}. ${pathOf(program)} cannot be done over a server`;
  if (code === 'commander.unknownOption' && quoted === '--rehearse')
    return `no such option: ${quoted}. Only the command run rehearses a list`;
  const variable = variableOf(code, quoted);
  if (variable !== null)
    return `no such option: ${quoted}. That setting is a variable, or a key of the configuration file`;
  if (isNeedlessToken(code, quoted))
    return `no such option: ${quoted}. ${pathOf(program)} sends no request to the API, and needs no token`;
  if (isSwitch(code, quoted, program)) return `${quoted} takes no value`;
  if (isWorkers(code, quoted, program))
    return `no such option: ${quoted}. Only the command worker has several processes`;
  if (code === 'commander.unknownOption' && quoted === '-') return 'a short option takes no value behind =';
  if (code === 'commander.unknownOption') return `no such option: ${quoted}.${suggest(quoted, optionsOf(program))}`;
  if (code === 'commander.unknownCommand') return `no such command: ${quoted}.${suggest(quoted, subcommands)}`;
  if (code === 'commander.help') return `expected one of ${subcommands.join(', ')} after ${pathOf(program)}`;
  if (code !== 'commander.excessArguments') return message.replace(/^error: /, '');
  const [first = ''] = program.args.slice(program.registeredArguments.length);
  return `${pathOf(program)} does not take "${first}".${suggest(first, subcommands)}`;
}

/** The variable of a setting that has no flag, if such a flag was given. */
function variableOf(code: string, flag: string): string | null {
  const found = Object.values(settings).find((row) => row.isFlagless && `--${row.flag}` === flag);
  return code === 'commander.unknownOption' ? (found?.env ?? null) : null;
}

function variableAdvice({ code, message }: CommanderError): string | null {
  const variable = variableOf(code, quotedIn(message));
  return variable === null ? null : `set ${variable}`;
}

/** Whether a command was given a token although it needs none: the commands that send requests know these flags. */
function isNeedlessToken(code: string, flag: string): boolean {
  return code === 'commander.unknownOption' && ['--token-file', '--token-command', '--token-url'].includes(flag);
}

/** Whether a flag is unknown only because a value follows its `=`. */
function isSwitch(code: string, flag: string, program: Program): boolean {
  return code === 'commander.unknownOption' && optionsOf(program).includes(flag);
}

function switchAdvice({ code, message }: CommanderError, program: Program): string | null {
  const flag = quotedIn(message);
  if (!isSwitch(code, flag, program)) return null;
  const setting = Object.values(settings).find((row) => `--${row.flag}` === flag);
  const opposite = setting?.env ? `set ${setting.env}=false` : 'leave it out';
  return `write ${flag} alone, or ${opposite} for the opposite`;
}

/** Whether several processes are asked of a command that can leave its run to workers. */
function isWorkers(code: string, flag: string, program: Program): boolean {
  return code === 'commander.unknownOption' && flag === '--workers' && optionsOf(program).includes('--detach');
}

function workersAdvice({ code, message }: CommanderError, program: Program): Advice | null {
  if (!isWorkers(code, quotedIn(message), program)) return null;
  return (toType) => `leave the run to workers with --detach, and start them: ${toType('worker', '--workers', '4')}`;
}

/** Flags that people try for secrets, and what to use instead. */
const secretFlags: [flag: RegExp, secret: string, instead: string][] = [
  [
    /^--(access-|bearer-|api-|auth-)?(token|key)$/,
    'a token',
    'set EXPUNGE_TOKEN, or name a file with --token-file FILE',
  ],
  [/^--server-token$/, 'a token', 'set EXPUNGE_SERVER_TOKEN, or name a file in EXPUNGE_SERVER_TOKEN_FILE'],
  [/^--results-headers?$/, 'a secret', 'set EXPUNGE_RESULTS_HEADERS, or name a file in EXPUNGE_RESULTS_HEADER_FILE'],
  [/^--notify-secret$/, 'a secret', 'set EXPUNGE_NOTIFY_SECRET, or name a file in EXPUNGE_NOTIFY_SECRET_FILE'],
  [/^--(client-)?secret$/, 'a secret', 'set EXPUNGE_CLIENT_SECRET, or name a file in EXPUNGE_CLIENT_SECRET_FILE'],
  [/^--refresh-token$/, 'a refresh token', 'name a file that holds it in EXPUNGE_REFRESH_TOKEN_FILE'],
  [/^--redis(-url)?$/, 'the address of Redis, which may hold a password,', 'set REDIS_URL'],
  [/^--(redis-)?pass(word)?$/, 'a password', 'name a file in EXPUNGE_REDIS_PASSWORD_FILE, or set REDIS_URL'],
];

function secretAdvice({ code, message }: CommanderError): string | null {
  const flag = code === 'commander.unknownOption' ? quotedIn(message) : '';
  const found = secretFlags.find(([pattern]) => pattern.test(flag));
  return found
    ? `${found[1]} is never an argument, because every user of this machine can read arguments: ${found[2]}`
    : null;
}

/** The option that a message quotes, without the value after its `=`. */
function quotedIn(message: string): string {
  return /'([^'=]*)/.exec(message)?.[1] ?? '';
}

function optionsOf(program: Program): string[] {
  const above = program.parent ? optionsOf(program.parent) : [];
  return [...program.options.map(({ long }) => long!), '--help', ...above];
}

function helpOf(program: Program): Advice {
  const [, ...names] = pathOf(program).split(' ');
  return (toType) => toType(names.join(' '), '--help');
}

function pathOf(program: Program): string {
  return program.parent ? `${pathOf(program.parent)} ${program.name()}` : program.name();
}
