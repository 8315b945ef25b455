import { X509Certificate } from 'node:crypto';
import { createSecureContext, type SecureContext } from 'node:tls';
import type { Config } from '../config/settings.ts';
import { ExpungeError, messageOf, readNamedFile } from '../errors.ts';
import type { RedisAddress, RedisLogin } from './address.ts';

const logins = {
  redisUsernameFile: 'EXPUNGE_REDIS_USERNAME_FILE',
  redisPasswordFile: 'EXPUNGE_REDIS_PASSWORD_FILE',
} as const;
const sentinelLogins = {
  sentinelUsernameFile: 'EXPUNGE_SENTINEL_USERNAME_FILE',
  sentinelPasswordFile: 'EXPUNGE_SENTINEL_PASSWORD_FILE',
} as const;
const tlsOnly = {
  redisCaFile: 'EXPUNGE_REDIS_CA_FILE',
  redisCertFile: 'EXPUNGE_REDIS_CERT_FILE',
  redisKeyFile: 'EXPUNGE_REDIS_KEY_FILE',
  redisServerName: 'EXPUNGE_REDIS_SERVER_NAME',
} as const;
const all = { ...logins, ...sentinelLogins, ...tlsOnly };

/** The settings for logins and TLS in addition to REDIS_URL: files, and the server name. */
export type RedisAccess = Partial<Pick<Config, keyof typeof all>>;

/**
 * Adds the logins and the TLS of these settings to the address. Their files are read again before each connect. While a file cannot be read or is
 * invalid, its last valid content is used, because a replacement may be in progress. Throws CREDENTIALS or USAGE if a file cannot be read or is
 * invalid now, and USAGE for settings that the address cannot use.
 */
export function withAccess(address: RedisAddress, access: RedisAccess): RedisAddress {
  refuseUselessAccess(address, access);
  const readLogin = loginReader(access);
  const tls = address.options.tls ? { tls: tlsOptions(access) } : {};
  const sentinelTls = address.options.sentinelTLS ? { sentinelTLS: tls.tls } : {};
  return { ...address, options: { ...address.options, ...readLogin(), ...tls, ...sentinelTls }, login: readLogin };
}

/** Throws USAGE if one of the settings is given; for commands without REDIS_URL. */
export function refuseAccess(access: RedisAccess): void {
  refuseGiven(access, all, 'is for the Redis of REDIS_URL, which is not set');
}

function refuseUselessAccess({ options }: RedisAddress, access: RedisAccess): void {
  if (!options.tls) refuseGiven(access, tlsOnly, 'is for TLS, and REDIS_URL has none: expected rediss://…');
  if (!options.sentinels)
    refuseGiven(access, sentinelLogins, 'is for sentinels: expected redis+sentinel://… in REDIS_URL');
  if (options.username)
    refuseGiven({ ...access, redisPasswordFile: undefined }, logins, 'and REDIS_URL both name a user');
  if (options.password)
    refuseGiven({ ...access, redisUsernameFile: undefined }, logins, 'and REDIS_URL both hold a password');
  const { redisCertFile, redisKeyFile } = access;
  if ((redisCertFile === undefined) !== (redisKeyFile === undefined)) {
    throw new ExpungeError('USAGE', 'expected EXPUNGE_REDIS_CERT_FILE and EXPUNGE_REDIS_KEY_FILE, got one of them');
  }
}

function refuseGiven(access: RedisAccess, variables: Partial<typeof all>, why: string): void {
  const found = Object.entries(variables).find(([name]) => access[name as keyof RedisAccess] !== undefined);
  if (found) throw new ExpungeError('USAGE', `${found[1]} ${why}`);
}

function loginReader(access: RedisAccess): () => RedisLogin {
  const files = { ...logins, ...sentinelLogins };
  const names = (Object.keys(files) as (keyof typeof files)[]).filter((name) => access[name] !== undefined);
  const readers = names.map(
    (name) => [optionOf[name], keepLast(() => readSecret(files[name], access[name]!))] as const,
  );
  return () => Object.fromEntries(readers.map(([option, read]) => [option, read()]));
}

const optionOf = {
  redisUsernameFile: 'username',
  redisPasswordFile: 'password',
  sentinelUsernameFile: 'sentinelUsername',
  sentinelPasswordFile: 'sentinelPassword',
} as const;

function readSecret(variable: string, path: string): string {
  const text = readNamedFile(variable, path, 'CREDENTIALS');
  if (text !== '') return text;
  throw new ExpungeError('CREDENTIALS', `${variable} ${path}: it is empty`);
}

/** ioredis copies these options at each connect, which reads the files. */
function tlsOptions({ redisServerName, ...access }: RedisAccess) {
  const read = keepLast(() => readContext(access));
  return {
    get secureContext() {
      return read();
    },
    ...(redisServerName === undefined ? {} : { servername: redisServerName }),
  };
}

function readContext({ redisCaFile, redisCertFile, redisKeyFile }: RedisAccess): SecureContext {
  const ca = redisCaFile && readNamedFile(tlsOnly.redisCaFile, redisCaFile, 'USAGE');
  const cert = redisCertFile && readNamedFile(tlsOnly.redisCertFile, redisCertFile, 'USAGE');
  const key = redisKeyFile && readNamedFile(tlsOnly.redisKeyFile, redisKeyFile, 'CREDENTIALS');
  if (ca !== undefined) refuseBadFile(tlsOnly.redisCaFile, redisCaFile, 'certificates', () => new X509Certificate(ca));
  if (cert !== undefined)
    refuseBadFile(tlsOnly.redisCertFile, redisCertFile, 'a certificate', () => new X509Certificate(cert));
  return refuseBadFile(tlsOnly.redisKeyFile, redisKeyFile, 'the key of that certificate', () =>
    createSecureContext({ ca, cert, key }),
  );
}

function refuseBadFile<T>(variable: string, path: string | undefined, expected: string, make: () => T): T {
  try {
    return make();
  } catch (error) {
    throw new ExpungeError('USAGE', `${variable} ${path}: expected ${expected} in PEM (${messageOf(error)})`);
  }
}

/** Returns a function with the result of `read`, or its last result while `read` throws. Throws if the first call does. */
function keepLast<T>(read: () => T): () => T {
  let last = read();
  return () => {
    try {
      last = read();
    } catch {}
    return last;
  };
}
