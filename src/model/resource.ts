/**
 * The kinds of objects that the API can delete, by their word in its paths, in lists and in reports. A new kind is one more word. Append only: the
 * index of each kind is part of what identifies a list.
 */
export const resources = ['annotations', 'views'] as const;
export type Resource = (typeof resources)[number];

/** A resource for code that can use any of them. */
export const anyResource: Resource = resources[0];

/** One value for each resource. */
export function perResource<T>(make: (resource: Resource) => T): Record<Resource, T> {
  return Object.fromEntries(resources.map((resource) => [resource, make(resource)])) as Record<Resource, T>;
}

/** The number of ids in a list, over all resources. */
export function sumIds(ids: Readonly<Record<Resource, number>>): number {
  return resources.reduce((sum, resource) => sum + ids[resource], 0);
}

/** The path of the objects of a resource below the base URL. */
export function collectionPath(resource: Resource): string {
  return `/v2/${resource}/`;
}

/** The resources in words: `annotations or views`. */
export function resourcesText(conjunction: 'and' | 'or'): string {
  return `${resources.slice(0, -1).join(', ')} ${conjunction} ${resources.at(-1)}`;
}

/** The word for one object of a resource: `annotation`. */
export function toSingular(resource: string): string {
  return resource.replace(/s$/, '');
}
