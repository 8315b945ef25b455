/** `count` ids `<name>-000001`, …; every tenth with characters that a path must encode. */
export function makeIds(name: string, count: number): string[] {
  return Array.from(
    { length: count },
    (_, n) => `${name}-${String(n).padStart(6, '0')}${n % 10 === 7 ? '~ä+&=@:' : ''}`,
  );
}

/** The objects of these ids, as a sandbox takes them. */
export function annotations(ids: string[]) {
  return ids.map((id) => ({ resource: 'annotations' as const, id }));
}
