import { ExpungeError, messageOf } from '../errors.ts';
import { connectionWords, isConnectionTrouble } from '../system-words.ts';
import type { RedisAddress } from './address.ts';
import { deniedAdvice } from './denied.ts';
import { refusalAdvice, refusalWords } from './refusal-words.ts';

/** Whether an error came from the connection to Redis, or is an answer with which Redis refused a command. */
export function isRedisTrouble(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  if (['ReplyError', 'MaxRetriesPerRequestError', 'AbortError'].includes(error.name)) return true;
  return sayings.some((saying) => error.message.startsWith(saying));
}

/** How errors of ioredis begin that are neither an answer nor of a class of their own. */
const sayings = [
  ...['Connection is closed', 'Command timed out', "Stream isn't writeable", 'Socket timeout'],
  ...['Too many Cluster redirections', 'Failed to refresh slots cache', 'None of startup nodes', "Cluster isn't ready"],
];

/** The exit-6 error for a Redis that cannot be used. */
export function unreachable(address: RedisAddress, words: string): ExpungeError {
  const usual =
    address.kind === 'url'
      ? 'check REDIS_URL and that Redis runs; the same command resumes'
      : 'the same command starts it again and resumes';
  const repair = refusalAdvice(words);
  const next = tlsAdvice(words) ?? deniedAdvice(words) ?? (repair ? `${repair}; the same command resumes` : usual);
  return new ExpungeError('UNREACHABLE', `Redis at ${address.label}: ${words}`, { next });
}

/**
 * An ioredis error in words that are safe to print. The error object itself is not: it carries the arguments of the
 * failed command, which for AUTH are the password.
 */
export function redisWords(error: unknown): string {
  const root = rootOf(error);
  const message = messageOf(root);
  if (root !== error && message === 'Connection is closed.') return 'none of its servers answers';
  if (/^(Connection is closed|Stream isn't writeable|Cluster isn't ready|Reached the max retries)/.test(message))
    return noConnection;
  if (message.startsWith('Unknown RESP type')) return 'what answers there is no Redis';
  if (isConnectionTrouble(root)) return connectionWords(root);
  return refusalWords(root) || message.slice(0, 200);
}

const noConnection = 'there is no connection to it';

/** What the last server of a cluster said, where none of them was of any use; else the error itself. */
export function rootOf<T>(error: T): T {
  return (error as { lastNodeError?: T | null } | null)?.lastNodeError ?? error;
}

/** What to do about words on TLS; null for others. */
export function tlsAdvice(said: string): string | null {
  return forTls.find(([pattern]) => pattern.test(said))?.[1] ?? null;
}

const forTls: [RegExp, string][] = [
  [/not trusted here/, 'name that authority with --redis-ca-file, if it is yours'],
  [/certificate (has expired|is not valid)/, 'have the certificate of that Redis renewed'],
  [/certificate is for /, 'use that host in REDIS_URL, or say which name is right with --redis-server-name'],
  [/certificate from us/, 'name one with --redis-cert-file, and its key with --redis-key-file'],
  [/take our certificate/, 'name one that its authority has signed with --redis-cert-file and --redis-key-file'],
  [/does not speak TLS/, 'use its TLS port, or redis:// where it has none'],
];
