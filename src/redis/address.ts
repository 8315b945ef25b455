import { isIP } from 'node:net';
import type { Redis, RedisOptions } from 'ioredis';
import { ExpungeError } from '../errors.ts';
import type { PrivatePlace } from './private-place.ts';

/**
 * Where Redis is and how to log in: one server, a Sentinel set (`options.sentinels` and `options.name`), or a cluster, which is found
 * through any of its `nodes`. `label` may be printed: it never holds a password; `options` must not be.
 */
export type RedisAddress = {
  kind: 'url' | 'private';
  label: string;
  options: RedisOptions;
  nodes?: { host: string; port: number }[]; // cluster only
  stay?: { place: PrivatePlace; presence: Redis }; // private only: counts this process as a client until it leaves
};

const forms =
  'redis://[user:password@]host[:port][/db], rediss://… with TLS, unix:///path/to/redis.sock, redis+sentinel://host:port,…/master, or redis+cluster://host:port,…';

/**
 * Reads REDIS_URL. Throws USAGE for any other form, and for a server on another machine without TLS unless
 * `allowPlaintext`. The text is never echoed: it may hold a password in a place where nobody expects one.
 */
export function addressFromUrl(text: string, allowPlaintext: boolean): RedisAddress {
  const many = /^(rediss?:)\/\/(.*@)?([^@/?]+)(.*)$/s.exec(text.replace(/^(rediss?)\+(sentinel|cluster):/, '$1:'));
  const kind = /^rediss?\+(sentinel|cluster):/.exec(text)?.[1];
  if (kind && many) {
    const [, protocol, user = '', hosts = '', rest = ''] = many;
    const urls = hosts.split(',').map((host) => `${protocol}//${user}${host}${kind === 'cluster' ? rest : ''}`);
    if (!urls.every((each) => URL.canParse(each))) throw badUrl(`expected ${forms}`);
    const addresses = urls.map((each) => hostAddress(new URL(each), allowPlaintext));
    const { host: _, port: __, ...options } = addresses[0]!.options;
    const nodes = addresses.map(({ options }) => ({ host: options.host!, port: options.port! }));
    const label = `${text.slice(0, text.indexOf(':'))}://${nodes.map(({ host, port }) => `${host}:${port}`).join(',')}`;
    if (kind === 'cluster') return { kind: 'url', label, options, nodes };
    return { kind: 'url', label: `${label}${rest}`, options: { ...options, sentinels: nodes, name: rest.slice(1) } };
  }
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url?.protocol === 'unix:') return socketAddress(url);
  if (url?.protocol === 'redis:' || url?.protocol === 'rediss:') return hostAddress(url, allowPlaintext);
  throw badUrl(`expected ${forms}`);
}

function socketAddress(url: URL): RedisAddress {
  if (url.host || url.pathname.length < 2) throw badUrl('expected three slashes before the path: unix:///path');
  const path = decode(url.pathname);
  return { kind: 'url', label: `unix://${path}`, options: { path, ...login(url), db: database(url, '') } };
}

function hostAddress(url: URL, allowPlaintext: boolean): RedisAddress {
  const host = url.hostname.replace(/^\[|\]$/g, '').toLowerCase();
  const secure = url.protocol === 'rediss:';
  if (!host) throw badUrl(`no host; expected ${forms}`);
  if (!secure && !isLoopback(host) && !allowPlaintext) throw plaintextRefused(host);
  const db = database(url, url.pathname.slice(1));
  const options = { host, port: Number(url.port || 6379), ...login(url), db, ...(secure ? { tls: {} } : {}) };
  return { kind: 'url', label: `${url.protocol}//${url.hostname}:${options.port}${db ? `/${db}` : ''}`, options };
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

// Hosts that mean this machine: no network sees the traffic.
function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || (isIP(host) === 4 && host.startsWith('127.'));
}

function badUrl(problem: string): ExpungeError {
  return new ExpungeError('USAGE', `REDIS_URL: ${problem}`);
}

function plaintextRefused(host: string): ExpungeError {
  return new ExpungeError('USAGE', `REDIS_URL: ${host} is another machine and redis:// is not encrypted`, {
    next: 'use rediss://, or --allow-plaintext-redis on a network you trust',
  });
}
