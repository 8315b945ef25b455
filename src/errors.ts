import { fileWords, isFileTrouble } from './system-words.ts';

/** What kind of trouble ended a command; each kind has one exit code. */
export type ErrorCode = keyof typeof exitCodes;

/** The exit codes a script can rely on. The table in the README is checked against this one. */
export const exitCodes = {
  OK: { exit: 0, meaning: 'all settled as success' },
  INTERNAL: { exit: 1, meaning: 'internal error, or a ledger that does not add up' },
  USAGE: { exit: 2, meaning: 'usage, input or no confirmation; nothing was sent' },
  INCOMPLETE: {
    exit: 3,
    meaning: 'ended with ids failed, unknown, rejected or not attempted, or none of the ids was there',
  },
  GUARD: { exit: 4, meaning: 'a guard halted the run' },
  CREDENTIALS: { exit: 5, meaning: 'the credentials were refused or are missing' },
  UNREACHABLE: { exit: 6, meaning: 'Redis or the API cannot be reached; the run can be resumed' },
  INTERRUPTED: { exit: 130, meaning: 'interrupted by SIGINT; the same command resumes' },
  TERMINATED: { exit: 143, meaning: 'stopped by SIGTERM; the same command resumes' },
} as const;

/**
 * An operator's mistake or an unusable surrounding: the message says what was expected, what came and where;
 * `next` says what to do about it. Never holds a secret: it is printed as it is.
 */
export class ExpungeError extends Error {
  readonly code: ErrorCode;
  readonly next: string | null;

  constructor(code: ErrorCode, message: string, options: { cause?: unknown; next?: string | null } = {}) {
    super(message, { cause: options.cause });
    this.name = 'ExpungeError';
    this.code = code;
    this.next = options.next ?? null;
  }
}

/** The system code of an error ('ENOENT', 'ECONNREFUSED', …), or '' where it has none. */
export function systemCode(error: unknown): string {
  const code = (error as { code?: unknown } | null)?.code;
  return typeof code === 'string' ? code : '';
}

/** A message that is safe to show or store: of what a file or folder refuses its name and why, of an unknown error only its code or first line. */
export function messageOf(error: unknown): string {
  if (!(error instanceof ExpungeError) && isFileTrouble(error)) return [...pathsOf(error), fileWords(error)].join(': ');
  if (error instanceof Error) return error.message.split('\n', 1)[0] || systemCode(error) || error.name;
  return String(error);
}

function pathsOf(error: unknown): string[] {
  const { path, dest } = error as { path?: string; dest?: string };
  const paths = [path, dest].filter((name) => name !== undefined);
  return paths.length > 0 ? [paths.join(' → ')] : [];
}
