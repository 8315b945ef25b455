import { type Resource, resources } from '../model/outcome.ts';

/** One thing the sandbox holds and can delete. */
export type SandboxObject = { resource: Resource; id: string };

/** Either the objects themselves or how many of each to make: annotations a-000001, a-000002, …, views v-000001, … */
export type Objects = Iterable<SandboxObject> | { [R in Resource]?: number | undefined };

/** What the sandbox holds now. */
export type ObjectStore = Record<Resource, Set<string>>;

/** The id of the nth made object of a resource, counted from 1. */
export function madeId(resource: Resource, n: number): string {
  return `${resource[0]}-${String(n).padStart(6, '0')}`;
}

/** Holds the given objects; the same one twice is held once. */
export function holdObjects(objects: Objects): ObjectStore {
  const store = { annotations: new Set<string>(), views: new Set<string>() };
  if (Symbol.iterator in objects) {
    for (const { resource, id } of objects) store[resource].add(id);
    return store;
  }
  for (const resource of resources) {
    for (let n = 1; n <= (objects[resource] ?? 0); n++) store[resource].add(madeId(resource, n));
  }
  return store;
}
