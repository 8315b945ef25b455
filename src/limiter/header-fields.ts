/** The headers of an answer: names in lower case, a list where one came several times. */
export type HeaderFields = Readonly<Record<string, string | string[] | undefined>>;

/** Every value of that name, trimmed, in the order they came. */
export function valuesOf(headers: HeaderFields, name: string): string[] {
  const value = headers[name];
  if (value === undefined) return [];
  return typeof value === 'string' ? [value.trim()] : value.map((one) => one.trim());
}
