import { X509Certificate } from 'node:crypto';
import { readFileSync, statSync } from 'node:fs';
import { type Advice, adviceText, toTypeAnywhere } from './model/to-type.ts';
import { describeFileError, type Explanation, explainFileError, isFileError, systemCode } from './system-errors.ts';

/** The kind of error that ended a command; each has one exit code. */
export type ErrorCode = keyof typeof exitCodes;

/** The exit codes that a script can rely on. They are also the source of the tables in the documentation. */
export const exitCodes = {
  OK: { exit: 0, meaning: 'all settled as success' },
  INTERNAL: { exit: 1, meaning: 'internal error, or the stored counts do not add up' },
  USAGE: { exit: 2, meaning: 'usage, input or no confirmation; nothing was sent' },
  INCOMPLETE: {
    exit: 3,
    meaning: 'ended with ids failed, unknown, rejected or not attempted, or nothing shows that any id was there',
  },
  GUARD: { exit: 4, meaning: 'a guard halted the run, or paused it because its time is up' },
  CREDENTIALS: { exit: 5, meaning: 'the credentials were rejected or are missing' },
  UNREACHABLE: { exit: 6, meaning: 'Redis or the API cannot be reached; the run can be resumed' },
  INTERRUPTED: { exit: 130, meaning: 'interrupted by SIGINT; the same command resumes' },
  TERMINATED: { exit: 143, meaning: 'stopped by SIGTERM; the same command resumes' },
} as const;

/**
 * A mistake of the operator or an unusable environment. The message says what was expected, what came and where. `next` says what to do, in a form
 * that anyone can read. Neither holds a secret, because both are printed unchanged. `advice` is `next` for code that knows how the reader starts
 * commands.
 */
export class ExpungeError extends Error {
  readonly code: ErrorCode;
  readonly next: string | null;
  readonly advice: Advice | null;

  constructor(code: ErrorCode, message: string, options: { cause?: unknown; next?: Advice | null } = {}) {
    super(message, { cause: options.cause });
    this.name = 'ExpungeError';
    this.code = code;
    this.advice = options.next ?? null;
    this.next = adviceText(this.advice, toTypeAnywhere);
  }
}

/** Returns a message that is safe to show or store: the path and the reason for a file error, the first line or the code for an unknown error. */
export function messageOf(error: unknown): string {
  if (!(error instanceof ExpungeError) && isFileError(error))
    return [...pathsOf(error), describeFileError(error)].join(': ');
  if (error instanceof Error) return error.message.split('\n', 1)[0] || systemCode(error) || error.name;
  return String(error);
}

function pathsOf(error: unknown): string[] {
  const { path, dest, syscall } = error as { path?: string; dest?: string; syscall?: string };
  if (syscall === 'uv_cwd') return ['the folder in which the command runs'];
  const paths = [path, dest].filter((name) => name !== undefined);
  return paths.length > 0 ? [paths.join(' → ')] : [];
}

/** The text that a person or a program wrote, without the byte order mark and the last newline that editors add. */
export function bareText(written: string): string {
  return written.replace(/^\uFEFF/, '').replace(/\r?\n$/, '');
}

/** Reads the `bareText` of a file that a setting names. Throws `code`, naming flag and file. */
export function readNamedFile(flag: string, path: string, code: ErrorCode): string {
  try {
    return bareText(readFileSync(path, 'utf8'));
  } catch (error) {
    const denied = systemCode(error) === 'EACCES' ? explainDenied(path) : null;
    const { words, next } = denied ?? explainFileError(error);
    throw new ExpungeError(code, `${flag} ${path}: ${words}`, { cause: error, next });
  }
}

/** Reads a file with certificates. Throws USAGE if it holds none: TLS would ignore the file and reject every server. */
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

/** Which user is denied, and who owns the file: in a container often not the user who started it. Null if that cannot be read. */
function explainDenied(path: string): Explanation | null {
  try {
    const { mode, uid } = statSync(path);
    const me = process.geteuid?.();
    return {
      words: `user ${me} may not read it, it belongs to user ${uid} (mode ${(mode & 0o777).toString(8).padStart(3, '0')})`,
      next: `let user ${me} read it, or run as a user who may (docker compose: WORKER_UID)`,
    };
  } catch {
    return null;
  }
}
