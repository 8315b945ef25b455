import { hostname, userInfo } from 'node:os';
import { Writable } from 'node:stream';
import { nameOfLogin, statedName } from '../model/person.ts';
import { quoteForShell } from '../model/shell-word.ts';
import type { Target } from '../model/target.ts';
import { protectedHost } from '../model/target-pattern.ts';
import { type Advice, adviceText, type ToType } from '../model/to-type.ts';
import { visibleLine } from '../model/visible.ts';
import type { By } from '../operations/action.ts';
import type { ListAction } from '../operations/list-action.ts';
import { requireHost } from '../operations/typed-host.ts';
import { confirmCount, confirmYes, typeHost } from '../terminal/ask.ts';
import { commandLine } from '../terminal/style.ts';
import { type Invocation, readReason } from './command.ts';

/** The operator's name for the audit trail: EXPUNGE_USER if it is set, otherwise `user at machine`. */
export function whoAmI(env: NodeJS.ProcessEnv): string {
  return env.EXPUNGE_USER ? statedName(env.EXPUNGE_USER) : nameHere();
}

function nameHere(): string {
  try {
    return nameOfLogin(userInfo().username, hostname());
  } catch {
    return nameOfLogin(`uid ${process.getuid?.() ?? '?'}`, hostname()); // a user without a name, as in containers
  }
}

/** Who asks for an action, and the reason. */
export function readBy({ env, options }: Pick<Invocation, 'env' | 'options'>): By {
  return { who: whoAmI(env), reason: readReason(options) };
}

/** How to read and delete the list of a command. */
export function toListAction(invocation: Invocation): ListAction {
  const { config, sources, env, options, program, argv } = invocation;
  return {
    config,
    sources,
    env,
    options,
    by: readBy(invocation),
    role: 'admin',
    command: `cd ${quoteForShell(process.cwd())} && ${commandLine(program, argv)}`,
    isAsked: options.yes !== true,
    newRunOnly: false,
  };
}

/** Returns a function that writes messages for people to stderr, one per line. */
export function lineWriter(stderr: NodeJS.WriteStream): (line: string) => void {
  return (line) => stderr.write(`${line}\n`);
}

/** Writes warnings to stderr. A server may have sent them, so control characters are made visible. */
export function writeWarnings(stderr: NodeJS.WriteStream, warnings: readonly Advice[], toType: ToType): void {
  for (const warning of warnings) {
    const lines = adviceText(warning, toType).split('\n');
    stderr.write(`warning: ${lines.map(visibleLine).join('\n  ')}\n`);
  }
}

/** Returns a function like that of `lineWriter` for optional messages: with --quiet it writes nothing. */
export function infoWriter({ stderr, verbosity }: Pick<Invocation, 'stderr' | 'verbosity'>): (line: string) => void {
  const say = lineWriter(stderr);
  if (verbosity !== 'quiet') return say;
  return (line) => {
    if (line.startsWith('warning: ')) say(line);
  };
}

/** Returns a function like that of `infoWriter` that writes nothing with --json. */
export function sayUnlessJson(invocation: Invocation): (line: string) => void {
  return invocation.options.json ? () => {} : infoWriter(invocation);
}

/** The stream for progress; none with --quiet. */
export function progressStream({ stderr, verbosity }: Pick<Invocation, 'stderr' | 'verbosity'>): NodeJS.WriteStream {
  if (verbosity !== 'quiet') return stderr;
  return new Writable({ write: (_chunk, _encoding, done) => done() }) as unknown as NodeJS.WriteStream;
}

/**
 * Returns when this number of deletions or requests has been confirmed, on the command line or by the person who is asked. `what`: as in a
 * `Question`. Throws USAGE otherwise.
 */
export function askCount(
  invocation: Invocation,
  expected: number,
  what: string,
  verb: 'delete' | 'send' = 'delete',
): Promise<void> {
  const { args, options, stdin, stderr, env } = invocation;
  const confirm = options.confirm ?? null;
  const question = { expected, what, verb, yes: options.yes === true, confirm };
  return confirmCount(question, { stdin, stderr, env, stdinIsData: args.includes('-') });
}

/**
 * The host of a protected target: from --confirm-host, or typed by the operator; undefined for other targets. Throws USAGE for any other host: a
 * server without that pattern would accept it. `atServer`: the host that a server requires.
 */
export async function askHost(
  { args, options, config, stdin, stderr, env }: Invocation,
  { baseUrl }: Pick<Target, 'baseUrl'>,
  atServer: string | null = null,
): Promise<string | undefined> {
  const host = protectedHost(config.protectedTargets, baseUrl) ?? atServer;
  if (host === null) return options.confirmHost;
  const asking = { stdin, stderr, env, stdinIsData: args.includes('-') };
  const typed = options.confirmHost ?? (await typeHost(host, asking));
  requireHost(host, typed);
  return typed;
}

/** Returns when the question has been answered with yes, by --yes or by the person who is asked. Throws USAGE otherwise. */
export function askYes({ options, stdin, stderr, env }: Invocation, question: string): Promise<void> {
  return confirmYes(question, options.yes === true, { stdin, stderr, env, stdinIsData: false });
}
