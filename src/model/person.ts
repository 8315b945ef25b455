import { storedLine } from './visible.ts';

const longestName = 100;

/** How many characters a reason may have. */
export const longestReason = 500;

/** The name of a person as audit trails and runs store it. */
export function storedName(name: string): string {
  return storedLine(name, longestName);
}

/** What a person says why, likewise; '' = nothing. */
export function storedReason(reason: string): string {
  return storedLine(reason, longestReason);
}

/** Whether two names are of one login: of `ana@host` the machine does not count, nor does the case. */
export function isSamePerson(a: string, b: string): boolean {
  const login = (name: string) => name.trim().toLowerCase().split('@', 1)[0];
  return login(a) === login(b);
}
