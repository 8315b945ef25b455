import { messageOf, systemCode } from '../errors.ts';

/**
 * An ioredis error in words that are safe to print and go behind "Redis" or its name: `refuses writes: its disk is full (MISCONF)`,
 * `connection refused`. The error object itself is not safe: it carries the arguments of the failed command, which for AUTH are the password.
 */
export function redisWords(error: unknown): string {
  return refusalWords(error) || knownCodes[systemCode(error)] || messageOf(error).slice(0, 200);
}

/** The same for an error with which Redis answers and does not do what it was asked, though it may later; '' for any other one. */
export function refusalWords(error: unknown): string {
  const message = messageOf(error);
  const [, code] = refusal.exec(message) ?? [];
  if (code !== undefined) return `${refusals[code]!(message)} (${code})`;
  return denialInScript.test(message) ? `${refusals.NOPERM!(message)} (NOPERM)` : '';
}

// In a script of Redis 6.2 the code stands behind the place in the script: "ERR Error running script …: -OOM command not allowed".
const refusal = /(?:^|-)(MISCONF|OOM|NOREPLICAS|READONLY|NOPERM|LOADING|MASTERDOWN)\b/;
const denialInScript = /The user executing the script can't|ACL failure in script/;

const refusals: Record<string, (message: string) => string> = {
  MISCONF: (message) => `refuses writes: ${diskWords(message)}`,
  OOM: () => 'refuses writes: its memory is full, maxmemory is reached',
  NOREPLICAS: () => 'refuses writes: too few of its replicas are connected',
  READONLY: () => 'refuses writes: it is a read-only replica',
  NOPERM: (message) => `refuses ${permissionWords(message)}`,
  LOADING: () => 'is still loading its data',
  MASTERDOWN: () => 'is a replica that has lost its primary',
};

/** A snapshot that failed says no more than that; what became of the append-only file is told by the system. */
function diskWords(message: string): string {
  const [, why] = /AOF file: (.+?)(?:$|\.? script:)/.exec(message) ?? [];
  if (why === 'No space left on device') return 'its disk is full';
  return why ? `it can't write its append-only file: ${why}` : 'its snapshot failed, the disk may be full';
}

function permissionWords(message: string): string {
  const [, command] = /run the '([^']+)' command/.exec(message) ?? [];
  if (command !== undefined) return `its login the command ${command.toUpperCase().replace('|', ' ')}`;
  return /access .*\bkeys?\b/.test(message) ? 'its login one of our keys' : 'its login a command of our scripts';
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
