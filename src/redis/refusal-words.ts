import { messageOf } from '../errors.ts';

/**
 * Why Redis answers and does not do what it was asked, though it may later, in words: `its disk is full (MISCONF)`; '' for any other error. They
 * never hold what was asked.
 */
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
  MISCONF: diskWords,
  OOM: () => 'its memory is full, maxmemory is reached',
  NOREPLICAS: () => 'too few of its replicas are connected',
  READONLY: () => 'it is a read-only replica',
  NOPERM: permissionWords,
  LOADING: () => 'it is still loading its data',
  MASTERDOWN: () => 'it is a replica that has lost its primary',
};

/** A snapshot that failed says no more than that; what became of the append-only file is told by the system. */
function diskWords(message: string): string {
  const [, why] = /AOF file: (.+?)(?:$|\.? script:)/.exec(message) ?? [];
  if (why === 'No space left on device') return 'its disk is full';
  return why ? `it can't write its append-only file: ${why}` : 'its snapshot failed, the disk may be full';
}

function permissionWords(message: string): string {
  const [, command] = /run the '([^']+)' command/.exec(message) ?? [];
  const what = command ?? (/access .*\bkeys?\b/.test(message) ? 'one of our keys' : 'a command of a script');
  return `the login lacks the permission for ${what}`;
}
