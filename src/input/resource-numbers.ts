import { builtInResources, isBuiltIn, type Resource } from '../model/resource.ts';

const maxNumber = 255; // a row has one byte for it

/**
 * The numbers of resources in one spool, from 1. Built-in resources always have the same; configured ones are numbered as they come, so that the bytes
 * of a list do not depend on what else is configured.
 */
export class ResourceNumbers {
  readonly #names: Resource[] = Object.keys(builtInResources);

  /** The number of a resource; 0 = none. */
  numberOf(resource: Resource | null): number {
    if (resource === null) return 0;
    const known = this.#names.indexOf(resource) + 1;
    if (known > 0) return known;
    if (this.#names.length === maxNumber) throw new Error('a list can hold at most 255 resources');
    return this.#names.push(resource);
  }

  nameOf(number: number): Resource | null {
    return this.#names[number - 1] ?? null;
  }

  /** The configured resources in the order of their numbers. */
  get configured(): readonly Resource[] {
    return this.#names.filter((name) => !isBuiltIn(name));
  }
}
