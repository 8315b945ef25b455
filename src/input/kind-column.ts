import { isNameOf, type Resource, resources, resourcesText } from '../model/resource.ts';
import { inputError, shown } from './input-error.ts';

/** Columns and fields that may name the kind of the ids, if no column was given; the first that exists counts. */
export const kindColumns: readonly string[] = [
  ...['resource', 'Resource', 'RESOURCE', 'resource_type', 'resourceType', 'object_type', 'objectType'],
  ...['type', 'Type', 'TYPE', 'kind', 'Kind', 'KIND'],
];

/** The resource that a text means although it is written in another way: `View`, `annotation `; null if it means none, or is the word itself. */
export function meantResource(text: unknown): Resource | null {
  if (typeof text !== 'string') return null;
  const found = wordOf(text);
  return found === text ? null : found;
}

/**
 * Watches a column that names the kind of the ids. A list is refused if its `resource` says another kind than --resource, or if a column such as
 * `type` says both kinds. If such a column says only the other kind, it may be about what the objects belong to.
 */
export class KindColumn {
  readonly #name: string;
  readonly #resource: Resource;
  readonly #said = new Set<Resource>();

  constructor(name: string, resource: Resource) {
    this.#name = name;
    this.#resource = resource;
  }

  /** Checks a value. Throws USAGE, naming the line. */
  check(column: string, value: string, line: number): void {
    const said = wordOf(value);
    if (said === null) return;
    const isNamedResource = column.toLowerCase() === 'resource';
    this.#said.add(said);
    if (isNamedResource ? said === this.#resource : this.#said.size === 1) return;
    const says = `the column ${shown(column)} says ${shown(value)}`;
    const message = isNamedResource
      ? `${says}, but --resource is ${this.#resource}`
      : `${says}, and another kind above`;
    const next = `--resource-column ${column} in place of --resource reads the resource of each row`;
    const words = value === said ? next : `${next}; its values have to be ${resourcesText('or')}`;
    throw inputError(this.#name, line, `${message}; nothing was sent`, words);
  }
}

function wordOf(text: string): Resource | null {
  return resources.includes(text) ? text : (resources.find((known) => isNameOf(text, known)) ?? null);
}
