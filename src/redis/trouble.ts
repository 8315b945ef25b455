import { ExpungeError, messageOf, systemCode } from '../errors.ts';
import type { RedisAddress } from './address.ts';
import { deniedAdvice } from './denied.ts';
import { refusalWords } from './refusal-words.ts';
import { tlsAdvice, tlsWords } from './tls-words.ts';

/** Whether an error came from the connection to Redis, or is an answer with which Redis refused a command. */
export function isRedisTrouble(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  if (['ReplyError', 'MaxRetriesPerRequestError', 'AbortError'].includes(error.name)) return true;
  if (/^(Connection is closed|Command timed out|Stream isn't writeable|Socket timeout)/.test(error.message))
    return true;
  return /^(Too many Cluster redirections|Failed to refresh slots cache|None of startup nodes|Cluster isn't ready)/.test(
    error.message,
  );
}

/** The exit-6 error for a Redis that cannot be used. */
export function unreachable(address: RedisAddress, words: string): ExpungeError {
  const usual =
    address.kind === 'url'
      ? 'check REDIS_URL and that Redis runs; the same command resumes'
      : 'the same command starts it again and resumes';
  const next = tlsAdvice(words) ?? deniedAdvice(words) ?? usual;
  return new ExpungeError('UNREACHABLE', `Redis at ${address.label}: ${words}`, { next });
}

/**
 * An ioredis error in words that are safe to print. The error object itself is not: it carries the arguments of the
 * failed command, which for AUTH are the password.
 */
export function redisWords(error: unknown): string {
  const root = rootOf(error);
  const message = messageOf(root);
  if (message.startsWith("Stream isn't writeable")) return 'there is no connection to it';
  return knownCodes[systemCode(root)] ?? tlsWords(root) ?? (refusalWords(root) || message.slice(0, 200));
}

/** What the last server of a cluster said, where none of them was of any use; else the error itself. */
export function rootOf<T>(error: T): T {
  return (error as { lastNodeError?: T | null } | null)?.lastNodeError ?? error;
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
