import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { RedisOptions } from 'ioredis';
import { type RedisProcess, startRedisProcess } from './redis-process.ts';

type AtEnd = (task: () => Promise<void>) => void;

/** Paths of a certificate and its key. */
export type KeyPair = { cert: string; key: string };

/** An authority and what it has signed, as files. */
export type Certificates = {
  ca: string;
  server: KeyPair;
  client: KeyPair;
  /** For a name that no test connects to. */
  otherName: KeyPair;
  expired: KeyPair;
  /** An authority that has signed none of these. */
  otherCa: string;
};

/** True where certificates can be made; else says on the console why not. */
export function hasOpenssl(): boolean {
  try {
    execFileSync('openssl', ['version'], { stdio: 'ignore' });
    return true;
  } catch {
    console.log('skipped: there is no openssl on this machine');
    return false;
  }
}

const here = 'IP:127.0.0.1,DNS:localhost';

/** Certificates of a new authority, which nobody trusts who is not told to. */
export function makeCertificates(atEnd: AtEnd): Certificates {
  const folder = mkdtempSync(join(tmpdir(), 'expunge-tls-'));
  atEnd(async () => rmSync(folder, { recursive: true, force: true }));
  const ca = makeAuthority(folder, 'ca');
  const signed = (name: string, names: string, days = 2) => sign(folder, ca, name, names, days);
  return {
    ca: ca.cert,
    server: signed('server', here),
    client: signed('client', 'DNS:client.example'),
    otherName: signed('other-name', 'DNS:redis.example'),
    expired: signed('expired', here, 0),
    otherCa: makeAuthority(folder, 'other-ca').cert,
  };
}

export type TlsRedisOptions = {
  /** What it shows; its server certificate by default. */
  shows?: KeyPair;
  /** Whether clients must show one of the same authority. */
  wantsClientCertificate?: boolean;
  args?: string[];
  login?: Pick<RedisOptions, 'username' | 'password'>;
};

/** A Redis that speaks nothing but TLS, at 127.0.0.1. */
export function startTlsRedis(atEnd: AtEnd, made: Certificates, options: TlsRedisOptions = {}): Promise<RedisProcess> {
  const { args = [], login } = options;
  return startRedisProcess(atEnd, {
    args: (port) => [...tlsArguments(port, made, options), ...args],
    login: { ...login, tls: clientOf(made) },
  });
}

/** With these a server speaks nothing but TLS, to other servers as well. */
export function tlsArguments(
  port: number,
  made: Certificates,
  {
    shows = made.server,
    wantsClientCertificate = false,
  }: Pick<TlsRedisOptions, 'shows' | 'wantsClientCertificate'> = {},
): string[] {
  const certificate = ['--tls-cert-file', shows.cert, '--tls-key-file', shows.key, '--tls-ca-cert-file', made.ca];
  const demand = ['--tls-auth-clients', wantsClientCertificate ? 'yes' : 'no', '--tls-replication', 'yes'];
  return ['--port', '0', '--tls-port', String(port), ...certificate, ...demand];
}

/** A client that every such server takes, and that takes every one: it may show a bad certificate on purpose. */
export function clientOf({ client }: Certificates): RedisOptions['tls'] {
  return { ...readPair(client), rejectUnauthorized: false };
}

function readPair({ cert, key }: KeyPair) {
  return { cert: readFileSync(cert), key: readFileSync(key) };
}

function makeAuthority(folder: string, name: string): KeyPair {
  const pair = pairOf(folder, name);
  openssl(['req', '-x509', ...newKey(pair.key), '-out', pair.cert, '-days', '2', '-subj', `/CN=expunge test ${name}`]);
  return pair;
}

function sign(folder: string, ca: KeyPair, name: string, names: string, days: number): KeyPair {
  const pair = pairOf(folder, name);
  const [request, extensions] = [join(folder, `${name}.csr`), join(folder, `${name}.ext`)];
  writeFileSync(extensions, `subjectAltName=${names}\n`);
  openssl(['req', ...newKey(pair.key), '-out', request, '-subj', `/CN=${name}`]);
  const by = ['-CA', ca.cert, '-CAkey', ca.key, '-CAcreateserial', '-days', String(days), '-extfile', extensions];
  openssl(['x509', '-req', '-in', request, '-out', pair.cert, ...by]);
  return pair;
}

function pairOf(folder: string, name: string): KeyPair {
  return { cert: join(folder, `${name}.crt`), key: join(folder, `${name}.key`) };
}

function newKey(path: string): string[] {
  return ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-keyout', path];
}

function openssl(args: string[]): void {
  execFileSync('openssl', args, { stdio: 'pipe' });
}
