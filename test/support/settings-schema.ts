import { writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import * as parse from '../../src/config/parse-setting.ts';
import {
  headerName,
  headerValue,
  maxPathLength,
  mayBeAbsent,
  segment,
  successStatuses,
  takenNames,
} from '../../src/config/read-resources.ts';
import { type SettingName, settings, settingText } from '../../src/config/settings.ts';
import { builtInResources, repeats } from '../../src/model/resource.ts';

type Schema = Record<string, unknown>;

/** Where the schema stands; the build puts a copy into the package. */
export const schemaFile = fileURLToPath(new URL('../../src/expunge.schema.json', import.meta.url));

/** The JSON schema of the configuration file, for editors. What it allows is read; the reader takes some more, as numbers in quotes. */
export function settingsSchema(): Schema {
  const names = Object.keys(settings) as SettingName[];
  return {
    $schema: 'http://json-schema.org/draft-07/schema#',
    title: 'Configuration file of expunge',
    type: 'object',
    properties: {
      $schema: { type: 'string', description: 'Where this schema is; expunge ignores it.' },
      ...Object.fromEntries(names.map((name) => [name, settingSchema(name)])),
      sources: sourcesSchema,
      resources: resourcesSchema,
    },
    additionalProperties: false,
  };
}

/** Writes it. Doing it twice changes nothing. */
export function writeSchema(path = schemaFile): void {
  writeFileSync(path, schemaText());
}

export function schemaText(): string {
  return `${JSON.stringify(settingsSchema(), null, 2)}\n`;
}

function settingSchema(name: SettingName): Schema {
  const { flag, env, help, fallback, isFlagless = false } = settings[name];
  const also = [...(isFlagless ? [] : [`--${flag}`]), ...(env ? [env] : [])].join(', ');
  return { ...valueSchema(name), description: `${help} (${also})`, ...defaultOf(name, fallback) };
}

function valueSchema(name: SettingName): Schema {
  const parser: unknown = settings[name].parse;
  const { words, range, json, isList, mayBeNone } = parse.takenBy(parser);
  if (json === 'boolean') return { type: 'boolean' };
  if (parser === parse.resource) return { type: 'string' }; // the file itself can define others
  if (words) return { enum: words };
  if (range && mayBeNone) return { type: ['string', 'integer'], minimum: range.min, maximum: range.max };
  if (range) return { type: 'integer', minimum: range.min, maximum: range.max };
  const types = json === 'number' ? ['string', 'integer'] : ['string'];
  if (isList) return listSchema(types, parser === parse.durations ? 5 : null);
  return { type: oneOrMore(types) };
}

/** A text says the same with commas. */
function listSchema(types: string[], length: number | null): Schema {
  const bounds = length === null ? { minItems: 1 } : { minItems: length, maxItems: length };
  return { type: [...types, 'array'], items: { type: oneOrMore(types) }, ...bounds };
}

function oneOrMore(types: string[]): string | string[] {
  return types.length === 1 ? types[0]! : types;
}

function defaultOf(name: SettingName, fallback: unknown): Schema {
  if (fallback === undefined || fallback === '') return {};
  const isTime = ([parse.duration, parse.graceTime] as unknown[]).includes(settings[name].parse);
  if (['boolean', 'number'].includes(typeof fallback) && !isTime) return { default: fallback };
  return { default: settingText(name, fallback as never) };
}

const text: Schema = { type: 'string', minLength: 1 };
const time = { type: 'string', description: 'a duration: 500ms, 5s, 2min, 12h' };

function source(needed: string, value: Schema, others: Schema): Schema {
  return {
    type: 'object',
    properties: { [needed]: value, ...others },
    required: [needed],
    additionalProperties: false,
  };
}

const statuses = (usual: number[], allowed: readonly number[]): Schema => ({
  type: 'array',
  items: { type: 'integer', enum: allowed },
  uniqueItems: true,
  default: usual,
});

const errors = Array.from({ length: 100 }, (_, i) => 400 + i);
const plainSegment = `/(?!\\.{1,2}(?:/|$))${segment.source.slice(1, -1)}`;

const repeat: Schema = {
  enum: repeats,
  description: 'a second DELETE of the same object: never sent once the first may have been executed, or harmless',
};

const resourcesSchema: Schema = {
  description: 'Resources besides the built-in ones, by their names: how to delete one object with one request.',
  type: 'object',
  propertyNames: { pattern: '^[a-z][a-z0-9_-]{0,39}$', not: { enum: takenNames } },
  properties: Object.fromEntries(
    Object.keys(builtInResources).map((name) => [
      name,
      { type: 'object', properties: { repeat }, required: ['repeat'], additionalProperties: false },
    ]),
  ),
  additionalProperties: {
    type: 'object',
    properties: {
      path: {
        type: 'string',
        pattern: `^(?:${plainSegment})*/\\{id\\}(?:${plainSegment})*/?$`,
        maxLength: maxPathLength,
        description: 'below the base URL, with {id} as one whole segment: /v1/dashboards/{id}',
      },
      method: { const: 'DELETE' },
      success: { ...statuses([204], successStatuses), minItems: 1 },
      absent: statuses(
        [404, 410],
        errors.filter((status) => mayBeAbsent(status) === null),
      ),
      auth: {
        type: 'object',
        description:
          'the header that holds the token; without a scheme, a header other than authorization holds it alone',
        properties: {
          header: { type: 'string', pattern: headerName.source },
          scheme: { type: 'string', pattern: `^$|${headerName.source}` },
        },
        required: ['header'],
        additionalProperties: false,
      },
      headers: {
        type: 'object',
        description: 'sent with each request; no secrets',
        maxProperties: 20,
        propertyNames: { pattern: headerName.source },
        additionalProperties: { type: 'string', pattern: headerValue.source },
      },
      repeat,
    },
    required: ['path'],
    additionalProperties: false,
  },
};

const sourcesSchema: Schema = {
  type: 'object',
  description: 'Where schedules get their lists from, by name.',
  propertyNames: { pattern: '^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$' },
  additionalProperties: {
    anyOf: [
      source('glob', text, { archive: text, settle: time }),
      source('command', { type: 'array', items: { type: 'string' }, minItems: 1 }, { timeout: time }),
      source('url', { ...text, format: 'uri' }, { caFile: text, timeout: time }),
    ],
  },
};

if (process.argv[1] === fileURLToPath(import.meta.url)) writeSchema();
