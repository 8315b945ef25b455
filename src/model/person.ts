/** Whether two names are of one login: of `ana@host` the machine does not count, nor does the case. */
export function isSamePerson(a: string, b: string): boolean {
  const login = (name: string) => name.trim().toLowerCase().split('@', 1)[0];
  return login(a) === login(b);
}
