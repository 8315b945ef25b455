import { readNamedFile } from '../errors.ts';
import { staticToken } from './fixed-token.ts';
import { bearerHeader, type Token } from './token.ts';

const readAgainAfterMs = 1_000;

/**
 * The token in a file, which is read again when the API refuses the token, and a second after it was last read, so that a rotated token is
 * used before the old one is refused. Throws CREDENTIALS if the file holds no token at first; later the old token stays while it holds
 * none. `clock`: monotonic ms.
 */
export function tokenFile(path: string, clock: () => number): Token {
  let header = readToken(path);
  let readAt = clock();
  let refreshes = 0;
  const readAgain = () => {
    readAt = clock();
    const before = header;
    try {
      header = readToken(path);
    } catch {
      // A replacement of the file may be in progress; until then the old token stays.
    }
    if (header !== before) refreshes++;
  };
  return {
    ...staticToken,
    authorization: () => {
      if (clock() - readAt >= readAgainAfterMs) readAgain();
      return header;
    },
    refused: (authorization) => {
      if (authorization === header) readAgain();
      return authorization === header ? { halt: `the API refused the token from ${path} (401)` } : 'again';
    },
    get refreshes() {
      return refreshes;
    },
    source: path,
  };
}

function readToken(path: string): string {
  return bearerHeader(readNamedFile('--token-file', path, 'CREDENTIALS'), path);
}
