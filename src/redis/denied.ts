import { ourKeys } from './rights.ts';

/** In words what Redis refused because the login may not do it, or null for any other message. Each release says it in its own way. */
export function deniedWords(message: string): string | null {
  const command = /permissions to run the '([^']+)' command/.exec(message)?.[1];
  if (command !== undefined) return `the login lacks the permission for ${command}`;
  if (/user executing the script can't run this command/.test(message)) {
    return 'the login lacks the permission for a command of a script'; // before 7.2 nothing says which
  }
  if (/permissions to access (a key|one of the keys)|script can't access at least one of the keys/.test(message)) {
    return `the login lacks the permission for a key; ours begin with ${ourKeys}`;
  }
  return null;
}
