import { existsSync, readFileSync } from 'node:fs';
import { ExpungeError, messageOf } from '../errors.ts';
import { suggest } from '../model/suggest.ts';
import { explainFileError } from '../system-errors.ts';
import { type ListSources, readSources } from './list-source.ts';
import { type Config, type SettingName, settings } from './settings.ts';

/** Where the value of a setting came from, for `config show`. */
export type Source = 'flag' | 'environment' | 'file' | 'default';
export type Sources = Record<SettingName, Source>;

type Inputs = {
  flags: Partial<Record<string, string | boolean>>;
  env: NodeJS.ProcessEnv;
  configFile: string | undefined | null; // named on the command line: must exist; null: none is read
};

/**
 * Reads all settings: a flag beats a variable, which beats the configuration file, which beats the default. An empty variable counts as
 * unset, because compose, env files and systemd units set variables that have no value. Throws USAGE for unknown names and unreadable values.
 */
export function loadConfig({ flags, env, configFile }: Inputs): { config: Config; sources: Sources } {
  refuseUnknownVariables(env);
  const { file, lists } =
    configFile === null ? noFile : readConfigFile(configFile ?? (env.EXPUNGE_CONFIG || undefined));
  const values: Record<string, unknown> = { sources: lists };
  const sources = {} as Sources;
  for (const name of Object.keys(settings) as SettingName[]) {
    const row = settings[name];
    const [source, text, where] = pick(name, flags, env, file);
    values[name] = text === undefined ? row.fallback : readValue(row, text, where);
    sources[name] = source;
  }
  return { config: Object.freeze(values) as Config, sources };
}

function pick(
  name: SettingName,
  flags: Inputs['flags'],
  env: NodeJS.ProcessEnv,
  file: Record<string, string>,
): [Source, string | undefined, string] {
  const row = settings[name];
  if (flags[name] !== undefined) return ['flag', String(flags[name]), `--${row.flag}`];
  if (row.env && env[row.env]) return ['environment', env[row.env], row.env];
  if (file[name] !== undefined) return ['file', file[name], `"${name}" in the configuration file`];
  return ['default', undefined, ''];
}

function readValue(row: (typeof settings)[SettingName], text: string, where: string): unknown {
  try {
    return row.parse(text);
  } catch (error) {
    throw new ExpungeError('USAGE', `${where}: ${messageOf(error)}`);
  }
}

/** Variables that begin with EXPUNGE_ and are no settings. `--workers` sets the last one for the processes it starts. */
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

/** Variables that Kubernetes sets in every pod if a Service is called `expunge` or `expunge-…`: no typing mistakes. */
const serviceVariables = /_(SERVICE_(HOST|PORT(_\w+)?)|PORT(_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?)$/;

function refuseUnknownVariables(env: NodeJS.ProcessEnv): void {
  const known = [...Object.values(settings).map((row) => row.env), ...otherVariables].filter((name) => name !== null);
  for (const name of Object.keys(env)) {
    if (!name.startsWith('EXPUNGE_') || known.includes(name) || serviceVariables.test(name)) continue;
    throw new ExpungeError('USAGE', `${name}: no such setting.${suggest(name, known)}`, {
      next: 'expunge help settings lists every variable',
    });
  }
}

type ConfigFile = { file: Record<string, string>; lists: ListSources };

const noFile: ConfigFile = { file: {}, lists: {} };

function readConfigFile(named: string | undefined): ConfigFile {
  const path = named ?? './expunge.config.json';
  if (!named && !existsSync(path)) return noFile;
  const content = parseJson(readFile(path), path);
  if (typeof content !== 'object' || content === null || Array.isArray(content)) {
    throw new ExpungeError('USAGE', `${path}: expected a JSON object with settings`);
  }
  const { sources = {}, $schema: _, ...others } = content as Record<string, unknown>; // "$schema" is for editors
  const texts = Object.entries(others).map(([name, value]) => [knownName(name, path), asText(value, name, path)]);
  return { file: Object.fromEntries(texts), lists: readLists(sources, path) };
}

function readLists(value: unknown, path: string): ListSources {
  try {
    return readSources(value);
  } catch (error) {
    throw new ExpungeError('USAGE', `${path}: "sources": ${messageOf(error)}`, { cause: error });
  }
}

function readFile(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    const { words, next } = explainFileError(error);
    throw new ExpungeError('USAGE', `${path}: expected a JSON object with settings: ${words}`, { cause: error, next });
  }
}

/** The parser's own message quotes the text, which is a secret where the token file was named by mistake. */
function parseJson(text: string, path: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    const place = /line \d+ column \d+/.exec(messageOf(error))?.[0] ?? 'somewhere';
    throw new ExpungeError('USAGE', `${path}: expected a JSON object with settings, it is not JSON (${place})`);
  }
}

/** The text of a value, since settings are read from text everywhere; a list of strings is joined with commas, like its flag. */
function asText(value: unknown, name: string, path: string): string {
  const parts = Array.isArray(value) ? value : [value];
  if (parts.every((part) => ['string', 'number', 'boolean'].includes(typeof part))) return parts.join(',');
  throw new ExpungeError('USAGE', `${path}: "${name}": expected text, a number, true or false`);
}

function knownName(name: string, path: string): string {
  if (Object.hasOwn(settings, name)) return name;
  throw new ExpungeError(
    'USAGE',
    `${path}: "${name}" is no setting.${suggest(name, [...Object.keys(settings), 'sources'])}`,
  );
}
