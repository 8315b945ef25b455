/** The roles over HTTP; each role may do everything that the earlier ones may. */
export const roles = ['read', 'plan', 'operate', 'admin'] as const;

export type Role = (typeof roles)[number];

/** Whether a role is enough where another one is needed. */
export function mayAct(role: Role, needed: Role): boolean {
  return roles.indexOf(role) >= roles.indexOf(needed);
}
