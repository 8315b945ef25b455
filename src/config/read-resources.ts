import { outcomes } from '../model/outcome.ts';
import {
  bearerForm,
  builtInResources,
  type Definition,
  type Definitions,
  isBuiltIn,
  isResourceName,
  type Repeat,
  type Resource,
  repeats,
  resourceNameRule,
} from '../model/resource.ts';
import { toSingular } from '../model/singular.ts';
import { acceptedStatus, findStatusFacts, successStatus } from '../model/status.ts';
import { suggest } from '../model/suggest.ts';
import { isObject } from './list-source.ts';

/** A mistake in the `resources` of a configuration file. `keys`: the names that lead to it. */
export class WrongResource extends Error {
  readonly keys: readonly string[];

  constructor(keys: readonly string[], message: string) {
    super(message);
    this.keys = keys;
  }
}

const maxResources = 100; // far below 255, the limit of a list; see input/resource-numbers.ts

/** The `resources` of a configuration file. Throws WrongResource. `base`: the base URL for messages, without a slash at its end. */
export function readResources(value: unknown, base = 'https://api.example.com'): Definitions {
  if (!isObject(value)) throw new WrongResource([], 'expected an object with a definition for each name');
  const entries = Object.entries(value);
  if (entries.length > maxResources) throw new WrongResource([], `expected at most ${maxResources} resources`);
  const defined = entries.map(([name, definition]) => [name, readNamed(name, definition, base)] as const);
  refuseLikeNames(defined.map(([name]) => name));
  refuseSamePaths(defined);
  return Object.fromEntries(defined);
}

const fields = ['path', 'success', 'absent', 'auth', 'headers', 'repeat'] as const;

function readNamed(name: Resource, value: unknown, base: string): Definition {
  if (isBuiltIn(name)) return readBuiltIn(name, value);
  checkName(name);
  if (!isObject(value)) throw new WrongResource([name], 'expected an object like {"path": "/v1/dashboards/{id}"}');
  checkMethod(name, value);
  const wrong = Object.keys(value).find(
    (field) => !(fields as readonly string[]).includes(field) && field !== 'method',
  );
  if (wrong !== undefined)
    throw new WrongResource([name, wrong], `"${wrong}" is not a part of a resource.${suggest(wrong, fields)}`);
  const auth = readAuth(name, value.auth);
  return {
    path: readPath(name, value.path, base),
    success: readStatuses([name, 'success'], value.success, [successStatus], mayBeSuccess),
    absent: readStatuses([name, 'absent'], value.absent, [404, 410], mayBeAbsent),
    auth,
    headers: readHeaders(name, value.headers, auth.header),
    ...readRepeat(name, value.repeat),
  };
}

/** Of a built-in resource, only `repeat` can be said. */
function readBuiltIn(name: Resource, value: unknown): Definition {
  if (isObject(value) && Object.keys(value).join() === 'repeat')
    return { ...builtInResources[name]!, ...readRepeat(name, value.repeat) };
  throw new WrongResource([name], 'this resource is built in: only {"repeat": "never"} can be said of it');
}

function readRepeat(name: Resource, value: unknown): { repeat?: Repeat } {
  if (value === undefined) return {};
  const repeat = repeats.find((word) => word === value);
  if (repeat !== undefined) return { repeat };
  throw new WrongResource([name, 'repeat'], `expected ${repeats.map((word) => `"${word}"`).join(' or ')}`);
}

/** Words with another meaning in texts, lists, keys and reports. */
const otherWords = ['all', 'constructor', 'id', 'ids', 's', 'resource', 'resources'];

/** Fields of records and of plans that have a field for each resource as well. */
const recordFields = [
  ...['v', 'type', 'rows', 'sha256', 'first', 'last'],
  ...['dry_run', 'base_url', 'protected_read', 'first_url', 'last_id', 'ends_without_newline', 'looks'],
  ...['redis_round_trip_ms', 'expected'],
  ...['url', 'token', 'token_file', 'token_url', 'client_id', 'client_secret', 'journal'],
];

/** The names that no resource of a configuration file can have, besides those of the built-in ones. */
export const takenNames: readonly Resource[] = [
  ...Object.keys(builtInResources).map(toSingular),
  ...outcomes,
  ...otherWords,
  ...recordFields,
];

function checkName(name: string): void {
  if (!isResourceName(name)) throw new WrongResource([name], `expected a name of ${resourceNameRule}`);
  const meant = Object.keys(builtInResources).find((known) => toSingular(known) === name);
  if (meant !== undefined) throw new WrongResource([name], `the name is too close to ${meant}, which is built in`);
  if (takenNames.includes(name)) throw new WrongResource([name], 'this word has another meaning; choose another name');
}

/** Throws if a name is the word for one object of another resource: in a list, `dashboard` would mean either. */
function refuseLikeNames(names: readonly Resource[]): void {
  const like = (name: Resource) => names.find((other) => other !== name && toSingular(other) === name);
  const name = names.find((each) => like(each) !== undefined);
  if (name !== undefined)
    throw new WrongResource([name], `the name is too close to ${like(name)}: lists use it for one of ${like(name)}`);
}

/** Only DELETE is ever sent, so `method` can say nothing else. */
function checkMethod(name: string, { method = 'DELETE' }: Record<string, unknown>): void {
  if (method !== 'DELETE')
    throw new WrongResource([name, 'method'], 'only DELETE is sent, with one id in its path; leave "method" out');
}

export const maxPathLength = 500;

/** A segment that every server takes as it is. Some drop what follows a semicolon, so that `..;` is the folder above. */
export const segment = /^[A-Za-z0-9._~!$&'()*+,=:@-]+$/;

/** Reads an absolute path with `{id}` as exactly one whole segment. */
function readPath(name: string, value: unknown, base: string): string {
  const keys = [name, 'path'];
  const example = `for example "/v1/${name}/{id}", which deletes ${base}/v1/${name}/ID`;
  if (typeof value !== 'string') throw new WrongResource(keys, `expected a path, ${example}`);
  const problem = problemOf(value, value.length > 200 ? `${value.slice(0, 200)}…` : value);
  if (problem === null) return value;
  const first = `${base}${value.replaceAll('{id}', 'ID')}`;
  const sent = value.startsWith('/') ? `; the first request would be DELETE ${first.slice(0, 600)}` : '';
  throw new WrongResource(keys, `${problem}${sent}; expected an absolute path, ${example}`);
}

/** `shown`: the path for messages. */
function problemOf(path: string, shown: string): string | null {
  if (/^[A-Z]+ /.test(path)) return `"${shown}" begins with a method, and only DELETE is sent`;
  if (/^[a-z][a-z0-9+.-]*:/i.test(path)) return `"${shown}" is a URL: the base URL is a setting of its own`;
  if (!path.startsWith('/')) return `"${shown}" does not begin with a slash`;
  if (path.length > maxPathLength) return `"${shown}" has more than ${maxPathLength} characters`;
  if (/[?#]/.test(path)) return `"${shown}" has a query or a fragment`;
  const segments = path.slice(1).replace(/\/$/, '').split('/');
  if (segments.some((part) => part !== '{id}' && part.includes('{id}'))) return `"${shown}" has {id} inside a segment`;
  const ids = segments.filter((part) => part === '{id}').length;
  if (ids !== 1) return ids === 0 ? `"${shown}" has no {id}` : `"${shown}" has {id} ${ids} times`;
  if (segments.some((part) => part === '' || part === '.' || part === '..'))
    return `"${shown}" has an empty segment, "." or ".."`;
  const wrong = segments.find((part) => part !== '{id}' && !segment.test(part));
  return wrong === undefined
    ? null
    : `the segment "${wrong}" of "${shown}" has a character other than ${plainCharacters}`;
}

const plainCharacters = "letters, digits and . _ ~ ! $ & ' ( ) * + , = : @ -";

/** The statuses that can say deleted. */
export const successStatuses: readonly number[] = [200, acceptedStatus, successStatus];

function mayBeSuccess(status: number): string | null {
  const statuses = new Intl.ListFormat('en-GB').format(successStatuses.map(String));
  return successStatuses.includes(status) ? null : `only ${statuses} can say that an object is deleted`;
}

/** Why a status cannot mean absent, or null. */
export function mayBeAbsent(status: number): string | null {
  const { actions, why } = findStatusFacts(status);
  if (status < 400 || status > 499) return `${status} cannot mean absent${why && `: ${why}`}`;
  return actions.includes('absent') ? null : `${status} cannot mean absent: ${why}`;
}

function readStatuses(
  keys: readonly string[],
  value: unknown,
  usual: readonly number[],
  refusal: (status: number) => string | null,
): readonly number[] {
  if (value === undefined) return usual;
  const isList = Array.isArray(value) && value.every((status) => Number.isInteger(status));
  if (!isList || (value.length === 0 && keys.includes('success')))
    throw new WrongResource(keys, `expected a list of statuses like [${usual.join(', ')}]`);
  const problem = (value as number[]).map(refusal).find((words) => words !== null);
  if (problem !== undefined) throw new WrongResource(keys, problem!);
  return [...new Set(value as number[])].sort((a, b) => a - b);
}

export const headerName = /^[!#$%&'*+.^`|~\w-]+$/;
export const headerValue = /^[\x21-\x7e](?:[\x20-\x7e]{0,998}[\x21-\x7e])?$/;

/** Headers that a request has anyway, or that change how it is sent. */
const ownHeaders = [
  ...['host', 'connection', 'keep-alive', 'proxy-connection', 'transfer-encoding', 'content-length', 'te', 'trailer'],
  ...['upgrade', 'expect', 'via', 'x-http-method', 'x-http-method-override', 'x-method-override'],
  ...['accept-encoding', 'x-original-url', 'x-rewrite-url'], // some servers take the path from the last two
];

function readAuth(name: string, value: unknown): Definition['auth'] {
  if (value === undefined) return bearerForm.auth;
  const keys = [name, 'auth'];
  const form =
    'expected {"header": "authorization", "scheme": "Bearer"}, or {"header": "x-api-key"} for the token alone';
  if (!isObject(value) || typeof value.header !== 'string') throw new WrongResource(keys, form);
  const wrong = Object.keys(value).find((field) => field !== 'header' && field !== 'scheme');
  if (wrong !== undefined) throw new WrongResource([...keys, wrong], form);
  const header = readHeaderName([...keys, 'header'], value.header);
  const { scheme = header === bearerForm.auth.header ? bearerForm.auth.scheme : '' } = value;
  if (typeof scheme !== 'string' || (scheme !== '' && !headerName.test(scheme)))
    throw new WrongResource([...keys, 'scheme'], 'expected one word like Bearer, or "" for the token alone');
  return { header, scheme };
}

function readHeaderName(keys: readonly string[], text: string): string {
  const header = text.toLowerCase();
  if (!headerName.test(text)) throw new WrongResource(keys, 'expected the name of a header');
  if (ownHeaders.includes(header)) throw new WrongResource(keys, `the header ${header} is set by expunge itself`);
  return header;
}

const secretName = /auth|cookie|token|secret|password|passwd|passphrase|pwd|credential|signature|session|jwt|key/;
const secretValue = /^(?:bearer|basic|digest|token|apikey)\s/i;
const maxHeaders = 20;

/** Reads the fixed headers. They cannot be secrets, because everyone who sees a plan or a run sees its definitions. */
function readHeaders(name: string, value: unknown, authHeader: string): Definition['headers'] {
  if (value === undefined) return {};
  if (!isObject(value))
    throw new WrongResource([name, 'headers'], 'expected an object like {"accept": "application/json"}');
  const given = Object.entries(value);
  if (given.length > maxHeaders)
    throw new WrongResource([name, 'headers'], `expected at most ${maxHeaders} headers, got ${given.length}`);
  const read = given.map(([text, content]) => readHeader([name, 'headers', text], text, content, authHeader));
  const twice = read.find(([header], i) => read.findIndex(([other]) => other === header) !== i);
  if (twice !== undefined) throw new WrongResource([name, 'headers'], `the header ${twice[0]} is given twice`);
  return Object.fromEntries(read.sort(([a], [b]) => (a < b ? -1 : 1)));
}

function readHeader(keys: readonly string[], text: string, content: unknown, authHeader: string): [string, string] {
  const header = readHeaderName(keys, text);
  if (header === authHeader) throw new WrongResource(keys, 'the token goes there; see "auth"');
  if (secretName.test(header)) throw new WrongResource(keys, `this header usually ${holdsSecret}`);
  if (typeof content !== 'string' || !headerValue.test(content))
    throw new WrongResource(
      keys,
      'expected 1 to 1,000 ASCII characters without line breaks that do not begin or end with a space',
    );
  if (secretValue.test(content)) throw new WrongResource(keys, `this value looks as if it ${holdsSecret}`);
  return [header, content];
}

const holdsSecret = 'holds a secret, which everyone who sees a run would see; for the token see "auth"';

/** Throws if two resources have the same path: the same object could be deleted under two names, by two rules. */
function refuseSamePaths(defined: readonly (readonly [Resource, Definition])[]): void {
  const own = defined.filter(([name]) => !isBuiltIn(name));
  const all = [...Object.entries(builtInResources), ...own];
  for (const [name, { path }] of own) {
    const [other] = all.find(([known, { path: theirs }]) => known !== name && canMeet(path, theirs)) ?? [];
    if (other === undefined) continue;
    throw new WrongResource([name, 'path'], `"${path}" is the path of ${other}, or can lead to the same objects`);
  }
}

/** Whether ids of both paths can give the same URL. Many servers ignore the case of letters and a slash at the end. */
function canMeet(path: string, other: string): boolean {
  const [ours, theirs] = [segmentsOf(path), segmentsOf(other)];
  return (
    ours.length === theirs.length && ours.every((part, i) => [part, theirs[i]].includes('{id}') || part === theirs[i])
  );
}

function segmentsOf(path: string): string[] {
  return path.toLowerCase().replace(/\/$/, '').split('/');
}
