import { loadConfig, type Source, type Sources } from '../config/read-config.ts';
import type { Config } from '../config/settings.ts';
import { ExpungeError, exitCodes, messageOf } from '../errors.ts';
import { duration } from '../format.ts';
import { logFormats } from '../log-text.ts';
import type { Log } from '../logger.ts';
import { adviceText, type ToType } from '../model/to-type.ts';
import { visibleLine } from '../model/visible.ts';
import { explainFileError, isFileError } from '../system-errors.ts';
import { dataOutput, safeOutput } from '../terminal/safe-output.ts';
import { readVersion } from '../version.ts';
import type { Command, Invocation, StatusAnswer, Verb } from './command.ts';
import { type Call, readCommandLine } from './command-line.ts';
import { nothingGiven, toTypeFrom } from './place.ts';

// Only what reading a command line and printing help needs is imported here; the code of a verb is loaded when it is asked for.

/** What a command line is done with: of the process that was started with it, or of a test. */
type Deps = Pick<Invocation, 'program' | 'env' | 'signals' | 'stdin' | 'stdout' | 'stderr' | 'outputClosed'>;

/** How a command says what went wrong. `log`: its log if that is JSON, so that nothing else stands between the lines; else null. */
export type Complaining = { isVerbose: boolean; toType: ToType; log: Log | null };

/** How a command complains whose line has not been read yet. */
export function complainingBefore({ program, env }: Pick<Deps, 'program' | 'env'>): Complaining {
  const isVerbose = env.EXPUNGE_LOG_LEVEL === 'debug';
  return { isVerbose, toType: toTypeFrom(program, nothingGiven), log: null };
}

/**
 * Does what a command line asks for and returns the exit code. Never throws: what went wrong stands on stderr. `complaining` follows what
 * is known of the command.
 */
export async function executeLine(
  argv: readonly string[],
  started: Deps,
  complaining = complainingBefore(started),
): Promise<number> {
  const deps: Deps = { ...started, stdout: safeOutput(started.stdout), stderr: safeOutput(started.stderr) };
  try {
    if (argv[0] === 'complete') return await answerShell(argv.slice(1), deps);
    const call = readCommandLine([...argv], readVersion(), (text) => deps.stdout.write(text));
    if (call === null) return exitCodes.OK.exit;
    complaining.isVerbose ||= call.verbosity === 'verbose';
    complaining.toType = toTypeFrom(deps.program, call);
    return await execute(call, argv, deps, complaining);
  } catch (error) {
    return complain(error, deps.stderr, complaining);
  }
}

/** What a completion script asks for at a TAB. No verb: nobody types it, and it reads a line that is not finished. */
async function answerShell(line: readonly string[], { env, stdout }: Deps): Promise<number> {
  const { complete } = await import('./complete.ts');
  dataOutput(stdout).write(await complete(line, env)); // tabs are between its words
  return exitCodes.OK.exit;
}

/** Answers SIGUSR1 with a line on stderr, as dd and rclone do, until `dispose`. */
function answerStatus({ signals, stderr }: Deps, verb: string): { status: StatusAnswer; dispose(): void } {
  const startedAt = performance.now();
  const age = () => duration(Math.round((performance.now() - startedAt) / 1_000) * 1_000);
  const status = { give: () => void stderr.write(`expunge ${verb} has been running for ${age()}\n`) };
  const answer = () => status.give();
  signals.on('SIGUSR1', answer);
  return { status, dispose: () => signals.off('SIGUSR1', answer) };
}

async function execute(call: Call, argv: readonly string[], deps: Deps, complaining: Complaining): Promise<number> {
  const { command, verb, args, options, flags, configFile, color, verbosity } = call;
  const { env, stderr } = deps;
  if (!color) forbidColor(env);
  const given = command.withoutSettings ? { flags: {}, env: {}, configFile: null } : { flags, env, configFile };
  complaining.log = await jsonLogOf(call, env.EXPUNGE_LOG_FORMAT, stderr); // for a configuration that cannot be read
  const { config, sources } = loadConfig(given);
  complaining.log = await jsonLogOf(call, config.logFormat, stderr);
  const { execute } = await loaderOf(command, verb, config)();
  const log = verbosity === 'verbose' ? await openLog(config, stderr) : null;
  log?.debug({ verb, version: readVersion(), node: process.version, settings: notDefault(sources) }, 'command started');
  const { toType } = complaining;
  const { status, dispose } = answerStatus(deps, verb);
  try {
    const exit = await execute({ verb, args, options, config, sources, verbosity, argv, status, toType, ...deps });
    log?.debug({ verb, exit, ms: Math.round(performance.now()) }, 'command ended');
    return exit;
  } finally {
    dispose();
  }
}

/** Null for a command that has no log, or whose log is lines for people. */
async function jsonLogOf(
  { verb, verbosity, flags }: Call,
  format: string | undefined,
  stderr: NodeJS.WriteStream,
): Promise<Log | null> {
  if (verb !== 'worker' && verbosity !== 'verbose') return null;
  const { createLogger, isJsonLog } = await import('../logger.ts');
  const asked = logFormats.find((name) => name === (flags.logFormat ?? format));
  return isJsonLog(asked, stderr) ? createLogger({ level: 'error', format: 'json', stderr }) : null;
}

async function openLog({ logFormat }: Config, stderr: NodeJS.WriteStream): Promise<Log> {
  const { createLogger } = await import('../logger.ts');
  return createLogger({ level: 'debug', format: logFormat, stderr });
}

/** What does a verb: with --server the API of that server, else it itself. Throws USAGE for one that needs Redis itself. */
function loaderOf({ load, overServer, settings }: Command, verb: string, { server }: Config): () => Promise<Verb> {
  const needsRedis = settings.includes('allowPlaintextRedis') && !settings.includes('server');
  if (server === undefined || (!needsRedis && overServer === undefined)) return load!;
  if (overServer !== undefined) return overServer === true ? load! : overServer;
  throw new ExpungeError('USAGE', `expunge ${verb} needs Redis itself, and the settings name the server ${server}`, {
    next: (toType) =>
      `unset EXPUNGE_SERVER for it, where Redis can be reached; ${toType('help', 'remote')} lists what a server does`,
  });
}

/** Settings that are not the default, and where they come from; never their values. */
function notDefault(sources: Sources): Record<string, Source> {
  return Object.fromEntries(Object.entries(sources).filter(([, source]) => source !== 'default'));
}

/** FORCE_COLOR would win over NO_COLOR. */
function forbidColor(env: NodeJS.ProcessEnv): void {
  env.NO_COLOR = '1';
  delete env.FORCE_COLOR;
}

/** Says what went wrong and returns the exit code. An unknown error is a bug: its stack may hold anything, so it is shown on demand. */
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

/** A file or folder that nobody expected to be refused: most likely something of the machine, and no bug. */
function refusedFile(error: unknown): ExpungeError | null {
  if (!isFileError(error)) return null;
  return new ExpungeError('INTERNAL', messageOf(error), { cause: error, next: explainFileError(error).next });
}
