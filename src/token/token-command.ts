import { bareToken, isBearerToken, tokenWords } from './bearer.ts';
import { type IssueEnd, type Issuer, refused, unavailable } from './issuer.ts';
import { type CommandEnd, runShell } from './run-shell.ts';
import { shown } from './secret-text.ts';
import { lifeMsOf } from './token-life.ts';

/**
 * Tokens that a command prints: either the token alone or JSON with `access_token` and, if it is known, `expires_in`. The command is a
 * line for `sh`. One that fails before it ever gave a token is refused for good, since its line is wrong more likely than the
 * weather is bad; later it is run again. `secrets` are masked in what it says.
 */
export function tokenCommand(line: string, env: NodeJS.ProcessEnv, secrets: readonly string[]): Issuer {
  let hasWorked = false;
  return {
    source: commandSource(line),
    async issue(closing) {
      const ended = await runShell(line, env, closing);
      const end = ended.trouble === '' ? readToken(ended.stdout) : notDone(ended, hasWorked, secrets);
      hasWorked ||= end.kind === 'issued';
      return end;
    },
  };
}

/** Names the program only: its arguments are nobody's business. */
export function commandSource(line: string): string {
  const program = /^[\w./-]+(?=\s|$)/.exec(line.trim())?.[0];
  return program === undefined ? 'the token command' : `the command ${program}`;
}

function notDone({ trouble, isTimeOut, stdout, stderr }: CommandEnd, hasWorked: boolean, secrets: readonly string[]) {
  const printed = stdout.split(/\s+/).filter((word) => word.length >= 12);
  const says = shown(stderr, [...secrets, ...printed]);
  const words = `the token command ${trouble}${says && `: ${says}`}`;
  return hasWorked || isTimeOut ? unavailable(words) : refused(words);
}

function readToken(stdout: string): IssueEnd {
  const text = stdout.replace(/\r?\n$/, '');
  const { access_token, token_type = 'bearer', expires_in } = parse(text) ?? { access_token: bareToken(text) };
  if (typeof access_token !== 'string' || !isBearerToken(access_token)) {
    const got = text === '' ? 'nothing' : 'other text';
    return refused(`the token command: expected one bearer token or JSON with access_token, got ${got}; ${tokenWords}`);
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
