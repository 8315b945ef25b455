import { describe, expect, it } from 'vitest';
import { readResources, WrongResource } from '../../../src/config/read-resources.ts';
import { outcomes } from '../../../src/model/outcome.ts';
import { accepts } from '../../support/json-schema.ts';
import { settingsSchema } from '../../support/settings-schema.ts';

const base = 'https://api.example.com';

/** Parsed from text, as the file is, so that `__proto__` is an ordinary name. */
function wrongIn(json: string): WrongResource {
  try {
    readResources(JSON.parse(json), base);
  } catch (error) {
    if (error instanceof WrongResource) return error;
    throw error;
  }
  throw new Error(`${json} was read`);
}

/** Whether an editor that knows the schema accepts the resources in this text. */
function isAcceptedByEditors(json: string): boolean {
  const { resources } = settingsSchema().properties as { resources: Record<string, unknown> };
  return accepts(resources, JSON.parse(json));
}

const defined = (definition: unknown, name = 'dashboards') => JSON.stringify({ [name]: definition });
const wrongField = (field: string, value: unknown) => wrongIn(defined({ path: '/v1/dashboards/{id}', [field]: value }));
const read = (definition: unknown) => readResources({ dashboards: definition }, base).dashboards!;

describe('the path of a resource', () => {
  const refused: [why: string, path: unknown, message: RegExp][] = [
    ['the folder above', '/v1/../dashboards/{id}', /an empty segment, "\." or "\.\."/],
    ['the folder itself', '/v1/./{id}', /an empty segment, "\." or "\.\."/],
    ['an encoded folder above', '/v1/%2e%2e/dashboards/{id}', /the segment "%2e%2e" of .* a character other than/],
    ['a half encoded one', '/v1/.%2E/{id}', /the segment "\.%2E"/],
    ['a folder above for servers that drop parameters', '/v1/..;/dashboards/{id}', /the segment "\.\.;"/],
    ['parameters of a segment', '/v1/dashboards;v=1/{id}', /the segment "dashboards;v=1"/],
    ['two ids', '/v1/{id}/charts/{id}', /has \{id\} 2 times/],
    ['no id', '/v1/dashboards', /has no \{id\}/],
    ['an id of another name', '/v1/dashboards/:id', /has no \{id\}/],
    ['large letters', '/v1/dashboards/{ID}', /has no \{id\}/],
    ['spaces in the braces', '/v1/dashboards/{ id }', /has no \{id\}/],
    ['a query', '/v1/dashboards/{id}?force=true', /has a query or a fragment/],
    ['an id in a query', '/v1/dashboards?id={id}', /has a query or a fragment/],
    ['a fragment', '/v1/dashboards/{id}#now', /has a query or a fragment/],
    ['an id inside a segment', '/v1/dashboard-{id}', /has \{id\} inside a segment/],
    ['an id before a suffix', '/v1/dashboards/{id}.json', /has \{id\} inside a segment/],
    ['an encoded id', '/v1/dashboards/%7Bid%7D', /has no \{id\}/],
    ['another method', 'POST /v1/dashboards/{id}', /begins with a method, and only DELETE is sent/],
    ['the method that is sent anyway', 'DELETE /v1/dashboards/{id}', /begins with a method/],
    ['a URL', 'https://evil.example/v1/dashboards/{id}', /is a URL: the base URL is a setting of its own/],
    ['another host', '//evil.example/{id}', /an empty segment/],
    ['no slash at its beginning', 'v1/dashboards/{id}', /does not begin with a slash/],
    ['an empty segment', '/v1//dashboards/{id}', /an empty segment/],
    ['two slashes at its end', '/v1/dashboards/{id}//', /an empty segment/],
    ['a backslash', '/v1\\dashboards/{id}', /the segment "v1\\dashboards"/],
    ['letters beyond ASCII', '/v1/übersicht/{id}', /the segment "übersicht"/],
    ['a zero-width space', '/v1/dash\u200bboards/{id}', /a character other than/],
    ['a line break', '/v1/dashboards/{id}\r\nx-evil: 1', /inside a segment/],
    ['a control character', '/v1/dash\tboards/{id}', /a character other than/],
    ['a space', '/v1/my dashboards/{id}', /a character other than/],
    ['other braces', '/v1/{org}/dashboards/{id}', /the segment "\{org\}"/],
    ['501 characters', `/v1/${'d'.repeat(493)}/{id}`, /has more than 500 characters/],
    ['nothing', '', /does not begin with a slash/],
    ['a number', 7, /expected a path/],
    ['no path', undefined, /expected a path/],
    ['a list', ['/v1/{id}'], /expected a path/],
  ];

  it.each(refused)('cannot hold %s', (_, path, message) => {
    const { keys, message: said } = wrongIn(defined({ path }));
    expect(keys).toEqual(['dashboards', 'path']);
    expect(said).toMatch(message);
    expect(said).toContain(`for example "/v1/dashboards/{id}", which deletes ${base}/v1/dashboards/ID`);
    expect(isAcceptedByEditors(defined({ path }))).toBe(false);
  });

  it('is shown as the first URL that it would send', () => {
    expect(wrongIn(defined({ path: '/v1/x-{id}' })).message).toContain(`would be DELETE ${base}/v1/x-ID;`);
  });

  it('is cut in messages', () => {
    expect(wrongIn(defined({ path: `/${'d'.repeat(100_000)}` })).message.length).toBeLessThan(1_500);
  });

  it.each([
    '/{id}',
    '/v1/dashboards/{id}',
    '/v1/dashboards/{id}/',
    '/v1/orgs/acme/dashboards/{id}/archive',
    "/v1/a._~!$&'()*+,=:@-9/{id}",
    '/v1/.../{id}',
    `/v1/${'d'.repeat(490)}/{id}`,
  ])('can be %s', (path) => {
    expect(read({ path }).path).toBe(path);
    expect(isAcceptedByEditors(defined({ path }))).toBe(true);
  });

  const overlapping: [one: string, other: string][] = [
    ['/v2/annotations/{id}', 'annotations'],
    ['/V2/Annotations/{id}', 'annotations'],
    ['/v2/views/{id}/', 'views'],
    ['/v2/{id}/latest', 'annotations'], // of an object with the id `annotations`
    ['/{id}/views/all', 'views'],
  ];
  it.each(overlapping)('cannot be %s, which is the path of %s', (path, other) => {
    expect(wrongIn(defined({ path })).message).toContain(`is the path of ${other}`);
  });

  it('cannot be the path of another resource of the file', () => {
    const twice = { charts: { path: '/v1/charts/{id}' }, graphs: { path: '/v1/Charts/{id}' } };
    expect(wrongIn(JSON.stringify(twice))).toMatchObject({ keys: ['charts', 'path'] });
  });

  it.each(['/v1/{id}', '/v2/{id}', '/v2/annotations/{id}/comments'])(
    'can be %s: its objects are not those of a longer or shorter path',
    (path) => {
      expect(Object.keys(readResources({ charts: { path: '/v1/charts/{id}' }, others: { path } }))).toHaveLength(2);
    },
  );
});

describe('the name of a resource', () => {
  const path = '/v1/things/{id}';
  const wrongName = (name: string) => wrongIn(`{${JSON.stringify(name)}: {"path": "${path}"}}`);

  it.each(['annotations', 'views'])('cannot be %s, which is built in', (name) => {
    expect(wrongName(name)).toMatchObject({ keys: [name], message: expect.stringContaining('built in') });
  });

  it.each(['annotation', 'view'])('cannot be %s, the word for one object of a built-in resource', (name) => {
    expect(wrongName(name).message).toContain(`too close to ${name}s`);
  });

  it.each(['Dashboards', 'ANNOTATIONS', '__proto__', '1st', '', 'a b', 'a.b', 'a:b', 'a,b', '-a', 'ä', 'a'.repeat(41)])(
    'cannot be %j',
    (name) => {
      expect(wrongName(name)).toMatchObject({ keys: [name], message: expect.stringContaining('expected a name of') });
      expect(isAcceptedByEditors(`{${JSON.stringify(name)}: {"path": "${path}"}}`)).toBe(false);
    },
  );

  it.each([...outcomes, 'constructor', 'all', 'id', 'ids', 's', 'token', 'url', 'rows', 'expected', 'first_url'])(
    'cannot be %s, which means something else',
    (name) => {
      expect(wrongName(name).message).toBe('this word has another meaning; choose another name');
      expect(isAcceptedByEditors(defined({ path }, name))).toBe(false);
    },
  );

  it('cannot be the word for one object of another resource, whichever comes first', () => {
    const [one, other] = ['"chart": {"path": "/v1/chart/{id}"}', '"charts": {"path": "/v1/charts/{id}"}'];
    for (const json of [`{${one}, ${other}}`, `{${other}, ${one}}`])
      expect(wrongIn(json)).toMatchObject({
        keys: ['chart'],
        message: 'the name is too close to charts: lists use it for one of charts',
      });
  });

  it.each(['run', 'runs', 'target', 'counts', 'a', 'x_y-z9', 'b'.repeat(40)])('can be %s', (name) => {
    expect(Object.keys(readResources(JSON.parse(`{"${name}": {"path": "${path}"}}`)))).toEqual([name]);
  });

  it('is one of at most 100', () => {
    const many = (n: number) =>
      Object.fromEntries(Array.from({ length: n }, (_, i) => [`r${i}x`, { path: `/r${i}/{id}` }]));
    expect(Object.keys(readResources(many(100)))).toHaveLength(100);
    expect(wrongIn(JSON.stringify(many(101)))).toMatchObject({ keys: [], message: 'expected at most 100 resources' });
  });
});

describe('the statuses of a resource', () => {
  const path = '/v1/dashboards/{id}';

  it('are 204, and 404 or 410, unless it says otherwise', () => {
    expect(read({ path })).toMatchObject({ success: [204], absent: [404, 410] });
    expect(read({ path, success: [202, 200, 202], absent: [] })).toMatchObject({ success: [200, 202], absent: [] });
    expect(read({ path, absent: [410, 409] })).toMatchObject({ absent: [409, 410] });
  });

  it.each<[field: string, value: unknown, message: RegExp]>([
    ['success', [], /expected a list of statuses like \[204\]/],
    ['success', null, /expected a list/],
    ['success', 200, /expected a list/],
    ['success', ['200'], /expected a list/],
    ['success', [200.5], /expected a list/],
    ['success', { 0: 200 }, /expected a list/],
    ['success', [404], /only 200, 202 and 204/],
    ['success', [201], /only 200/],
    ['success', [200, 301], /only 200/],
    ['absent', [202], /202 cannot mean absent/],
    ['absent', [204], /204 cannot mean absent/],
    ['absent', [302], /302 cannot mean absent/],
    ['absent', [401], /401 cannot mean absent: it speaks about the token/],
    ['absent', [408], /408 cannot mean absent/],
    ['absent', [429], /429 cannot mean absent: no id is lost to a rate limit/],
    ['absent', [500], /500 cannot mean absent/],
    ['absent', [1000], /1000 cannot mean absent/],
    ['absent', [9_007_199_254_740_991], /cannot mean absent/],
    ['absent', [-404], /cannot mean absent/],
    ['absent', ['404'], /expected a list of statuses like \[404, 410\]/],
    ['method', 'POST', /only DELETE is sent/],
    ['method', 'delete', /only DELETE is sent/],
    ['method', null, /only DELETE is sent/],
    ['methods', ['DELETE'], /"methods" is not a part of a resource/],
    ['__proto__', {}, /is not a part of a resource/],
    ['sucess', [200], /Did you mean success\?/],
  ])('and its other parts cannot be "%s": %j', (field, value, message) => {
    const json = `{"dashboards": {"path": "${path}", "${field}": ${JSON.stringify(value)}}}`;
    const wrong = wrongIn(json);
    expect(wrong.message).toMatch(message);
    expect(wrong.keys).toEqual(['dashboards', field]);
    expect(isAcceptedByEditors(json)).toBe(false);
  });
});

describe('the headers of a resource', () => {
  const path = '/v1/dashboards/{id}';

  it.each<[auth: unknown, form: unknown]>([
    [undefined, { header: 'authorization', scheme: 'Bearer' }],
    [{ header: 'Authorization' }, { header: 'authorization', scheme: 'Bearer' }],
    [
      { header: 'authorization', scheme: '' },
      { header: 'authorization', scheme: '' },
    ],
    [
      { header: 'authorization', scheme: 'Token' },
      { header: 'authorization', scheme: 'Token' },
    ],
    [{ header: 'X-API-Key' }, { header: 'x-api-key', scheme: '' }],
    [{ header: 'cookie' }, { header: 'cookie', scheme: '' }],
  ])('say where the token goes: %j', (auth, form) => {
    expect(read(auth === undefined ? { path } : { path, auth }).auth).toEqual(form);
  });

  it.each<[auth: unknown, field: string | null]>([
    [null, null],
    ['x-api-key', null],
    [{}, null],
    [{ header: 7 }, null],
    [{ header: 'host' }, 'header'],
    [{ header: 'Content-Length' }, 'header'],
    [{ header: 'X-Original-URL' }, 'header'],
    [{ header: 'x api key' }, 'header'],
    [{ header: 'x-key\r\nx-evil' }, 'header'],
    [{ header: '' }, 'header'],
    [{ header: 'x-key', scheme: 'Bearer x' }, 'scheme'],
    [{ header: 'x-key', scheme: 'a\r\nb' }, 'scheme'],
    [{ header: 'x-key', scheme: 7 }, 'scheme'],
    [{ header: 'x-key', token: 'geheim' }, 'token'],
  ])('cannot say it by %j', (auth, field) => {
    const { keys, message } = wrongField('auth', auth);
    expect(keys).toEqual(['dashboards', 'auth', ...(field === null ? [] : [field])]);
    expect(message).not.toContain('geheim');
  });

  it('are sent in one order, whatever the order in the file', () => {
    const one = read({ path, headers: { Prefer: 'return=minimal', accept: '*/*' } });
    const other = read({ path, headers: { Accept: '*/*', prefer: 'return=minimal' } });
    expect(Object.entries(one.headers)).toEqual(Object.entries(other.headers));
    expect(one.headers).toEqual({ accept: '*/*', prefer: 'return=minimal' });
  });

  it.each<[headers: Record<string, unknown>, message: RegExp]>([
    [{ host: 'evil.example' }, /the header host is set by expunge itself/],
    [{ 'Transfer-Encoding': 'chunked' }, /is set by expunge itself/],
    [{ 'X-HTTP-Method-Override': 'GET' }, /is set by expunge itself/],
    [{ 'x-rewrite-url': '/v1/other/1' }, /is set by expunge itself/],
    [{ 'accept-encoding': 'gzip' }, /is set by expunge itself/],
    [{ authorization: 'Bearer geheim' }, /the token goes there/],
    [{ cookie: 'geheim' }, /usually holds a secret/],
    [{ 'X-API-Key': 'geheim' }, /usually holds a secret/],
    [{ 'x-auth': 'geheim' }, /usually holds a secret/],
    [{ 'x-session-id': 'geheim' }, /usually holds a secret/],
    [{ 'proxy-authorization': 'geheim' }, /usually holds a secret/],
    [{ 'x-other': 'Bearer geheim' }, /looks as if it holds a secret/],
    [{ 'x-other': 'basic geheim' }, /looks as if it holds a secret/],
    [{ accept: 'a\r\nx-evil: geheim' }, /without line breaks/],
    [{ accept: 'a\0geheim' }, /ASCII/],
    [{ accept: 'gehéim' }, /ASCII/],
    [{ accept: ' geheim' }, /ASCII/],
    [{ accept: '' }, /ASCII/],
    [{ accept: 'x'.repeat(1_001) }, /1 to 1,000/],
    [{ accept: 7 }, /ASCII/],
    [{ accept: ['geheim'] }, /ASCII/],
    [{ 'x\r\ny': 'geheim' }, /expected the name of a header/],
    [{ ':path': '/geheim' }, /expected the name of a header/],
    [{ Accept: 'a', accept: 'b' }, /the header accept is given twice/],
  ])('cannot be %j, and no message shows their values', (headers, message) => {
    const wrong = wrongField('headers', headers);
    expect(wrong.message).toMatch(message);
    expect(wrong.keys.slice(0, 2)).toEqual(['dashboards', 'headers']);
    expect(wrong.message).not.toMatch(/geh[eé]im/);
    // A schema cannot know which headers are secret or set elsewhere.
    const isAboutForm = /ASCII|name of a header/.test(wrong.message);
    if (isAboutForm) expect(isAcceptedByEditors(defined({ path, headers }))).toBe(false);
  });

  it('cannot be the header of the token', () => {
    const auth = { header: 'x-tenant' };
    const wrong = wrongIn(defined({ path, auth, headers: { 'X-Tenant': 'acme' } }));
    expect(wrong).toMatchObject({
      keys: ['dashboards', 'headers', 'X-Tenant'],
      message: expect.stringContaining('the token goes there'),
    });
  });

  it('are at most 20', () => {
    const many = Object.fromEntries(Array.from({ length: 21 }, (_, i) => [`x-${i}`, 'a']));
    expect(wrongField('headers', many).message).toBe('expected at most 20 headers, got 21');
  });

  it.each([null, [], 'accept: a', 7])('cannot be %j in place of an object', (headers) => {
    expect(wrongField('headers', headers).message).toContain('expected an object');
  });
});

it.each(['null', '[]', '"dashboards"', '7', '{"dashboards": null}', '{"dashboards": "/v1/dashboards/{id}"}'])(
  '%s defines no resource',
  (json) => {
    expect(wrongIn(json).message).toContain('expected an object');
  },
);
