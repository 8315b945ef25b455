import { readFileSync } from 'node:fs';
import { ExpungeError, messageOf } from '../errors.ts';

/** Where the bearer token comes from. Its value is in memory only: never in arguments, jobs, logs, errors or reports. */
export type Token = {
  /** The whole header: `Bearer …`. */
  authorization(): string;
  /** The server refused a request with this header. True if another token is there now, so that trying again makes sense. */
  refused(authorization: string): boolean;
  /** For people: `EXPUNGE_TOKEN` or the file's name. */
  source: string;
};

/**
 * `--token-file`, else EXPUNGE_TOKEN. Throws CREDENTIALS if neither holds a token that can stand in a header (RFC 6750 §2.1).
 * A file is read again when the server refuses the token, and a second after it was last read, so that a rotated token is used
 * before the old one is refused.
 */
export function openToken(tokenFile: string | undefined, env: NodeJS.ProcessEnv, now: () => number): Token {
  if (tokenFile !== undefined) return tokenFromFile(tokenFile, now);
  const token = env.EXPUNGE_TOKEN;
  if (token === undefined || token === '') {
    throw new ExpungeError('CREDENTIALS', 'expected an access token in EXPUNGE_TOKEN or in --token-file, got none', {
      next: 'write the token to a file that only you can read and name it: --token-file FILE',
    });
  }
  const header = `Bearer ${checkToken(token, 'EXPUNGE_TOKEN')}`;
  return { authorization: () => header, refused: () => false, source: 'EXPUNGE_TOKEN' };
}

const readAgainAfterMs = 1_000;

function tokenFromFile(path: string, now: () => number): Token {
  let header = readToken(path);
  let readAt = now();
  const readAgain = () => {
    readAt = now();
    try {
      header = readToken(path);
    } catch {
      // Whoever rotates the token may be about to put the file back; until then the old token is all there is.
    }
  };
  return {
    authorization: () => {
      if (now() - readAt >= readAgainAfterMs) readAgain();
      return header;
    },
    refused: (authorization) => {
      if (authorization === header) readAgain();
      return authorization !== header;
    },
    source: path,
  };
}

function readToken(path: string): string {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    throw new ExpungeError('CREDENTIALS', `--token-file ${path}: ${messageOf(error)}`, { cause: error });
  }
  return `Bearer ${checkToken(text.replace(/\r?\n$/, ''), path)}`;
}

function checkToken(token: string, source: string): string {
  if (/^[A-Za-z0-9._~+/-]+=*$/.test(token)) return token;
  throw new ExpungeError(
    'CREDENTIALS',
    `${source}: expected one bearer token, got ${token === '' ? 'nothing' : 'other text'}`,
    {
      next: 'a token consists of letters, digits and - . _ ~ + / with = at the end; its content is not shown here',
    },
  );
}
