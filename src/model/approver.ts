import { isSamePerson, personIn, storedName } from './person.ts';
import { mayAct, type Role } from './role.ts';

// Who has to approve a plan: a person by their name, or anyone with a role, written as `role:admin`.

const prefix = 'role:';

/** The roles that can approve a plan. */
const approvingRoles = ['operate', 'admin'] as const satisfies readonly Role[];

/** A person who approves or plans, and their role. A command at Redis has the role admin: it can do everything anyway. */
export type Approver = { who: string; role: Role };

/** Parses the text of --approve-by. Throws an Error for a role that approves nothing, and for no name. */
export function parseApprover(text: string): string {
  const name = storedName(text.trim());
  if (personIn(name) === '') throw new Error('expected a name, or a role like role:admin, got none');
  const role = personIn(name).replaceAll(' ', '');
  if (!role.startsWith(prefix)) return name;
  if (roleIn(role) !== null) return role;
  const all = approvingRoles.map((role) => prefix + role).join(' or ');
  throw new Error(`"${name}": expected ${all}, or the name of a person`);
}

/** The role that has to approve; null: a person has to. */
export function roleIn(approver: string): Role | null {
  return approvingRoles.find((role) => approver === prefix + role) ?? null;
}

/** Whether someone may apply a plan. `approver`: as `parseApprover` returned it; null: anyone may. No one approves their own plan. */
export function mayApprove(approver: string | null, planner: string, { who, role }: Approver): boolean {
  if (approver === null) return true;
  if (isSamePerson(planner, who)) return false;
  const needed = roleIn(approver);
  return needed === null ? isSamePerson(approver, who) : mayAct(role, needed);
}

/** Who has to approve, in words: `ben`, `someone with the role admin`. */
export function approverText(approver: string): string {
  const role = roleIn(approver);
  return role === null ? approver : `someone with the role ${role}`;
}
