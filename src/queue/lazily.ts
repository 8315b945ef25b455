/** Something that is made when it is first asked for: whatever belongs to BullMQ connects as soon as there is one. */
export type Lazy<T> = { (): T; readonly made: T | null };

export function lazily<T>(make: () => T): Lazy<T> {
  let made: T | null = null;
  const get = () => {
    made ??= make();
    return made;
  };
  return Object.defineProperty(get, 'made', { get: () => made }) as Lazy<T>;
}
