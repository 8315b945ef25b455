import { storedLine } from './visible.ts';

const maxNameLength = 100;

/** The maximum length of a reason, in characters. */
export const maxReasonLength = 500;

/** The name of a person as audit trails and runs store it. */
export function storedName(name: string): string {
  return storedLine(name, maxNameLength);
}

/** The reason that a person gives, stored in the same way; '' = none. */
export function storedReason(reason: string): string {
  return storedLine(reason, maxReasonLength);
}

/** Whether two names are of one login: in `ana@host`, only `ana` is compared, without regard to case. */
export function isSamePerson(a: string, b: string): boolean {
  const login = (name: string) => name.trim().toLowerCase().split('@', 1)[0];
  return login(a) === login(b);
}
