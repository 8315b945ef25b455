import canonicalJson from 'canonicalize';
import { parseOnStatus } from './on-status.ts';
import { toSingular } from './singular.ts';
import { acceptedStatus, successStatus } from './status.ts';

/** A kind of objects that the API can delete, by its word in lists and in reports: `annotations`, or a name of the configuration file. */
export type Resource = string;

/** How the objects of one resource are deleted: always by DELETE, one object per request. */
export type Definition = {
  path: string; // below the base URL, with one segment `{id}`: /v2/annotations/{id}
  success: readonly number[]; // the statuses that say that the object is deleted, or with 202 that its deletion is accepted
  absent: readonly number[]; // the statuses that say that the object does not exist
  auth: { header: string; scheme: string }; // where the token goes; scheme '' = the header holds the token alone
  headers: Readonly<Record<string, string>>; // sent with each request
  repeat?: Repeat; // missing: it is sent again after an unclear answer, and nothing is known about one that was confirmed
};

/**
 * A second DELETE of the same object. `never`: it may do more than the first, so it is never sent if the first may have been executed. `harmless`: it
 * does nothing more.
 */
export const repeats = ['never', 'harmless'] as const;
export type Repeat = (typeof repeats)[number];

export type Definitions = Readonly<Record<Resource, Definition>>;

/** The place of the token and the fixed headers of a request. */
export type RequestForm = Pick<Definition, 'auth' | 'headers'>;

/** The token in the header of OAuth 2.0 (RFC 6750), and no other header. */
export const bearerForm: RequestForm = { auth: { header: 'authorization', scheme: 'Bearer' }, headers: {} };

/** A resource of the API that expunge was made for: a 204 alone says deleted. */
function builtIn(name: Resource): [Resource, Definition] {
  return [name, { path: `/v2/${name}/{id}`, success: [successStatus], absent: [404, 410], ...bearerForm }];
}

/**
 * The resources that need no configuration. Append only: the index of each is part of what identifies a list. The configuration file can define other
 * resources, but not these.
 */
export const builtInResources: Definitions = Object.fromEntries([builtIn('annotations'), builtIn('views')]);

const builtInNames: readonly Resource[] = Object.keys(builtInResources);
let definitions: Definitions = builtInResources;
const names: Resource[] = [...builtInNames];

/** The resources that this process knows: the built-in ones, then those of its configuration file. Read it when it is needed. */
export const resources: readonly Resource[] = names;

/**
 * Sets the resources of this process: the built-in ones and these, which can say of a built-in one whether its DELETE is repeated. A process does it
 * once, before anything uses a resource.
 */
export function defineResources(configured: Definitions): void {
  definitions = { ...builtInResources, ...configured };
  const others = Object.keys(configured).filter((name) => !isBuiltIn(name));
  names.splice(builtInNames.length, names.length, ...others);
}

const namePattern = /^[a-z][a-z0-9_-]{0,39}$/;

/** Whether a resource can have this name. It is part of Redis keys, labels of metrics and column names. */
export function isResourceName(text: string): boolean {
  return namePattern.test(text);
}

export const resourceNameRule = 'a small letter, then small letters, digits, _ and -, at most 40 characters';

export function isBuiltIn(resource: Resource): boolean {
  return builtInNames.includes(resource);
}

/** The definition of a resource. Throws an Error for a resource that this process does not know. */
export function definitionOf(resource: Resource): Definition {
  const found = Object.hasOwn(definitions, resource) ? definitions[resource] : undefined;
  if (found === undefined) throw new Error(`no resource is called "${resource}" here`);
  return found;
}

/** The definitions of these resources, without those that are built in and as they are. */
export function definitionsOf(used: readonly Resource[]): Definitions {
  const configured = used.filter((resource) => !isBuiltIn(resource) || isNeverRepeated(definitionOf(resource)));
  return Object.fromEntries(configured.map((name) => [name, definitionOf(name)]));
}

/**
 * The same in canonical JSON: what a run and a schedule store, so that no process deletes their ids in another way. '' if all of them are built in.
 */
export function definitionsText(used: readonly Resource[]): string {
  const configured = definitionsOf(used);
  return Object.keys(configured).length === 0 ? '' : canonicalJson(configured)!;
}

/** The definitions in such a text. */
export function readDefinitions(stored: string): Definitions {
  return stored === '' ? {} : (JSON.parse(stored) as Definitions);
}

/** The resources that a run with these stored definitions can have ids of, whatever this process knows. */
export function resourcesIn(stored: string): Resource[] {
  return [...new Set([...builtInNames, ...Object.keys(readDefinitions(stored))])];
}

/** How definitions, by default those of this process, differ from the stored ones, in words; empty if they are the same. `here`: whose they are. */
export function describeOtherDefinitions(stored: Definitions, known = definitions, here = 'here'): string[] {
  return Object.entries(stored).flatMap(([name, theirs]) => {
    const ours = Object.hasOwn(known, name) ? known[name] : undefined;
    if (ours === undefined) return [`the resource ${name} is not defined ${here}`];
    const fields = [...new Set(Object.keys({ ...theirs, ...ours }))] as (keyof Definition)[];
    return fields
      .map((field) => [field, fieldText(field, ours), fieldText(field, theirs)])
      .filter(([, our, their]) => our !== their)
      .map(([field, our, their]) => `"${field}" of the resource ${name} is ${our} ${here} instead of ${their}`);
  });
}

/** Text that is equal for fields that delete in the same way: a repeat that is harmless changes no request of a run. */
function fieldText(field: keyof Definition, definition: Definition): string {
  const value = field === 'repeat' && !isNeverRepeated(definition) ? undefined : definition[field];
  return canonicalJson(value) ?? 'nothing'; // also for a field of another version
}

/** Whether its DELETE is never sent again once it may have been executed. */
export function isNeverRepeated({ repeat }: Pick<Definition, 'repeat'>): boolean {
  return repeat === 'never';
}

/** Whether a second DELETE of an object that the API confirmed is known to do nothing more. */
export function isHarmlessAgain(resource: Resource): boolean {
  const { repeat } = definitionOf(resource);
  return repeat === 'harmless' || (repeat === undefined && isBuiltIn(resource));
}

/** The resources among these whose DELETE is never repeated, in a sentence for plans and runs; none if there are no such ones. */
export function describeNeverRepeated(used: Definitions): string[] {
  const named = Object.keys(used).filter((name) => isNeverRepeated(used[name]!));
  if (named.length === 0) return [];
  return [`no DELETE of ${named.join(', ')} is repeated once it may have been executed: such an id is unknown`];
}

/**
 * How far a `deleted` of these resources can be trusted, in sentences; none for resources whose 204 says deleted. `onStatus`: the rules of the run,
 * which change no success.
 */
export function describeSuccess(used: Definitions, onStatus = ''): string[] {
  const ruled = parseOnStatus(onStatus).map(({ status }) => status);
  return Object.entries(used).flatMap(([name, { success }]) => {
    if (success.every((status) => status === successStatus)) return [];
    const [what, more] = meaningOfSuccess(success);
    const whatever = success.some((status) => ruled.includes(status)) ? ', whatever --on-status says' : '';
    return [`${success.join(' or ')} says ${what} for ${name}, as the configuration file defines${whatever}${more}`];
  });
}

/** The meaning of these statuses in one word, and what a reader also has to know. */
function meaningOfSuccess(success: Definition['success']): [what: string, more: string] {
  if (!success.includes(acceptedStatus)) return ['deleted', ''];
  if (success.length === 1) return ['accepted', ': a deleted object may still exist'];
  return ['deleted', `; ${acceptedStatus} means accepted, so the object may still exist`];
}

/** A definition for people: `DELETE https://api.example.com/v1/dashboards/{id}; 200 says deleted; 404 or 410 says absent`. */
export function describeDefinition(
  { path, success, absent, auth, headers, repeat }: Definition,
  baseUrl: string,
): string {
  const says = (statuses: readonly number[], what: string) =>
    statuses.length === 0 ? `nothing says ${what}` : `${statuses.join(' or ')} says ${what}`;
  const isUsual = canonicalJson(auth) === canonicalJson(bearerForm.auth);
  const token = isUsual ? [] : [`the token goes in ${auth.header}${auth.scheme && ` after ${auth.scheme}`}`];
  const fixed = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
  const again = { never: ['never sent again once it may have been executed'], harmless: ['a second one is harmless'] };
  const parts = [says(success, meaningOfSuccess(success)[0]), says(absent, 'absent'), ...token, ...fixed];
  if (repeat !== undefined) parts.push(...again[repeat]);
  return [`DELETE ${baseUrl.replace(/\/$/, '')}${path}`, ...parts].join('; ');
}

/** The parts of the path of each object before and after its id. Throws an Error for a resource that this process does not know. */
export function pathParts(resource: Resource): [before: string, after: string] {
  return definitionOf(resource).path.split('{id}') as [string, string];
}

/** A resource for code that can use any of them. */
export const anyResource: Resource = builtInNames[0]!;

/** One value for each resource. */
export function perResource<T>(make: (resource: Resource) => T): Record<Resource, T> {
  return Object.fromEntries(resources.map((resource) => [resource, make(resource)]));
}

/** The number of ids of each resource. Configured resources without ids are left out. */
export type IdCounts = Readonly<Record<Resource, number>>;

/** The counts of a list whose ids are of these resources. */
export function countIds(found: ReadonlyMap<Resource, number>): IdCounts {
  const counted = [...builtInNames, ...[...found.keys()].filter((resource) => !isBuiltIn(resource)).sort()];
  return Object.fromEntries(counted.map((resource) => [resource, found.get(resource) ?? 0]));
}

/** The resources of which a list has ids. */
export function usedResources(ids: IdCounts): Resource[] {
  return Object.keys(ids).filter((resource) => ids[resource]! > 0);
}

/** The number of ids in a list, over all resources. */
export function sumIds(ids: IdCounts): number {
  return Object.values(ids).reduce((sum, count) => sum + count, 0);
}

/** Whether a text names a resource, however it is written: `View`, `alert rule`, `alertRules`. */
export function isNameOf(text: string, resource: Resource): boolean {
  return lettersIn(resource).includes(lettersOf(text));
}

const lettersByName = new Map<Resource, readonly string[]>(); // lists ask for them once per row

function lettersIn(name: Resource): readonly string[] {
  const known = lettersByName.get(name) ?? [lettersOf(name), lettersOf(toSingular(name))];
  lettersByName.set(name, known);
  return known;
}

/** The text without what lists and columns write in different ways. */
function lettersOf(text: string): string {
  return text
    .trim()
    .toLowerCase()
    .replace(/[ _.-]/g, '');
}

/** The names of all resources for an expression, each also in the singular, with any separator between the words of a name. */
export function namePatterns(): string[] {
  return resources.flatMap((name) => [toSingular(name), name]).map((word) => word.replace(/[_-]/g, '[ _.-]?'));
}

/** The resources in words: `annotations or views`. */
export function resourcesText(conjunction: 'and' | 'or'): string {
  return `${resources.slice(0, -1).join(', ')} ${conjunction} ${resources.at(-1)}`;
}
