import { messageOf } from '../errors.ts';
import { ourKeys, rightsAdvice } from './rights.ts';

const lacks = 'the login lacks the permission for';

/** In words what Redis refused because the login may not do it; null for any other error. Each release says it in its own way. */
export function deniedWords(error: unknown): string | null {
  const message = messageOf(error);
  const command = /permissions to run the '([^']+)' command/.exec(message)?.[1];
  if (command !== undefined) return `${lacks} ${command}`;
  // Before 7.2 nothing says which.
  if (/user executing the script can't run this command/.test(message)) return `${lacks} a command of a script`;
  if (/permissions to access (a key|one of the keys)|script can't access at least one of the keys/.test(message)) {
    return `${lacks} a key; ours begin with ${ourKeys}`;
  }
  return null;
}

/** What to do about such words; null for others. */
export function deniedAdvice(said: string): string | null {
  return said.startsWith(lacks) ? rightsAdvice : null;
}
