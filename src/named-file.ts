import { readFileSync } from 'node:fs';
import { type ErrorCode, ExpungeError } from './errors.ts';
import { fileTrouble } from './system-words.ts';

/** The text of a file that a setting names, without the newline that editors put behind it. Throws `code`, naming flag and file. */
export function readNamedFile(flag: string, path: string, code: ErrorCode): string {
  try {
    return readFileSync(path, 'utf8').replace(/\r?\n$/, '');
  } catch (error) {
    const { words, next } = fileTrouble(error);
    throw new ExpungeError(code, `${flag} ${path}: ${words}`, { cause: error, next });
  }
}
