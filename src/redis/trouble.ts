import { ExpungeError, messageOf, systemCode } from '../errors.ts';
import type { RedisAddress } from './address.ts';
import { refusalWords } from './refusal-words.ts';

/** Whether an error came from the connection to Redis, or is an answer with which Redis refused a command. */
export function isRedisTrouble(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  if (['ReplyError', 'MaxRetriesPerRequestError', 'AbortError'].includes(error.name)) return true;
  return /^(Connection is closed|Command timed out|Stream isn't writeable|Socket timeout)/.test(error.message);
}

/** The exit-6 error for a Redis that cannot be used. */
export function unreachable(address: RedisAddress, words: string): ExpungeError {
  const next =
    address.kind === 'url'
      ? 'check REDIS_URL and that Redis runs; the same command resumes'
      : 'the same command starts it again and resumes';
  return new ExpungeError('UNREACHABLE', `Redis at ${address.label}: ${words}`, { next });
}

/**
 * An ioredis error in words that are safe to print. The error object itself is not: it carries the arguments of the
 * failed command, which for AUTH are the password.
 */
export function redisWords(error: unknown): string {
  const message = messageOf(error);
  if (message.startsWith("Stream isn't writeable")) return 'there is no connection to it';
  return refusalWords(error) || (knownCodes[systemCode(error)] ?? message.slice(0, 200));
}

const knownCodes: Record<string, string> = {
  ECONNREFUSED: 'connection refused',
  ENOTFOUND: 'no such host',
  EAI_AGAIN: 'its host cannot be looked up',
  ENOENT: 'no such socket',
  EACCES: 'no permission for the socket',
  ECONNRESET: 'connection reset',
  ETIMEDOUT: 'connection timed out',
  EHOSTUNREACH: 'no route to the host',
};
