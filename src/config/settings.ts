import { existsSync, readFileSync } from 'node:fs';
import { ExpungeError, messageOf } from '../errors.ts';
import { resourcesText } from '../model/resource.ts';
import { suggest } from '../model/suggest.ts';
import { explainFileError } from '../system-errors.ts';
import { type ListSources, readSources } from './list-source.ts';
import * as parse from './parse-setting.ts';

type Setting<T> = {
  flag: string;
  env: string | null;
  arg: string | null; // the placeholder in the help text; null for a switch
  ifRepeated?: 'joined' | 'refused'; // the flag given twice means both, as with a comma, or may not be given twice; else the last counts
  parse: (text: string) => T;
  fallback: T | undefined;
  help: string;
};

function setting<T, F extends T | undefined>(row: Omit<Setting<T>, 'fallback'> & { fallback: F }) {
  return row as Setting<T> & { fallback: F };
}

/**
 * Every setting once: its flag, its variable, its default and how its text is read. Help, configuration file, `config show`
 * and the tables of the documentation follow from it. Secrets are not settings: see `token/token.ts`.
 */
export const settings = {
  baseUrl: setting({
    flag: 'base-url',
    env: 'EXPUNGE_BASE_URL',
    arg: '<url>',
    parse: parse.baseUrl,
    fallback: undefined,
    help: 'where the API lives; a path prefix is kept',
  }),
  account: setting({
    flag: 'account',
    env: 'EXPUNGE_ACCOUNT',
    arg: '<name>',
    parse: parse.text,
    fallback: '',
    help: 'account name, if several share a base URL',
  }),
  resource: setting({
    flag: 'resource',
    env: 'EXPUNGE_RESOURCE',
    arg: '<kind>',
    parse: parse.resource,
    fallback: undefined,
    help: `what the ids name: ${resourcesText('or')}`,
  }),
  resourceColumn: setting({
    flag: 'resource-column',
    env: 'EXPUNGE_RESOURCE_COLUMN',
    arg: '<name>',
    parse: parse.text,
    fallback: undefined,
    help: 'the column or field that holds each row’s resource',
  }),
  format: setting({
    flag: 'format',
    env: 'EXPUNGE_FORMAT',
    arg: '<format>',
    parse: parse.oneOf(['csv', 'ndjson', 'json', 'lines']),
    fallback: undefined,
    help: 'csv, ndjson, json or lines; by default from the file name, lines on stdin',
  }),
  column: setting({
    flag: 'column',
    env: 'EXPUNGE_COLUMN',
    arg: '<name>',
    parse: parse.text,
    fallback: 'id',
    help: 'the column or field that holds the id; it must be in the header',
  }),
  noHeader: setting({
    flag: 'no-header',
    env: 'EXPUNGE_NO_HEADER',
    arg: null,
    parse: parse.flag,
    fallback: false,
    help: 'the CSV has no header: its first column holds the ids',
  }),
  delimiter: setting({
    flag: 'delimiter',
    env: 'EXPUNGE_DELIMITER',
    arg: '<char>',
    parse: parse.delimiter,
    fallback: ',',
    help: 'what separates the columns of a CSV: one character, or "tab"',
  }),
  limit: setting({
    flag: 'limit',
    env: 'EXPUNGE_LIMIT',
    arg: '<n>',
    parse: parse.positiveInteger,
    fallback: undefined,
    help: 'read only the first n rows, for a trial on real data',
  }),
  protect: setting({
    flag: 'protect',
    env: 'EXPUNGE_PROTECT',
    arg: '<file>',
    ifRepeated: 'refused',
    parse: parse.text,
    fallback: undefined,
    help: 'ids in this file (one a line) are never deleted',
  }),
  allowIdChars: setting({
    flag: 'allow-id-chars',
    env: 'EXPUNGE_ALLOW_ID_CHARS',
    arg: '<chars>',
    parse: parse.idChars,
    fallback: '',
    help: 'characters of / \\ % ? # ; and the space that ids may hold',
  }),
  allowPlaceholders: setting({
    flag: 'allow-placeholders',
    env: 'EXPUNGE_ALLOW_PLACEHOLDERS',
    arg: null,
    parse: parse.flag,
    fallback: false,
    help: 'accept NULL, undefined, NaN, None and 0 as ids',
  }),
  expectRejected: setting({
    flag: 'expect-rejected',
    env: 'EXPUNGE_EXPECT_REJECTED',
    arg: null,
    parse: parse.flag,
    fallback: false,
    help: 'accept a list in which more than half of the rows hold no usable id',
  }),
  maxDeletes: setting({
    flag: 'max-deletes',
    env: 'EXPUNGE_MAX_DELETES',
    arg: '<n>',
    parse: parse.positiveInteger,
    fallback: undefined,
    help: 'refuse a list with more ids than this; nothing of it is sent',
  }),
  onStatus: setting({
    flag: 'on-status',
    env: 'EXPUNGE_ON_STATUS',
    arg: '<list>',
    ifRepeated: 'joined',
    parse: parse.onStatus,
    fallback: '',
    help: 'what a status means instead: 409=retry,404=failed (failed, absent, retry, wait, halt)',
  }),
  expectAbsent: setting({
    flag: 'expect-absent',
    env: 'EXPUNGE_EXPECT_ABSENT',
    arg: null,
    parse: parse.flag,
    fallback: false,
    help: 'many of the ids may be gone already: do not halt for that',
  }),
  rate: setting({
    flag: 'rate',
    env: 'EXPUNGE_RATE',
    arg: '<rate>',
    parse: parse.rate,
    fallback: undefined,
    help: 'at most this many requests: 200/s, spread evenly; 200/s,100000/day adds a quota for any window of a day',
  }),
  burst: setting({
    flag: 'burst',
    env: 'EXPUNGE_BURST',
    arg: '<n>',
    parse: parse.integerFrom(1, 1_000_000),
    fallback: undefined,
    help: 'requests that may be sent at once; by default 50 ms worth of the rate, at least 1',
  }),
  separateLimits: setting({
    flag: 'separate-limits',
    env: 'EXPUNGE_SEPARATE_LIMITS',
    arg: null,
    parse: parse.flag,
    fallback: false,
    help: `the API limits ${resourcesText('and')} separately`,
  }),
  maxConcurrency: setting({
    flag: 'max-concurrency',
    env: 'EXPUNGE_MAX_CONCURRENCY',
    arg: '<n>',
    parse: parse.integerFrom(1, 4096),
    fallback: 64,
    help: 'requests in flight at once, per process',
  }),
  requestTimeoutMs: setting({
    flag: 'request-timeout-ms',
    env: 'EXPUNGE_REQUEST_TIMEOUT_MS',
    arg: '<ms>',
    parse: parse.integerFrom(1, 600_000),
    fallback: 10_000,
    help: 'abandon one request after this long',
  }),
  retryDelays: setting({
    flag: 'retry-delays',
    env: 'EXPUNGE_RETRY_DELAYS',
    arg: '<list>',
    parse: parse.durations,
    fallback: [5_000, 30_000, 120_000, 600_000, 1_800_000] as number[],
    help: 'waits before the later passes: five durations like 5s,30s,2min,10min,30min',
  }),
  unreachableTimeoutMs: setting({
    flag: 'unreachable-timeout-ms',
    env: 'EXPUNGE_UNREACHABLE_TIMEOUT_MS',
    arg: '<ms>',
    parse: parse.integerFrom(0, 86_400_000),
    fallback: 60_000,
    help: 'how long the API may be unreachable before the run halts',
  }),
  stopFile: setting({
    flag: 'stop-file',
    env: 'EXPUNGE_STOP_FILE',
    arg: '<file>',
    ifRepeated: 'refused',
    parse: parse.text,
    fallback: undefined,
    help: 'send nothing while this file exists; its text is shown as the reason',
  }),
  tokenFile: setting({
    flag: 'token-file',
    env: 'EXPUNGE_TOKEN_FILE',
    arg: '<file>',
    parse: parse.text,
    fallback: undefined,
    help: 'holds the access token; read again when it changes (else EXPUNGE_TOKEN)',
  }),
  tokenCommand: setting({
    flag: 'token-command',
    env: 'EXPUNGE_TOKEN_COMMAND',
    arg: '<command>',
    parse: parse.text,
    fallback: undefined,
    help: 'prints the access token; a line for sh, run again before the token expires',
  }),
  tokenUrl: setting({
    flag: 'token-url',
    env: 'EXPUNGE_TOKEN_URL',
    arg: '<url>',
    parse: parse.tokenUrl,
    fallback: undefined,
    help: 'the token endpoint of an OAuth 2.0 authorization server; never guessed',
  }),
  clientId: setting({
    flag: 'client-id',
    env: 'EXPUNGE_CLIENT_ID',
    arg: '<id>',
    parse: parse.text,
    fallback: undefined,
    help: 'OAuth client id; also the account, unless --account is set',
  }),
  clientSecretFile: setting({
    flag: 'client-secret-file',
    env: 'EXPUNGE_CLIENT_SECRET_FILE',
    arg: '<file>',
    parse: parse.text,
    fallback: undefined,
    help: 'holds the client secret; read at each refresh (else EXPUNGE_CLIENT_SECRET)',
  }),
  refreshTokenFile: setting({
    flag: 'refresh-token-file',
    env: 'EXPUNGE_REFRESH_TOKEN_FILE',
    arg: '<file>',
    parse: parse.text,
    fallback: undefined,
    help: 'holds a refresh token, used instead of client credentials; a new one is written there',
  }),
  scope: setting({
    flag: 'scope',
    env: 'EXPUNGE_SCOPE',
    arg: '<scope>',
    parse: parse.text,
    fallback: undefined,
    help: 'OAuth scopes to request, separated by spaces',
  }),
  tokenAudience: setting({
    flag: 'token-audience',
    env: 'EXPUNGE_TOKEN_AUDIENCE',
    arg: '<audience>',
    parse: parse.text,
    fallback: undefined,
    help: 'the audience parameter, if the token endpoint requires one',
  }),
  tokenAuth: setting({
    flag: 'token-auth',
    env: 'EXPUNGE_TOKEN_AUTH',
    arg: '<way>',
    parse: parse.oneOf(['basic', 'post']),
    fallback: 'basic',
    help: 'how the client secret is sent to the token endpoint: basic (a header) or post (the form)',
  }),
  caFile: setting({
    flag: 'ca-file',
    env: 'EXPUNGE_CA_FILE',
    arg: '<file>',
    parse: parse.text,
    fallback: undefined,
    help: 'certificate authorities to trust for the API (PEM)',
  }),
  proxy: setting({
    flag: 'proxy',
    env: 'EXPUNGE_PROXY',
    arg: '<url>',
    parse: parse.proxyUrl,
    fallback: undefined,
    help: 'send the requests through this HTTP proxy; proxy variables are ignored',
  }),
  allowHttp: setting({
    flag: 'allow-http',
    env: 'EXPUNGE_ALLOW_HTTP',
    arg: '<host>',
    parse: parse.text,
    fallback: undefined,
    help: 'send the token unencrypted to this host (loopback is always allowed)',
  }),
  strictConnections: setting({
    flag: 'strict-connections',
    env: 'EXPUNGE_STRICT_CONNECTIONS',
    arg: null,
    parse: parse.flag,
    fallback: false,
    help: 'a connection per request: slow, but avoids mismatched responses of a broken server',
  }),
  keep: setting({
    flag: 'keep',
    env: 'EXPUNGE_KEEP',
    arg: '<duration>',
    parse: parse.duration,
    fallback: 30 * 86_400_000,
    help: 'how long Redis keeps an ended run, and the state folder its report: 30d, 12h',
  }),
  stateDir: setting({
    flag: 'state-dir',
    env: 'EXPUNGE_STATE_DIR',
    arg: '<folder>',
    parse: parse.text,
    fallback: '.expunge',
    help: 'holds the spool, the reports and the private Redis',
  }),
  allowPlaintextRedis: setting({
    flag: 'allow-plaintext-redis',
    env: 'EXPUNGE_ALLOW_PLAINTEXT_REDIS',
    arg: null,
    parse: parse.flag,
    fallback: false,
    help: 'accept a Redis on another machine without TLS',
  }),
  redisUsernameFile: setting({
    flag: 'redis-username-file',
    env: 'EXPUNGE_REDIS_USERNAME_FILE',
    arg: '<file>',
    parse: parse.text,
    fallback: undefined,
    help: 'holds the user name for Redis; read again at each connect',
  }),
  redisPasswordFile: setting({
    flag: 'redis-password-file',
    env: 'EXPUNGE_REDIS_PASSWORD_FILE',
    arg: '<file>',
    parse: parse.text,
    fallback: undefined,
    help: 'holds the password for Redis; read again at each connect',
  }),
  sentinelUsernameFile: setting({
    flag: 'sentinel-username-file',
    env: 'EXPUNGE_SENTINEL_USERNAME_FILE',
    arg: '<file>',
    parse: parse.text,
    fallback: undefined,
    help: 'holds the user name for the sentinels, if they require one',
  }),
  sentinelPasswordFile: setting({
    flag: 'sentinel-password-file',
    env: 'EXPUNGE_SENTINEL_PASSWORD_FILE',
    arg: '<file>',
    parse: parse.text,
    fallback: undefined,
    help: 'holds the password for the sentinels, if they require one',
  }),
  redisCaFile: setting({
    flag: 'redis-ca-file',
    env: 'EXPUNGE_REDIS_CA_FILE',
    arg: '<file>',
    parse: parse.text,
    fallback: undefined,
    help: 'certificate authorities to trust for Redis (PEM) instead of the usual ones',
  }),
  redisCertFile: setting({
    flag: 'redis-cert-file',
    env: 'EXPUNGE_REDIS_CERT_FILE',
    arg: '<file>',
    parse: parse.text,
    fallback: undefined,
    help: 'client certificate, if Redis requires one (PEM); read again at each connect',
  }),
  redisKeyFile: setting({
    flag: 'redis-key-file',
    env: 'EXPUNGE_REDIS_KEY_FILE',
    arg: '<file>',
    parse: parse.text,
    fallback: undefined,
    help: 'the key of that certificate (PEM)',
  }),
  redisServerName: setting({
    flag: 'redis-server-name',
    env: 'EXPUNGE_REDIS_SERVER_NAME',
    arg: '<name>',
    parse: parse.text,
    fallback: undefined,
    help: 'the name in the certificate of Redis, if it is not the host of REDIS_URL',
  }),
  http: setting({
    flag: 'http',
    env: 'EXPUNGE_HTTP',
    arg: '<[addr:]port>',
    parse: parse.listenAddress,
    fallback: undefined,
    help: 'serve /healthz, /readyz and /metrics there; a port alone is for this machine only, 0.0.0.0:9464 for all',
  }),
  logLevel: setting({
    flag: 'log-level',
    env: 'EXPUNGE_LOG_LEVEL',
    arg: '<level>',
    parse: parse.oneOf(['debug', 'info', 'warn', 'error', 'silent']),
    fallback: 'info',
    help: 'what a worker logs to stderr: debug, info, warn, error or silent',
  }),
} as const;

export type SettingName = keyof typeof settings;
type Value<S> = S extends { parse: (text: string) => infer T; fallback: infer F }
  ? F extends undefined
    ? T | undefined
    : T
  : never;

/** All settings with their values, and the sources of schedules. Frozen; made once per command, before any work. */
export type Config = { readonly [K in SettingName]: Value<(typeof settings)[K]> } & {
  /** They stand in the configuration file only, under the same name. */
  readonly sources: ListSources;
};

/** Where the value of a setting came from, for `config show`. */
export type Source = 'flag' | 'environment' | 'file' | 'default';
export type Sources = Record<SettingName, Source>;

/** Variables beside the settings that begin with EXPUNGE_. The last one is between `worker --workers` and its children. */
const otherVariables = [
  'EXPUNGE_TOKEN',
  'EXPUNGE_CLIENT_SECRET',
  'EXPUNGE_CONFIG',
  'EXPUNGE_USER',
  'EXPUNGE_REVISION',
  'EXPUNGE_WORKER',
];

/** What Kubernetes sets in every pod beside a Service called `expunge` or `expunge-…`. Nobody mistyped those. */
const serviceVariables = /_(SERVICE_(HOST|PORT(_\w+)?)|PORT(_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?)$/;

type Inputs = {
  flags: Partial<Record<string, string | boolean>>;
  env: NodeJS.ProcessEnv;
  configFile: string | undefined | null; // named on the command line: must exist; null: none is read
};

/**
 * Flags beat variables beat the configuration file beat defaults. A variable that is empty counts as none: compose, env files and units set
 * what nobody filled in. Throws USAGE for unknown names and unreadable values.
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

/** The parser's own message quotes the text, which is a secret when somebody names the token file by mistake. */
function parseJson(text: string, path: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    const place = /line \d+ column \d+/.exec(messageOf(error))?.[0] ?? 'somewhere';
    throw new ExpungeError('USAGE', `${path}: expected a JSON object with settings, it is not JSON (${place})`);
  }
}

/** Settings are read from text, wherever they stand; a list of strings is joined as its flag would have it. */
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
