import type { Config } from '../config/settings.ts';
import { ExpungeError } from '../errors.ts';
import { type Definitions, definitionsText, describeOtherDefinitions, resources } from '../model/resource.ts';

/** The definitions of the configured resources that a list with these settings can have ids of, as they are stored. */
export function definitionsFor({ resource, resourceColumn }: Pick<Config, 'resource' | 'resourceColumn'>): string {
  if (resource !== undefined) return definitionsText([resource]);
  return resourceColumn === undefined ? '' : definitionsText(resources);
}

/**
 * Throws GUARD if this process defines a resource of these stored definitions in another way. `what`: the run or schedule that stores them, in words.
 */
export function requireSameDefinitions(stored: string, what: string): void {
  refuse(describeOtherDefinitions(stored), what);
}

/** The same for a server, which has these definitions, and a list that is sent to it. */
export function requireSameAtServer(stored: string, atServer: Definitions): void {
  refuse(describeOtherDefinitions(stored, atServer, 'at the server'), 'the configuration file of this command');
}

function refuse(others: readonly string[], what: string): void {
  if (others.length === 0) return;
  throw new ExpungeError('GUARD', `${what} deletes in another way: ${others.join(', ')}; nothing was sent`, {
    next: (toType) => `use the same definition on both sides; see it: ${toType('config', 'show')}`,
  });
}
