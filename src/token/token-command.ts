import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { awaitExit, type Child, endChild, startChild } from '../child-process.ts';
import { bareText, messageOf } from '../errors.ts';
import { parseStrictJson } from '../strict-json.ts';
import { bareToken, describeTokenFault, isBearerToken, tokenFormat } from './bearer-token.ts';
import { maskSecrets } from './fixed-token.ts';
import { parseLifeMs } from './refusals.ts';
import { type IssueResult, type Issuer, refused, unavailable } from './token.ts';

/**
 * An issuer of tokens that a command prints: the token alone, or JSON with `access_token` and, if known, `expires_in`. The command is a line for
 * `sh`. A command that fails before it ever gave a token is refused for good, because a wrong command line is likelier than a passing failure; later
 * it is run again. `secrets` are masked in its stderr.
 */
export function tokenCommand(line: string, env: NodeJS.ProcessEnv, secrets: readonly string[]): Issuer {
  let hasWorked = false;
  return {
    source: commandSource(line),
    async issue(closing) {
      const ended = await runShell(line, env, closing);
      const end = ended.error === '' ? readToken(ended.stdout) : failedResult(ended, hasWorked, secrets);
      hasWorked ||= end.kind === 'issued';
      return end;
    },
  };
}

/** Names only the program of a command, because its arguments may hold secrets. */
export function commandSource(line: string): string {
  const program = /^[\w./-]+(?=\s|$)/.exec(line.trim())?.[0];
  return program === undefined ? 'the token command' : `the command ${program}`;
}

function failedResult(
  { error, isTimeOut, stdout, stderr }: CommandResult,
  hasWorked: boolean,
  secrets: readonly string[],
) {
  const printed = stdout.split(/\s+/).filter((word) => word.length >= 12);
  const says = maskSecrets(stderr, [...secrets, ...printed]);
  const words = `the token command ${error}${says && `: ${says}`}`;
  return hasWorked || isTimeOut ? unavailable(words) : refused(words);
}

function readToken(stdout: string): IssueResult {
  const text = bareText(stdout);
  if (!text.trimStart().startsWith('{')) return issue({ access_token: text }, '');
  try {
    return issue(parseStrictJson(text) as Record<string, unknown>, 'JSON whose access_token is ');
  } catch (error) {
    return wrongOutput(`JSON that cannot be read: ${maskSecrets(messageOf(error), [])}`);
  }
}

/** Checks a token. `what`: the words before the fault of the token. */
function issue(
  { access_token, token_type = 'bearer', expires_in }: Record<string, unknown>,
  what: string,
): IssueResult {
  if (typeof access_token !== 'string') return wrongOutput('JSON without a text access_token');
  const token = bareToken(access_token);
  if (!isBearerToken(token)) return wrongOutput(what + describeTokenFault(access_token));
  if (String(token_type).toLowerCase() !== 'bearer') {
    return refused('the token command gave a token of another type than Bearer');
  }
  return { kind: 'issued', header: `Bearer ${token}`, lifeMs: parseLifeMs(expires_in) };
}

function wrongOutput(got: string): IssueResult {
  return refused(`the token command: expected one bearer token or JSON with access_token, got ${got}; ${tokenFormat}`);
}

/** The end of a command: `error` describes the problem, '' if there was none. */
type CommandResult = { error: string; isTimeOut: boolean; stdout: string; stderr: string };

const deadlineMs = 30_000;
const maxOutputLength = 65_536;
const graceMs = 500;

/**
 * Runs a line by `sh -c`, without input, to its end. After 30 s or 64 KiB of output, or when `closing` aborts, its process group is killed. A process
 * that it leaves behind may continue, and its output counts for another half second. Never rejects.
 */
function runShell(line: string, env: NodeJS.ProcessEnv, closing: AbortSignal): Promise<CommandResult> {
  const child = startChild('sh', ['-c', line], env);
  const end: CommandResult = { error: '', isTimeOut: false, stdout: '', stderr: '' };
  return new Promise((resolve) => {
    const settle = (error: string) => {
      clearTimeout(timer);
      closing.removeEventListener('abort', close);
      end.error ||= error;
      resolve(end);
    };
    const stop = (error: string) => {
      endChild(child);
      settle(error);
    };
    const close = () => stop('was stopped');
    const timer = setTimeout(() => {
      end.isTimeOut = true;
      stop(`gave no token in ${deadlineMs / 1_000} s`);
    }, deadlineMs);
    closing.addEventListener('abort', close, { once: true });
    collect(child, end, () => stop('prints too much'));
    void awaitExit(child).then(async (error) => {
      await drainOutput(child);
      settle(error);
    });
  });
}

function collect(child: Child, end: CommandResult, tooMuch: () => void): void {
  for (const name of ['stdout', 'stderr'] as const) {
    child[name].setEncoding('utf8').on('data', (text: string) => {
      if (end[name].length + text.length > maxOutputLength) tooMuch();
      else end[name] += text;
    });
  }
}

/** Reads the output to its end; if a process that the command left behind holds it open, for half a second. */
async function drainOutput({ stdout, stderr }: Child): Promise<void> {
  const ends = [stdout, stderr].map((stream) => (stream.closed ? null : once(stream, 'close')));
  await Promise.race([Promise.all(ends), sleep(graceMs)]).catch(() => {});
  stdout.destroy();
  stderr.destroy();
}
