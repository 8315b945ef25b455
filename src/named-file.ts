import { readFileSync, statSync } from 'node:fs';
import { type ErrorCode, ExpungeError, messageOf, systemCode } from './errors.ts';

/** The text of a file that a setting names, without the newline that editors put behind it. Throws `code`, naming flag and file. */
export function readNamedFile(flag: string, path: string, code: ErrorCode): string {
  try {
    return readFileSync(path, 'utf8').replace(/\r?\n$/, '');
  } catch (error) {
    const denied = systemCode(error) === 'EACCES' ? deniedWords(path) : null;
    throw new ExpungeError(code, `${flag} ${path}: ${denied?.words ?? messageOf(error)}`, {
      cause: error,
      ...(denied === null ? {} : { next: denied.next }),
    });
  }
}

/** Who may not read it, and whose it is: in a container that is not who started it. Null where not even that can be seen. */
function deniedWords(path: string): { words: string; next: string } | null {
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
