import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { loadConfig } from '../../src/config/read-config.ts';
import { type SettingName, settings } from '../../src/config/settings.ts';
import { schemaFile, schemaText, settingsSchema } from '../support/settings-schema.ts';

const folder = mkdtempSync(join(tmpdir(), 'expunge-schema-'));
afterAll(() => rmSync(folder, { recursive: true }));

const load = (content: Record<string, unknown>) => {
  const configFile = join(folder, 'expunge.config.json');
  writeFileSync(configFile, JSON.stringify(content));
  return loadConfig({ flags: {}, env: {}, configFile }).config;
};

type Property = { type?: string | string[]; enum?: string[]; minimum?: number; maximum?: number; default?: unknown };
const properties = settingsSchema().properties as Record<string, Property>;
const names = Object.keys(settings) as SettingName[];
const failureOf = (attempt: () => unknown): string => {
  try {
    attempt();
    return '';
  } catch (error) {
    return String(error);
  }
};
const withBounds = names.filter((name) => properties[name]!.minimum !== undefined);
const withWords = names.filter((name) => properties[name]!.enum !== undefined);

describe('the schema of the configuration file', () => {
  it('is the one in the repository: `npm run docs` writes it', () => {
    expect(readFileSync(schemaFile, 'utf8')).toBe(schemaText());
  });

  it('has every setting, the sources, the resources and $schema, and nothing else', () => {
    expect(Object.keys(properties)).toEqual(['$schema', ...names, 'sources', 'resources']);
    expect(settingsSchema().additionalProperties).toBe(false);
  });

  it('names the flag and the variable of each setting', () => {
    expect(properties.maxConcurrency).toMatchObject({
      description: expect.stringContaining('(--max-concurrency, EXPUNGE_MAX_CONCURRENCY)'),
    });
  });

  it.each(names.filter((name) => properties[name]!.default !== undefined))(
    'has the default of %s as the file would',
    (name) => {
      expect(load({ [name]: properties[name]!.default })[name]).toEqual(load({})[name]);
    },
  );

  it.each(withBounds)('has the bounds of %s that are read', (name) => {
    const { minimum = 0, maximum = 0 } = properties[name]!;
    for (const value of [minimum, maximum]) expect(load({ [name]: value })[name]).toBe(value);
    expect(() => load({ [name]: minimum - 1 })).toThrow(name);
    if (maximum < Number.MAX_SAFE_INTEGER) expect(() => load({ [name]: maximum + 1 })).toThrow(name);
  });

  it.each(withWords)('has the values of %s that are read', (name) => {
    for (const value of properties[name]!.enum!) expect(load({ [name]: value })[name]).toBe(value);
    expect(() => load({ [name]: 'anything else' })).toThrow(name);
  });

  it.each<[SettingName, string[]]>([
    ['rate', ['200/s', '100000/day']],
    ['onStatus', ['409=retry', '404=failed']],
    ['retryDelays', ['1s', '2s', '3s', '4s', '5s']],
  ])('allows a list for %s, which is read like a text with commas', (name, list) => {
    expect(properties[name]).toMatchObject({ type: ['string', 'array'] });
    expect(load({ [name]: list })[name]).toEqual(load({ [name]: list.join(',') })[name]);
  });

  const kinds: [kind: string, values: unknown[], refused: RegExp][] = [
    ['boolean', [false], /./],
    ['integer', [5, 5_000], /./],
    ['array', [['5']], /got a list/], // what some lists hold is none of their values
  ];
  it.each(kinds)('allows %s for the settings alone for which the file may hold %j', (kind, values, refused) => {
    const isRead = (name: SettingName) =>
      values.some((value) => !refused.test(failureOf(() => load({ [name]: value }))));
    const allowed = names.filter((name) => [properties[name]!.type].flat().includes(kind));
    expect(names.filter(isRead)).toEqual(allowed);
    expect(allowed.length).toBeGreaterThan(0);
  });

  it('finds words and bounds in the table', () => {
    expect([withBounds, withWords].map((found) => found.length)).toEqual([6, 5]);
    expect(properties.resource).toMatchObject({ type: 'string' }); // the file itself can define others
    expect(properties.noHeader).toMatchObject({ type: 'boolean', default: false });
  });
});

describe('"$schema" in a configuration file', () => {
  it('is for editors and changes nothing', () => {
    expect(load({ $schema: './expunge.schema.json', rate: '5/s' })).toEqual(load({ rate: '5/s' }));
  });
});
