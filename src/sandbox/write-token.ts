import { chmod, readFile, writeFile } from 'node:fs/promises';
import { ExpungeError, systemCode } from '../errors.ts';
import { fileTrouble } from '../system-words.ts';

/**
 * Writes a token to a file that only its owner can read. A file that holds something else is left alone, because it may be the
 * token of a real API. Repeating it changes nothing.
 */
export async function writeToken(path: string, token: string): Promise<void> {
  try {
    await writeFile(path, `${token}\n`, { mode: 0o600, flag: 'wx' });
  } catch (error) {
    if (systemCode(error) !== 'EEXIST') {
      const { words, next } = fileTrouble(error);
      throw new ExpungeError('USAGE', `${path}: cannot write the token: ${words}`, { cause: error, next });
    }
    if ((await readFile(path, 'utf8')).trim() !== token) {
      throw new ExpungeError('USAGE', `${path}: exists and holds another token`, { next: 'name a file that is free' });
    }
    await chmod(path, 0o600);
  }
}
