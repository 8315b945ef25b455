import { findResources, loadConfig, resourcesOf, type Source, type Sources } from '../../config/read-config.ts';
import type { Config } from '../../config/settings.ts';
import { ExpungeError, exitCodes, messageOf } from '../../errors.ts';
import { logFormats } from '../../log-text.ts';
import type { Log } from '../../logger.ts';
import { defineResources } from '../../model/resource.ts';
import { adviceText, type ToType } from '../../model/to-type.ts';
import { visibleLine } from '../../model/visible.ts';
import { explainFileError, isFileError } from '../../system-errors.ts';
import { dataOutput, safeOutput } from '../../terminal/safe-output.ts';
import { readVersion } from '../../version.ts';
import type { Command, CommandModule, Invocation } from '../command.ts';
import { type Call, readCommandLine } from './command-line.ts';
import { makeToType, nothingGiven } from './place.ts';

// This file imports only what it needs to read a command line and print help. The code of a command is loaded on demand.

/** The environment of a command line: that of the process that was started with it, or of a test. */
type Deps = Pick<Invocation, 'program' | 'env' | 'signals' | 'stdin' | 'stdout' | 'stderr' | 'outputClosed'>;

/** How a command reports an error. `log`: its log if that is JSON, so that stderr holds nothing but JSON lines; otherwise null. */
export type Complaining = { isVerbose: boolean; toType: ToType; log: Log | null };

/** How to report an error before the command line has been read. */
export function complainingBefore({ program, env }: Pick<Deps, 'program' | 'env'>): Complaining {
  const isVerbose = env.EXPUNGE_LOG_LEVEL === 'debug';
  return { isVerbose, toType: makeToType(program, nothingGiven), log: null };
}

/**
 * Runs a command line and returns the exit code. Never throws: errors are written to stderr. `complaining` is updated as more of the command becomes
 * known.
 */
export async function executeLine(
  argv: readonly string[],
  started: Deps,
  complaining = complainingBefore(started),
): Promise<number> {
  const deps: Deps = { ...started, stdout: safeOutput(started.stdout), stderr: safeOutput(started.stderr) };
  defineResources(findResources(argv, deps.env));
  try {
    if (argv[0] === 'complete') return await answerShell(argv.slice(1), deps);
    const call = readCommandLine([...argv], readVersion(), (text) => deps.stdout.write(text));
    if (call === null) return exitCodes.OK.exit;
    complaining.isVerbose ||= call.verbosity === 'verbose';
    complaining.toType = makeToType(deps.program, call);
    return await execute(call, argv, deps, complaining);
  } catch (error) {
    return complain(error, deps.stderr, complaining);
  }
}

/** Answers a completion script at a TAB. This is not a command: people do not type it, and it reads an unfinished line. */
async function answerShell(line: readonly string[], { env, stdout }: Deps): Promise<number> {
  const { complete } = await import('./complete.ts');
  dataOutput(stdout).write(await complete(line, env)); // its words are separated by tabs
  return exitCodes.OK.exit;
}

async function execute(call: Call, argv: readonly string[], deps: Deps, complaining: Complaining): Promise<number> {
  const { command, commandName, args, options, flags, configFile, color, verbosity } = call;
  const { env, stderr } = deps;
  if (!color) forbidColor(env);
  const given = command.withoutSettings ? { flags: {}, env: {}, configFile: null } : { flags, env, configFile };
  complaining.log = await jsonLogOf(call, env.EXPUNGE_LOG_FORMAT, stderr); // even if the configuration cannot be read
  defineResources(resourcesOf(configFile, env)); // the line may name another file than it seemed before it was read
  const { config, sources } = loadConfig(given);
  complaining.log = await jsonLogOf(call, config.logFormat, stderr);
  const { execute } = await loaderOf(command, commandName, config)();
  const log = verbosity === 'verbose' ? await openLog(config, stderr) : null;
  log?.debug(
    { command: commandName, version: readVersion(), node: process.version, settings: notDefault(sources) },
    'command started',
  );
  const { toType } = complaining;
  const exit = await execute({
    commandName,
    args,
    options,
    config,
    sources,
    verbosity,
    argv,
    toType,
    ...deps,
  });
  log?.debug({ command: commandName, exit, ms: Math.round(performance.now()) }, 'command ended');
  return exit;
}

/** The JSON log of a command; null if it has no log, or a log in lines for people. */
async function jsonLogOf(
  { commandName, verbosity }: Call,
  format: string | undefined,
  stderr: NodeJS.WriteStream,
): Promise<Log | null> {
  if (commandName !== 'worker' && verbosity !== 'verbose') return null;
  const { createLogger, isJsonLog } = await import('../../logger.ts');
  const asked = logFormats.find((name) => name === format);
  return isJsonLog(asked, stderr) ? createLogger({ level: 'error', format: 'json', stderr }) : null;
}

async function openLog({ logFormat }: Config, stderr: NodeJS.WriteStream): Promise<Log> {
  const { createLogger } = await import('../../logger.ts');
  return createLogger({ level: 'debug', format: logFormat, stderr });
}

/**
 * Loads the code of a command: with --server the variant for the API of that server, otherwise the command itself. Throws USAGE for a command that
 * needs Redis itself.
 */
function loaderOf(
  { load, overServer, settings }: Command,
  commandName: string,
  { server }: Config,
): () => Promise<CommandModule> {
  const needsRedis = settings.includes('allowPlaintextRedis') && !settings.includes('server');
  if (server === undefined || (!needsRedis && overServer === undefined)) return load!;
  if (overServer !== undefined) return overServer === true ? load! : overServer;
  throw new ExpungeError(
    'USAGE',
    `expunge ${commandName} needs Redis itself, and the settings name the server ${server}`,
    {
      next: (toType) =>
        `unset EXPUNGE_SERVER for it, where Redis can be reached; ${toType('help', 'remote')} lists what a server does`,
    },
  );
}

/** Settings that differ from their default, and their sources; never their values. */
function notDefault(sources: Sources): Record<string, Source> {
  return Object.fromEntries(Object.entries(sources).filter(([, source]) => source !== 'default'));
}

/** FORCE_COLOR would take precedence over NO_COLOR. */
function forbidColor(env: NodeJS.ProcessEnv): void {
  env.NO_COLOR = '1';
  delete env.FORCE_COLOR;
}

/** Reports an error and returns the exit code. An unknown error is a bug. Its stack may contain anything, so it is shown only on demand. */
export function complain(
  error: unknown,
  stderr: NodeJS.WritableStream,
  { isVerbose, toType, log }: Complaining,
): number {
  const known = error instanceof ExpungeError ? error : refusedFile(error);
  const next = known ? adviceText(known.advice, toType) : 'run it again with --verbose to see where, and report it';
  const { exit } = exitCodes[known?.code ?? 'INTERNAL'];
  if (log) {
    const stack = isVerbose && error instanceof Error ? { stack: error.stack } : {};
    log.error({ exit, reason: messageOf(known ?? error), next, ...stack }, 'command failed');
    return exit;
  }
  stderr.write(`${known ? 'error' : 'internal error'}: ${visibleLine(messageOf(known ?? error))}\n`);
  if (next) stderr.write(next.replace(/^/gm, '  ').concat('\n'));
  if (isVerbose && error instanceof Error) stderr.write(`${error.stack}\n`);
  return exit;
}

/** The error for a file or folder that was refused unexpectedly: most likely a problem of the machine, not a bug. */
function refusedFile(error: unknown): ExpungeError | null {
  if (!isFileError(error)) return null;
  return new ExpungeError('INTERNAL', messageOf(error), { cause: error, next: explainFileError(error).next });
}
