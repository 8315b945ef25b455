import { isIP } from 'node:net';
import type { Redis, RedisOptions } from 'ioredis';
import { listenText } from '../config/parse-setting.ts';
import { ExpungeError } from '../errors.ts';

/** The paths of the private Redis of one state folder. */
export type PrivatePlace = {
  folder: string; // <state folder>/redis: append-only files, log, locks
  socket: string; // as Redis and its clients open it
  socketLink: string | null; // link to the socket, which is in the temporary folder if its path was too long
  pidFile: string;
  logFile: string;
  containerFile: string; // exists if the data are in a container's volume
  folderIdFile: string; // the file with the id that only the server of this folder shows
};

/** A server, as one of several. */
export type RedisNode = { host: string; port: number };

/**
 * The place of Redis and how to log in: one server, a Sentinel set (`options.sentinels` and `options.name`), or a cluster (`nodes`: some of its
 * servers). `label` can be printed, as it never holds a password; `options` must not be printed.
 */
export type RedisAddress = {
  kind: 'url' | 'private';
  label: string;
  options: RedisOptions;
  nodes?: RedisNode[]; // cluster only
  login?: () => RedisLogin; // reads the login files again, which may have been replaced
  stay?: { place: PrivatePlace; presence: Redis }; // private only; `presence`: a connection that shows other processes that this one uses it
};

/** The options that can change while the process runs. */
export type RedisLogin = Pick<RedisOptions, 'username' | 'password' | 'sentinelUsername' | 'sentinelPassword'>;

const one = 'redis://[user:password@]host[:port][/db]';
const socket = 'unix:///path/to/redis.sock';
const sentinel = 'redis+sentinel://[user:password@]host[:port],host[:port]/primary[?db=n]';
const cluster = 'redis+cluster://[user:password@]host[:port],host[:port]';
const forms = `${one}, ${socket}, ${sentinel} or ${cluster}; with TLS rediss:// and rediss+…://`;

/**
 * Reads REDIS_URL. Throws USAGE for any other form, and for a server on another machine without TLS unless `allowPlaintext`. Errors never contain the
 * text, because it may hold a password in an unexpected place.
 */
export function addressFromUrl(text: string, allowPlaintext: boolean): RedisAddress {
  const [, setUp] = /^rediss?\+(sentinel|cluster):/.exec(text) ?? [];
  if (setUp === 'sentinel') return sentinelAddress(readHosts(text, 26_379, allowPlaintext));
  if (setUp === 'cluster') return clusterAddress(readHosts(text, 6379, allowPlaintext));
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url?.protocol === 'unix:') return socketAddress(url);
  if (url?.protocol === 'redis:' || url?.protocol === 'rediss:') return hostAddress(url, allowPlaintext);
  throw badUrl(`expected ${forms}`);
}

/** A URL with several hosts. `url`: the URL without them. */
type Hosts = { nodes: RedisNode[]; url: URL; secure: boolean; label: string };

function readHosts(text: string, usualPort: number, allowPlaintext: boolean): Hosts {
  const parts = /^((rediss?)\+\w+:\/\/)([^/?#]*@)?([^@/?#]+)(.*)$/s.exec(text);
  const [, form = '', scheme = '', user = '', hosts = '', rest = ''] = parts ?? [];
  const [url, ...each] = [`${user}hosts${rest}`, ...hosts.split(',')].map((part) => `${scheme}://${part}`).map(readUrl);
  const nodes = each.map((host) => ({ host: hostOf(host), port: Number(host.port || usualPort) }));
  const secure = scheme === 'rediss';
  for (const { host } of nodes) if (!secure) refusePlaintext(host, allowPlaintext);
  return { nodes, url: url!, secure, label: `${form}${nodes.map(listenText).join(',')}` };
}

function readUrl(text: string): URL {
  if (URL.canParse(text)) return new URL(text);
  throw badUrl(`expected ${forms}`);
}

function sentinelAddress({ nodes, url, secure, label }: Hosts): RedisAddress {
  const name = decode(url.pathname.slice(1));
  if (!/^[^/\s]+$/.test(name)) throw badUrl(`expected the name that the sentinels give the primary, as in ${sentinel}`);
  const db = database(url, '');
  const tls = secure ? { tls: {}, sentinelTLS: {}, enableTLSForSentinelMode: true } : {};
  const options = { sentinels: nodes, name, ...login(url), db, ...tls };
  return { kind: 'url', label: `${label}/${name}${db ? `?db=${db}` : ''}`, options };
}

function clusterAddress({ nodes, url, secure, label }: Hosts): RedisAddress {
  if (database(url, url.pathname.slice(1)) !== 0) throw badUrl('a cluster has no databases but 0');
  return { kind: 'url', label, options: { ...login(url), ...(secure ? { tls: {} } : {}) }, nodes };
}

function socketAddress(url: URL): RedisAddress {
  if (url.host || url.pathname.length < 2) throw badUrl('expected three slashes before the path: unix:///path');
  const path = decode(url.pathname);
  return { kind: 'url', label: `unix://${path}`, options: { path, ...login(url), db: database(url, '') } };
}

function hostAddress(url: URL, allowPlaintext: boolean): RedisAddress {
  const host = hostOf(url);
  const secure = url.protocol === 'rediss:';
  if (!secure) refusePlaintext(host, allowPlaintext);
  const db = database(url, url.pathname.slice(1));
  const options = { host, port: Number(url.port || 6379), ...login(url), db, ...(secure ? { tls: {} } : {}) };
  return { kind: 'url', label: `${url.protocol}//${url.hostname}:${options.port}${db ? `/${db}` : ''}`, options };
}

function hostOf(url: URL): string {
  const host = url.hostname.replace(/^\[|\]$/g, '').toLowerCase();
  if (host) return host;
  throw badUrl(`no host; expected ${forms}`);
}

function login(url: URL): { username?: string; password?: string } {
  const username = decode(url.username) || url.searchParams.get('username');
  const password = decode(url.password) || url.searchParams.get('password');
  return { ...(username ? { username } : {}), ...(password ? { password } : {}) };
}

function database(url: URL, inPath: string): number {
  const unknown = [...url.searchParams.keys()].some((name) => !['db', 'username', 'password'].includes(name));
  if (unknown) throw badUrl('after "?" only db, username and password are understood');
  const text = inPath || (url.searchParams.get('db') ?? '0');
  if (!/^\d{1,4}$/.test(text)) throw badUrl('the database must be a number, as in redis://host:6379/2');
  return Number(text);
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw badUrl('a "%" in it must be written %25: its parts are percent-encoded');
  }
}

/** Whether a host is this machine, so that no network carries the traffic. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || (isIP(host) === 4 && host.startsWith('127.'));
}

function badUrl(problem: string): ExpungeError {
  return new ExpungeError('USAGE', `REDIS_URL: ${problem}`);
}

function refusePlaintext(host: string, isAllowed: boolean): void {
  if (isAllowed || isLoopback(host)) return;
  throw new ExpungeError('USAGE', `REDIS_URL: ${host} is another machine and redis:// is not encrypted`, {
    next: 'use rediss://, or set EXPUNGE_ALLOW_PLAINTEXT_REDIS=true on a network you trust',
  });
}
