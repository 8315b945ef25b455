import { storedLine } from './visible.ts';

const maxNameLength = 100;

/** The maximum length of a reason, in characters. */
export const maxReasonLength = 500;

/** The name of a person as audit trails and runs store it. */
export function storedName(name: string): string {
  return storedLine(name, maxNameLength);
}

/** The name that someone states, as it is stored: it never has the form of a name that this program made of a login. */
export function statedName(name: string): string {
  return storedName(name).replace(madeOfLogin, '$1 (at $2)');
}

/** The name of whoever uses this login of a machine. */
export function nameOfLogin(login: string, machine: string): string {
  return storedName(`${login} at ${machine}`);
}

const madeOfLogin = /^(.+) at (\S+)$/;

/** The reason that a person gives, stored in the same way; '' = none. */
export function storedReason(reason: string): string {
  return storedLine(reason, maxReasonLength);
}

/** Whether two names are of one person. They are compared whole, without regard to case and white space; of the name of a login, only the login. */
export function isSamePerson(a: string, b: string): boolean {
  return personIn(a) === personIn(b);
}

/** What is compared of a name, in one spelling: `ana` of `Ana at laptop`, or ''. */
export function personIn(name: string): string {
  const [, login = name] = madeOfLogin.exec(name) ?? [];
  return login.normalize('NFKC').toLowerCase().replace(/\s+/g, ' ').trim();
}
