import { ExpungeError, messageOf } from '../errors.ts';
import type { Advice } from '../model/to-type.ts';
import { describeConnectionError, isConnectionError } from '../system-errors.ts';
import type { RedisAddress } from './address.ts';
import { ourKeys, rightsAdvice } from './rights.ts';

/** Whether an error comes from the connection to Redis, or is an error reply of Redis. */
export function isRedisError(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  if (['ReplyError', 'MaxRetriesPerRequestError', 'AbortError'].includes(error.name)) return true;
  return messageStarts.some((start) => error.message.startsWith(start));
}

/** The starts of messages of ioredis errors that are neither replies nor of a class of their own. */
const messageStarts = [
  ...['Connection is closed', 'Command timed out', "Stream isn't writeable", 'Socket timeout'],
  ...['Too many Cluster redirections', 'Failed to refresh slots cache', 'None of startup nodes', "Cluster isn't ready"],
];

/** The error (exit code 6) for a Redis that cannot be used. */
export function unreachable(address: RedisAddress, words: string): ExpungeError {
  const usual =
    address.kind === 'url'
      ? 'check REDIS_URL and that Redis runs; the same command resumes'
      : 'the same command starts it again and resumes';
  const repair = rejectionAdvice(words);
  const next =
    tlsAdvice(words) ??
    deniedAdvice(words) ??
    loginAdvice(words) ??
    (repair ? `${repair}; the same command resumes` : usual);
  const isLate = words === 'Command timed out';
  const said = isLate ? `${words}: it hangs, or takes more than 3 s for an answer` : words;
  return new ExpungeError('UNREACHABLE', `Redis at ${address.label}: ${said}`, { next });
}

/**
 * Describes an ioredis error in text that is safe to print. The error object is not safe: it carries the arguments of the failed command, which for
 * AUTH are the password.
 */
export function describeRedisError(error: unknown): string {
  const root = findRootError(error);
  const message = messageOf(root);
  if (root !== error && message === 'Connection is closed.') return 'none of its servers answers';
  if (/^(Connection is closed|Stream isn't writeable|Cluster isn't ready|Reached the max retries)/.test(message))
    return noConnection;
  if (message.startsWith(noPrimaryStart)) return describeNoPrimary(message);
  if (message.startsWith('Unknown RESP type')) return 'the server that answers there is not a Redis';
  if (isConnectionError(root)) return describeConnectionError(root);
  return describeRejection(root) || message.slice(0, 200);
}

const noConnection = 'there is no connection to it';

/** ioredis also reports this if sentinels answer: during a failover it can happen that none of them names a primary. */
const noPrimaryStart = 'All sentinels are unreachable';

function describeNoPrimary(message: string): string {
  const [, last] = /Last error: (.*?)\.?$/s.exec(message) ?? [];
  return `none of its sentinels names a primary${last ? `; the last one that failed: ${last.slice(0, 200)}` : ''}`;
}

/** The error of the last server that a cluster client tried, if there is one; otherwise the error itself. */
export function findRootError<T>(error: T): T {
  return (error as { lastNodeError?: T | null } | null)?.lastNodeError ?? error;
}

/** The advice for a TLS error, by its text; null for other texts. */
export function tlsAdvice(said: string): string | null {
  return tlsAdvices.find(([pattern]) => pattern.test(said))?.[1] ?? null;
}

const tlsAdvices: [RegExp, string][] = [
  [/not trusted here/, 'name that authority in EXPUNGE_REDIS_CA_FILE, if it is yours'],
  [/certificate (has expired|is not valid)/, 'have the certificate of that Redis renewed'],
  [/certificate is for /, 'use that host in REDIS_URL, or say which name is right in EXPUNGE_REDIS_SERVER_NAME'],
  [/certificate from us/, 'name one in EXPUNGE_REDIS_CERT_FILE, and its key in EXPUNGE_REDIS_KEY_FILE'],
  [
    /take our certificate/,
    'name one that its authority has signed in EXPUNGE_REDIS_CERT_FILE and EXPUNGE_REDIS_KEY_FILE',
  ],
  [/does not speak TLS/, 'use its TLS port, or redis:// if it has none'],
];

const deniedStart = 'the login lacks the permission for';

/** Describes the right that the login lacks; null for any other error. The messages differ between releases of Redis. */
function describeDenial(error: unknown): string | null {
  const message = messageOf(error);
  const command = /permissions to run the '([^']+)' command/.exec(message)?.[1];
  if (command !== undefined) return `${deniedStart} ${command}`;
  // Before 7.2 the message doesn't name the command.
  if (/user executing the script can't run this command/.test(message)) return `${deniedStart} a command of a script`;
  if (/permissions to access (a key|one of the keys)|script can't access at least one of the keys/.test(message)) {
    return `${deniedStart} a key; ours begin with ${ourKeys}`;
  }
  return null;
}

/** The advice for a reply that refuses the connection itself, by its text; null for other texts. */
function loginAdvice(said: string): string | null {
  return loginAdvices.find(([pattern]) => pattern.test(said))?.[1] ?? null;
}

const loginAdvices: [RegExp, string][] = [
  [
    /\bNOAUTH\b/,
    'it needs a password: name a file that holds it in EXPUNGE_REDIS_PASSWORD_FILE; the same command resumes',
  ],
  [
    /max number of clients/,
    'it has as many connections as its maxclients allows: raise that, or use fewer workers; the same command resumes',
  ],
];

/** The advice for the text of `describeDenial`; null for other texts. */
function deniedAdvice(said: string): Advice | null {
  return said.startsWith(deniedStart) ? rightsAdvice : null;
}

/**
 * Describes why Redis rejects a command that it may accept later: `its disk is full (MISCONF)`; '' for any other error. The text never contains the
 * command.
 */
export function describeRejection(error: unknown): string {
  const message = messageOf(error);
  const [, code] = rejectionCode.exec(message) ?? [];
  if (code !== undefined) return `${rejections[code]!(message)} (${code})`;
  const denied = describeDenial(error);
  return denied === null ? '' : `${denied} (NOPERM)`;
}

/** The advice for the text of `describeRejection`; null for other texts. */
export function rejectionAdvice(words: string): string | null {
  return advice.find(([code]) => words.endsWith(code))?.[1] ?? null;
}

/** The advice for a full disk. */
export const diskAdvice = 'make room on its disk, and see its log';

const advice = [
  ['(OOM)', 'raise its maxmemory, or remove what fills it'],
  ['(MISCONF)', diskAdvice],
  ['(NOREPLICAS)', 'bring its replicas back, or lower its min-replicas-to-write'],
  ['(READONLY)', 'name the primary in REDIS_URL, or its sentinels'],
] as const;

// For a command in a script, Redis 6.2 puts the code after the position in the script: "ERR Error running script …: -OOM command not allowed".
const rejectionCode = /(?:^|-)(MISCONF|OOM|NOREPLICAS|READONLY|LOADING|MASTERDOWN)\b/;

const rejections: Record<string, (message: string) => string> = {
  MISCONF: describeDiskError,
  OOM: () => 'its memory is full, maxmemory is reached',
  NOREPLICAS: () => 'too few of its replicas are connected',
  READONLY: () => 'it is a read-only replica',
  LOADING: () => 'it is still loading its data',
  MASTERDOWN: () => 'it is a replica that has lost its primary',
};

/** Describes a disk error. Redis gives no cause for a failed snapshot; for the append-only file it quotes the error of the system. */
function describeDiskError(message: string): string {
  const [, why] = /AOF file: (.+?)(?:$|\.? script:)/.exec(message) ?? [];
  if (why === 'No space left on device') return 'its disk is full';
  return why ? `it can't write its append-only file: ${why}` : 'its snapshot failed, the disk may be full';
}
