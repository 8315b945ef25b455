import { readFileSync } from 'node:fs';
import { type ErrorCode, ExpungeError, messageOf } from './errors.ts';

/** The text of a file that a setting names, without the newline that editors put behind it. Throws `code`, naming flag and file. */
export function readNamedFile(flag: string, path: string, code: ErrorCode): string {
  try {
    return readFileSync(path, 'utf8').replace(/\r?\n$/, '');
  } catch (error) {
    throw new ExpungeError(code, `${flag} ${path}: ${messageOf(error)}`, { cause: error });
  }
}
