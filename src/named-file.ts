import { X509Certificate } from 'node:crypto';
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

/** The same of a file with certificates. Throws USAGE for one that holds none: it would be ignored, and all servers refused. */
export function readCertificates(flag: string, path: string): string {
  const text = readNamedFile(flag, path, 'USAGE');
  try {
    new X509Certificate(text);
    return text;
  } catch (error) {
    throw new ExpungeError('USAGE', `${flag} ${path}: expected certificates in PEM`, {
      cause: error,
      next: 'they begin with -----BEGIN CERTIFICATE-----',
    });
  }
}
