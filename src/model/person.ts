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

/** Whether two names are of one login: in `ana@host`, only `ana` is compared, without regard to case and white space. */
export function isSamePerson(a: string, b: string): boolean {
  return loginOf(a) === loginOf(b);
}

/** The login in a name, in one spelling: `ana` of `Ana @host`, or ''. */
export function loginOf(name: string): string {
  const [login = ''] = name.normalize('NFKC').toLowerCase().split('@', 1);
  return login.replace(/\s+/g, ' ').trim();
}
