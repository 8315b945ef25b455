import type { Config } from '../config/settings.ts';
import { ExpungeError } from '../errors.ts';
import {
  type Definitions,
  definitionsText,
  describeOtherDefinitions,
  type Resource,
  readDefinitions,
  resources,
  resourcesIn,
} from '../model/resource.ts';

/** The definitions of the configured resources that a list with these settings can have ids of, as they are stored. */
export function definitionsFor({ resource, resourceColumn }: Pick<Config, 'resource' | 'resourceColumn'>): string {
  if (resource !== undefined) return definitionsText([resource]);
  return resourceColumn === undefined ? '' : definitionsText(resources);
}

/**
 * Throws GUARD if this process defines a resource of these stored definitions in another way. `what`: the run or schedule that stores them, in words.
 */
export function requireSameDefinitions(stored: string, what: string): void {
  refuse(describeOtherDefinitions(readDefinitions(stored)), what);
}

/**
 * Throws GUARD if a list has ids of a resource that is defined here but not in the stored definitions: whoever made the schedule did not mean it.
 */
export function requireDefined(stored: string, used: readonly Resource[], what: string): void {
  const defined = resourcesIn(stored);
  const others = used.filter((resource) => !defined.includes(resource));
  if (others.length === 0) return;
  const message = `the list has ids of ${others.join(', ')}, which ${what} does not define; nothing was sent`;
  throw new ExpungeError('GUARD', message, { next: 'add the schedule again with --replace, or take these rows out' });
}

/** Throws GUARD if a server with these definitions defines a resource of a list that is sent to it in another way. */
export function requireSameAtServer(stored: string, atServer: Definitions): void {
  refuse(
    describeOtherDefinitions(readDefinitions(stored), atServer, 'at the server'),
    'the configuration file of this command',
  );
}

function refuse(others: readonly string[], what: string): void {
  if (others.length === 0) return;
  throw new ExpungeError('GUARD', `${what} deletes in another way: ${others.join(', ')}; nothing was sent`, {
    next: (toType) => `use the same definition on both sides; see it: ${toType('config', 'show')}`,
  });
}
