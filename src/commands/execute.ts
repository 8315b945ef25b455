import { loadConfig } from '../config/settings.ts';
import { ExpungeError, exitCodes, messageOf } from '../errors.ts';
import { explainFileError, isFileError } from '../system-errors.ts';
import { plainLine } from '../terminal/style.ts';
import { readVersion } from '../version.ts';
import type { Invocation, Verb } from './command.ts';
import { readCommandLine } from './command-line.ts';

// Only what reading a command line and printing help needs is imported here; the code of a verb is loaded when it is asked for.

/** What a command line is done with: of the process that was started with it, or of a test. */
export type Deps = Pick<Invocation, 'env' | 'signals' | 'stdin' | 'stdout' | 'stderr' | 'outputClosed'>;

/** Does what a command line asks for and returns the exit code. Never throws: what went wrong stands on stderr. */
export async function executeLine(argv: readonly string[], deps: Deps): Promise<number> {
  try {
    return await execute(argv, deps);
  } catch (error) {
    return complain(error, deps);
  }
}

async function execute(argv: readonly string[], deps: Deps): Promise<number> {
  const call = readCommandLine([...argv], readVersion(), (text) => deps.stdout.write(text));
  if (call === null) return exitCodes.OK.exit;
  const { command, verb, args, options, flags, configFile, color } = call;
  if (!color) forbidColor(deps.env);
  const { config, sources } = loadConfig({ flags, env: deps.env, configFile });
  const { execute } = (await command.load!()) as Verb;
  return execute({ verb, args, options, config, sources, argv, ...deps });
}

/** FORCE_COLOR would win over NO_COLOR. */
function forbidColor(env: NodeJS.ProcessEnv): void {
  env.NO_COLOR = '1';
  delete env.FORCE_COLOR;
}

/** Says what went wrong and returns the exit code. An unknown error is a bug: its stack may hold anything, so it is shown on demand. */
export function complain(error: unknown, { stderr, env }: Pick<Deps, 'stderr' | 'env'>): number {
  const known = error instanceof ExpungeError ? error : refusedFile(error);
  const next = known ? known.next : 'run it again with EXPUNGE_LOG_LEVEL=debug to see where, and report it';
  stderr.write(`${known ? 'error' : 'internal error'}: ${plainLine(messageOf(known ?? error))}\n`);
  if (next) stderr.write(next.replace(/^/gm, '  ').concat('\n'));
  if (env.EXPUNGE_LOG_LEVEL === 'debug' && error instanceof Error) stderr.write(`${error.stack}\n`);
  return exitCodes[known?.code ?? 'INTERNAL'].exit;
}

/** A file or folder that nobody expected to be refused: most likely something of the machine, and no bug. */
function refusedFile(error: unknown): ExpungeError | null {
  if (!isFileError(error)) return null;
  return new ExpungeError('INTERNAL', messageOf(error), { cause: error, next: explainFileError(error).next });
}
