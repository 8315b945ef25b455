import { outcomes } from '../model/outcome.ts';
import {
  bearerForm,
  builtInResources,
  type Definition,
  type Definitions,
  isBuiltIn,
  isResourceName,
  type Resource,
  resourceNameRule,
  toSingular,
} from '../model/resource.ts';
import { acceptedStatus, findStatusFacts, successStatus } from '../model/status.ts';
import { suggest } from '../model/suggest.ts';

/** A mistake in the `resources` of a configuration file. `keys`: the names that lead to it. */
export class WrongResource extends Error {
  readonly keys: readonly string[];

  constructor(keys: readonly string[], message: string) {
    super(message);
    this.keys = keys;
  }
}

/** The `resources` of a configuration file. Throws WrongResource. `base`: the base URL for messages, without a slash at its end. */
export function readResources(value: unknown, base = 'https://api.example.com'): Definitions {
  if (!isObject(value)) throw new WrongResource([], 'expected an object with a definition for each name');
  const entries = Object.entries(value);
  const defined = entries.map(([name, definition]) => [name, readNamed(name, definition, base)] as const);
  refuseSamePaths(defined);
  return Object.fromEntries(defined);
}

const fields = ['path', 'success', 'absent', 'auth', 'headers'] as const;

function readNamed(name: Resource, value: unknown, base: string): Definition {
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
  };
}

/** Words with another meaning in plans, keys and reports. */
const reserved: readonly string[] = [...outcomes, 'all', 'rows', 'first', 'last', 'sha256', 'type', 'v'];

function checkName(name: string): void {
  if (isBuiltIn(name)) throw new WrongResource([name], 'this resource is built in and cannot be defined otherwise');
  if (!isResourceName(name)) throw new WrongResource([name], `expected a name of ${resourceNameRule}`);
  const meant = Object.keys(builtInResources).find((known) => toSingular(known) === name);
  if (meant !== undefined) throw new WrongResource([name], `the name is too close to ${meant}, which is built in`);
  if (reserved.includes(name)) throw new WrongResource([name], 'this word has another meaning; choose another name');
}

/** Only DELETE is ever sent, so `method` can say nothing else. */
function checkMethod(name: string, { method = 'DELETE' }: Record<string, unknown>): void {
  if (method !== 'DELETE')
    throw new WrongResource([name, 'method'], 'only DELETE is sent, with one id in its path; leave "method" out');
}

const segment = /^[A-Za-z0-9._~!$&'()*+,;=:@-]+$/;

/** Reads an absolute path with `{id}` as exactly one whole segment. */
function readPath(name: string, value: unknown, base: string): string {
  const keys = [name, 'path'];
  const example = `for example "/v1/${name}/{id}", which deletes ${base}/v1/${name}/ID`;
  if (typeof value !== 'string') throw new WrongResource(keys, `expected a path, ${example}`);
  const problem = problemOf(value);
  if (problem === null) return value;
  const first = `${base}${value.replaceAll('{id}', 'ID')}`;
  const sent = value.startsWith('/') ? `; the first request would be DELETE ${first}` : '';
  throw new WrongResource(keys, `${problem}${sent}; expected an absolute path, ${example}`);
}

function problemOf(path: string): string | null {
  if (/^[A-Z]+ /.test(path)) return `"${path}" begins with a method, and only DELETE is sent`;
  if (/^[a-z][a-z0-9+.-]*:/i.test(path)) return `"${path}" is a URL: the base URL is a setting of its own`;
  if (!path.startsWith('/')) return `"${path}" does not begin with a slash`;
  if (/[?#]/.test(path)) return `"${path}" has a query or a fragment`;
  const segments = path.slice(1).replace(/\/$/, '').split('/');
  if (segments.some((part) => part !== '{id}' && part.includes('{id}'))) return `"${path}" has {id} inside a segment`;
  const ids = segments.filter((part) => part === '{id}').length;
  if (ids !== 1) return ids === 0 ? `"${path}" has no {id}` : `"${path}" has {id} ${ids} times`;
  if (segments.some((part) => part === '' || part === '.' || part === '..'))
    return `"${path}" has an empty segment, "." or ".."`;
  const wrong = segments.find((part) => part !== '{id}' && !segment.test(part));
  return wrong === undefined ? null : `the segment "${wrong}" of "${path}" holds a character that URLs encode`;
}

/** Which statuses can say deleted: 200 and 202 besides 204. */
function mayBeSuccess(status: number): string | null {
  return [200, acceptedStatus, successStatus].includes(status)
    ? null
    : 'only 200, 202 (accepted) and 204 can say that an object is deleted';
}

function mayBeAbsent(status: number): string | null {
  const { actions, why } = findStatusFacts(status);
  return actions.includes('absent') && status >= 400 ? null : `${status} cannot mean absent${why && `: ${why}`}`;
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

const headerName = /^[!#$%&'*+.^`|~\w-]+$/;
const headerValue = /^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/;

/** Headers that a request has anyway, or that change how it is sent. */
const ownHeaders = [
  ...['host', 'connection', 'keep-alive', 'proxy-connection', 'transfer-encoding', 'content-length', 'te', 'trailer'],
  ...['upgrade', 'expect', 'via', 'x-http-method', 'x-http-method-override', 'x-method-override'],
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

const secretName = /auth|cookie|token|secret|password|passwd|credential|signature|key/;

/** Reads the fixed headers. They cannot be secrets, because everyone who sees a plan or a run sees its definitions. */
function readHeaders(name: string, value: unknown, authHeader: string): Definition['headers'] {
  if (value === undefined) return {};
  if (!isObject(value))
    throw new WrongResource([name, 'headers'], 'expected an object like {"accept": "application/json"}');
  const read = Object.entries(value).map(([text, content]) => {
    const keys = [name, 'headers', text];
    const header = readHeaderName(keys, text);
    if (header === authHeader) throw new WrongResource(keys, 'the token goes there; see "auth"');
    if (secretName.test(header))
      throw new WrongResource(
        keys,
        'this header usually holds a secret, which everyone who sees a run would see; for the token see "auth"',
      );
    if (typeof content !== 'string' || !headerValue.test(content))
      throw new WrongResource(keys, 'expected text of ASCII characters that does not begin or end with a space');
    return [header, content] as const;
  });
  const twice = read.find(([header], i) => read.findIndex(([other]) => other === header) !== i);
  if (twice !== undefined) throw new WrongResource([name, 'headers'], `the header ${twice[0]} is given twice`);
  return Object.fromEntries(read.sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** Throws if two resources have the same path: the same object could be deleted under two names, by two rules. */
function refuseSamePaths(defined: readonly (readonly [Resource, Definition])[]): void {
  const all = [...Object.entries(builtInResources), ...defined];
  for (const [name, { path }] of defined) {
    const [other] = all.find(([known, { path: same }]) => known !== name && shapeOf(same) === shapeOf(path)) ?? [];
    if (other !== undefined) throw new WrongResource([name, 'path'], `"${path}" is the path of ${other}`);
  }
}

/** The same for paths that many servers take for one: the case of letters and a slash at the end do not count. */
function shapeOf(path: string): string {
  return path.toLowerCase().replace(/\/$/, '');
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
