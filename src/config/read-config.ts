import { existsSync, readFileSync, statSync } from 'node:fs';
import { ExpungeError, messageOf } from '../errors.ts';
import type { Definitions } from '../model/resource.ts';
import { suggest } from '../model/suggest.ts';
import { lineOfKey, parseStrictJson } from '../strict-json.ts';
import { explainFileError } from '../system-errors.ts';
import { type ListSources, readSources } from './list-source.ts';
import { takenBy } from './parse-setting.ts';
import { withoutUrlSecrets } from './parse-url.ts';
import { readResources, WrongResource } from './read-resources.ts';
import { type Config, type SettingName, settings } from './settings.ts';

/** The origin of the value of a setting, for `config show`. */
export type Source = 'flag' | 'environment' | 'file' | 'default';
export type Sources = Record<SettingName, Source>;

type Inputs = {
  flags: Partial<Record<string, string | boolean>>;
  env: NodeJS.ProcessEnv;
  configFile: string | undefined | null; // named on the command line: must exist; null: read none
};

/**
 * Reads all settings. A flag takes precedence over a variable, a variable over the configuration file, and the file over the default. An empty
 * variable counts as unset, because compose, env files and systemd units set variables without a value. Throws USAGE for unknown names and unreadable
 * values. The process has to know the resources of the configuration file by then; see `findResources`.
 */
export function loadConfig({ flags, env, configFile }: Inputs): { config: Config; sources: Sources } {
  refuseUnknownVariables(env);
  const { file, lists, placeOf, resourcesFor } =
    configFile === null ? noFile : readConfigFile(configFile ?? (env.EXPUNGE_CONFIG || undefined));
  const given = { flags, env, file, placeOf };
  const [, baseUrl] = pick('baseUrl', given);
  const values: Record<string, unknown> = { sources: lists, resources: resourcesFor(baseUrl) }; // first: a value may name one
  const sources = {} as Sources;
  for (const name of Object.keys(settings) as SettingName[]) {
    const row = settings[name];
    const [source, text, where] = pick(name, given);
    values[name] = text === undefined ? row.fallback : readValue(row, text, where);
    sources[name] = source;
  }
  return { config: Object.freeze(values) as Config, sources };
}

/**
 * The resources in the configuration file that a command line will use, before it is read: they are part of its help, and of what its flags take. No
 * resources if anything is wrong with the file; `loadConfig` says what.
 */
export function findResources(argv: readonly string[], env: NodeJS.ProcessEnv): Definitions {
  return resourcesOf(configFlag(argv), env);
}

/** The same once the line is read. `configFile`: the file that it names. */
export function resourcesOf(configFile: string | undefined, env: NodeJS.ProcessEnv): Definitions {
  try {
    return readConfigFile(configFile ?? (env.EXPUNGE_CONFIG || undefined), true).resourcesFor(undefined);
  } catch {
    return {};
  }
}

/** The file that the last `--config` seems to name, before the line is read. */
function configFlag(argv: readonly string[]): string | undefined {
  const end = argv.indexOf('--');
  const flags = end === -1 ? argv : argv.slice(0, end);
  const at = flags.findLastIndex((arg) => arg === '--config' || arg.startsWith('--config='));
  return at === -1 ? undefined : (/^--config=(.*)$/s.exec(flags[at]!)?.[1] ?? flags[at + 1]);
}

type Given = Pick<Inputs, 'flags' | 'env'> & Pick<ConfigFile, 'file' | 'placeOf'>;

function pick(
  name: SettingName,
  { flags, env, file, placeOf }: Given,
): [source: Source, text: string | undefined, where: string] {
  const row = settings[name];
  if (flags[name] !== undefined) return ['flag', String(flags[name]), `--${row.flag}`];
  if (row.env && env[row.env]) return ['environment', env[row.env], row.env];
  if (file[name] !== undefined) return ['file', file[name], placeOf(name)];
  return ['default', undefined, ''];
}

function readValue(row: (typeof settings)[SettingName], text: string, where: string): unknown {
  try {
    return row.parse(text);
  } catch (error) {
    throw new ExpungeError('USAGE', `${where}: ${messageOf(error)}`);
  }
}

/** Variables that begin with EXPUNGE_ but are not settings. `worker --workers` sets the last one for the processes that it starts. */
const otherVariables = [
  'EXPUNGE_TOKEN',
  'EXPUNGE_CLIENT_SECRET',
  'EXPUNGE_RESULTS_HEADERS',
  'EXPUNGE_NOTIFY_SECRET',
  'EXPUNGE_SERVER_TOKEN',
  'EXPUNGE_CONFIG',
  'EXPUNGE_USER',
  'EXPUNGE_REVISION',
  'EXPUNGE_WORKER',
];

/** Variables that Kubernetes sets in every pod if a Service is called `expunge` or `expunge-…`: these are not typing mistakes. */
const serviceVariables = /_(SERVICE_(HOST|PORT(_\w+)?)|PORT(_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?)$/;

function refuseUnknownVariables(env: NodeJS.ProcessEnv): void {
  const known = [...Object.values(settings).map((row) => row.env), ...otherVariables].filter((name) => name !== null);
  for (const name of Object.keys(env)) {
    if (!name.startsWith('EXPUNGE_') || known.includes(name) || serviceVariables.test(name)) continue;
    throw new ExpungeError('USAGE', `${name}: no such setting.${suggest(name, known)}`, {
      next: (toType) => `${toType('help', 'settings')} lists every variable`,
    });
  }
}

/** The place of a key in a configuration file, for messages: `expunge.config.json:4: "resources": "dashboards"`. */
type PlaceOf = (...keys: readonly string[]) => string;

/** `resourcesFor`: reads the resources, with the base URL for messages. Throws USAGE with the line of a mistake. */
type ConfigFile = {
  file: Record<string, string>;
  lists: ListSources;
  placeOf: PlaceOf;
  resourcesFor(baseUrl: string | undefined): Definitions;
};

const noFile: ConfigFile = { file: {}, lists: {}, placeOf: () => '', resourcesFor: () => ({}) };

/** `onlyResources`: reads its resources only. */
function readConfigFile(named: string | undefined, onlyResources = false): ConfigFile {
  const path = named ?? './expunge.config.json';
  if (!named && !existsSync(path)) return noFile;
  const json = readFile(path);
  const content = parseJson(json, path);
  if (typeof content !== 'object' || content === null || Array.isArray(content)) {
    throw new ExpungeError('USAGE', `${path}: expected a JSON object with settings`);
  }
  const { sources = {}, resources = {}, $schema: _, ...others } = content as Record<string, unknown>; // editors use "$schema"
  const placeOf: PlaceOf = (...keys) => `${path}:${lineOfKey(json, keys)}: ${keys.map((key) => `"${key}"`).join(': ')}`;
  const resourcesFor = (baseUrl: string | undefined) => readDefined(resources, baseUrl, placeOf);
  if (onlyResources) return { ...noFile, resourcesFor };
  const texts = Object.entries(others).map(([name, value]) => [name, asText(value, knownName(name, placeOf), placeOf)]);
  return { file: Object.fromEntries(texts), lists: readLists(sources, placeOf), placeOf, resourcesFor };
}

function readDefined(value: unknown, baseUrl: string | undefined, placeOf: PlaceOf): Definitions {
  try {
    return readResources(value, baseUrl && withoutUrlSecrets(baseUrl).replace(/\/+$/, ''));
  } catch (error) {
    if (!(error instanceof WrongResource)) throw error;
    throw new ExpungeError('USAGE', `${placeOf('resources', ...error.keys)}: ${error.message}`, {
      cause: error,
      next: (toType) => `${toType('help', 'resources')} shows how to define one`,
    });
  }
}

function readLists(value: unknown, placeOf: PlaceOf): ListSources {
  try {
    return readSources(value);
  } catch (error) {
    throw new ExpungeError('USAGE', `${placeOf('sources')}: ${messageOf(error)}`, { cause: error });
  }
}

/** The texts of pipes, which can be read only once, although the resources are read before the settings: `--config <(…)`. */
const piped = new Map<string, string>();

function readFile(path: string): string {
  try {
    if (statSync(path).isFile()) return readFileSync(path, 'utf8');
    const text = piped.get(path) ?? readFileSync(path, 'utf8');
    piped.set(path, text);
    return text;
  } catch (error) {
    const { words, next } = explainFileError(error);
    throw new ExpungeError('USAGE', `${path}: expected a JSON object with settings: ${words}`, { cause: error, next });
  }
}

/** Parses JSON. The token file may be named by mistake, so no message quotes the text. */
function parseJson(text: string, path: string): unknown {
  try {
    return parseStrictJson(text);
  } catch (error) {
    throw new ExpungeError('USAGE', `${path}: expected a JSON object with settings, ${messageOf(error)}`);
  }
}

/**
 * The text of a value, since settings are read from text everywhere; a list is joined with commas, like its flag. Throws USAGE for a value of a kind
 * that the setting does not take: as text, `false` would be the name of a file.
 */
function asText(value: unknown, name: SettingName, placeOf: PlaceOf): string {
  const { json = 'string', isList = false } = takenBy(settings[name].parse);
  const parts = isList && Array.isArray(value) ? value : [value];
  if (parts.every((part) => typeof part === 'string' || typeof part === json)) return parts.join(',');
  if (typeof value === 'number') readValue(settings[name], String(value), placeOf(name)); // throws a more precise error
  const expected = [...kindWords[json], ...(isList ? ['a list of them'] : [])].join(' or ');
  throw new ExpungeError('USAGE', `${placeOf(name)}: expected ${expected}, got ${kindOf(value)}`, {
    next: `put text into quotes; to leave "${name}" unset, remove it`,
  });
}

const kindWords = { string: ['text'], number: ['text', 'a number'], boolean: ['true', 'false'] } as const;

/** The kind of a value, in the terms of JSON. The value itself may be a misplaced secret. */
function kindOf(value: unknown): string {
  if (value === null || typeof value === 'boolean') return String(value);
  if (Array.isArray(value)) return 'a list';
  return { string: 'text', number: 'a number' }[typeof value as string] ?? 'an object';
}

function knownName(name: string, placeOf: PlaceOf): SettingName {
  if (Object.hasOwn(settings, name)) return name as SettingName;
  throw new ExpungeError(
    'USAGE',
    `${placeOf(name)} is not a setting.${suggest(name, [...Object.keys(settings), 'sources', 'resources'])}`,
  );
}
