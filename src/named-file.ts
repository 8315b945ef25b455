import { X509Certificate } from 'node:crypto';
import { readFileSync, statSync } from 'node:fs';
import { type ErrorCode, ExpungeError, systemCode } from './errors.ts';
import { fileTrouble, type Trouble } from './system-words.ts';

/** The text of a file that a setting names, without the newline that editors put behind it. Throws `code`, naming flag and file. */
export function readNamedFile(flag: string, path: string, code: ErrorCode): string {
  try {
    return readFileSync(path, 'utf8').replace(/\r?\n$/, '');
  } catch (error) {
    const denied = systemCode(error) === 'EACCES' ? deniedTrouble(path) : null;
    const { words, next } = denied ?? fileTrouble(error);
    throw new ExpungeError(code, `${flag} ${path}: ${words}`, { cause: error, next });
  }
}

/** Who may not read it, and whose it is: in a container that is not who started it. Null where not even that can be seen. */
function deniedTrouble(path: string): Trouble | null {
  try {
    const { mode, uid } = statSync(path);
    const me = process.geteuid?.();
    return {
      words: `user ${me} may not read it, it belongs to user ${uid} (mode ${(mode & 0o777).toString(8).padStart(3, '0')})`,
      next: `let user ${me} read it, or run as one who may: with docker compose, WORKER_UID says who that is`,
    };
  } catch {
    return null;
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
