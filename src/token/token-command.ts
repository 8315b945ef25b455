import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Child, endChild, exitOf, startChild } from '../child-process.ts';
import { maskSecrets } from './fixed-token.ts';
import { lifeMsOf } from './refusals.ts';
import { bareToken, type IssueResult, type Issuer, isBearerToken, refused, tokenFormat, unavailable } from './token.ts';

/**
 * An issuer of tokens that a command prints: the token alone, or JSON with `access_token` and, if it is known, `expires_in`. The command is a
 * line for `sh`. A command that fails before it ever gave a token is refused for good, since a wrong command line is likelier than a
 * passing failure; later it is run again. `secrets` are masked in its stderr.
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

/** Names the program of a command only: its arguments may hold secrets. */
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
  const text = stdout.replace(/\r?\n$/, '');
  const { access_token, token_type = 'bearer', expires_in } = parse(text) ?? { access_token: bareToken(text) };
  if (typeof access_token !== 'string' || !isBearerToken(access_token)) {
    const got = text === '' ? 'nothing' : 'other text';
    return refused(
      `the token command: expected one bearer token or JSON with access_token, got ${got}; ${tokenFormat}`,
    );
  }
  if (String(token_type).toLowerCase() !== 'bearer') {
    return refused('the token command gave a token of another type than Bearer');
  }
  return { kind: 'issued', header: `Bearer ${access_token}`, lifeMs: lifeMsOf(expires_in) };
}

function parse(text: string): Record<string, unknown> | null {
  if (!text.trimStart().startsWith('{')) return null;
  try {
    return JSON.parse(text);
  } catch {
    return {};
  }
}

/** How a command ended: `error` describes what went wrong, '' if nothing did. */
type CommandResult = { error: string; isTimeOut: boolean; stdout: string; stderr: string };

const deadlineMs = 30_000;
const outputAtMost = 65_536;
const graceMs = 500;

/**
 * Runs a line by `sh -c`, without input, to its end. After 30 s or 64 KiB of output, or when `closing` aborts, its process group is killed.
 * A process that it leaves behind may continue, and its output counts for another half second. Never rejects.
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
    void exitOf(child).then(async (error) => {
      await drainOutput(child);
      settle(error);
    });
  });
}

function collect(child: Child, end: CommandResult, tooMuch: () => void): void {
  for (const name of ['stdout', 'stderr'] as const) {
    child[name].setEncoding('utf8').on('data', (text: string) => {
      if (end[name].length + text.length > outputAtMost) tooMuch();
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
