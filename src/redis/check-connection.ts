import { connect, type Socket } from 'node:net';
import { type PeerCertificate, type TLSSocket, connect as tlsConnect } from 'node:tls';
import type { RedisOptions } from 'ioredis';
import { utcTime } from '../format.ts';
import { isLoopback } from './address.ts';
import { describeRedisError, tlsAdvice } from './errors.ts';
import { oneShot, watchFirstError } from './probe.ts';
import { type Finding, fail, pass, warn } from './server.ts';

const deadlineMs = 3_000;
const soonMs = 14 * 86_400_000;
const late = new Error(`no answer in ${deadlineMs / 1_000} s`);

/**
 * Connects to a server as a client does and reports each step: the connection, its TLS certificate, the login. Ends with the first step that fails.
 * Sends nothing but the login and a PING; never throws.
 */
export async function* probeConnection(options: RedisOptions): AsyncGenerator<Finding> {
  const steps = [probeAddress, ...(options.tls ? [probeTls] : []), probeLogin];
  for (const step of steps) {
    const finding = await step(options);
    yield finding;
    if (finding.state === 'fail') return;
  }
}

async function probeAddress(options: RedisOptions): Promise<Finding> {
  const where = options.path ?? `${options.host}:${options.port}`;
  const socket = options.path ? connect(options.path) : connect({ host: options.host!, port: options.port! });
  const error = await firstOf(socket, 'connect');
  socket.destroy();
  if (error)
    return fail('reach', `${where}: ${describeRedisError(error)}`, 'check REDIS_URL, and that Redis runs there');
  if (options.path || options.tls || isLoopback(options.host!)) return pass('reach', `${where} accepts connections`);
  return warn('reach', `${where} accepts connections, but without encryption`, 'use rediss://');
}

/** Sends a PING after the handshake: with TLS 1.3 a server reports only then that it requires a client certificate. */
async function probeTls(options: RedisOptions): Promise<Finding> {
  const socket = tlsConnect({ host: options.host!, port: options.port!, ...options.tls });
  const handshakeError = await firstOf(socket, 'secureConnect');
  const certificate = handshakeError ? null : certificateOf(socket);
  if (!handshakeError) socket.write('PING\r\n');
  const error = handshakeError ?? (await firstOf(socket, 'data'));
  socket.destroy();
  if (!error) return evaluateCertificate(certificate!, Date.now());
  const said =
    error === late
      ? `no handshake in ${deadlineMs / 1_000} s: perhaps it does not speak TLS on this port`
      : describeRedisError(error);
  const words =
    certificate && !tlsAdvice(said)
      ? `it breaks off after the handshake (${said}): perhaps it wants a certificate from us`
      : said;
  return fail('tls', words, tlsAdvice(words));
}

type ServerCertificate = { protocol: string; name: string; by: string; until: string };

function certificateOf(socket: TLSSocket): ServerCertificate {
  const { subject, issuer, valid_to: until } = socket.getPeerCertificate() as Partial<PeerCertificate>;
  const name = (party: PeerCertificate['subject'] | undefined) => String(party?.CN ?? party?.O ?? 'an unnamed party');
  return { protocol: socket.getProtocol() ?? 'TLS', name: name(subject), by: name(issuer), until: until ?? '' };
}

function evaluateCertificate({ protocol, name, by, until }: ServerCertificate, now: number): Finding {
  const ends = Date.parse(until);
  const words = `${protocol}, verified: the certificate of ${name}, signed by ${by}, until ${utcTime(ends, 'day')}`;
  return ends - now > soonMs ? pass('tls', words) : warn('tls', words, 'have it renewed soon');
}

async function probeLogin(options: RedisOptions): Promise<Finding> {
  const redis = oneShot(options, 'check');
  const firstError = watchFirstError(redis);
  try {
    await redis.connect();
    await redis.ping();
    return pass(
      'login',
      `accepted as ${options.username ?? 'default'}${options.password ? '' : ', without a password'}`,
    );
  } catch (error) {
    return failedLogin(describeRedisError(firstError() ?? error));
  } finally {
    redis.disconnect();
  }
}

function failedLogin(words: string): Finding {
  if (words.endsWith('(LOADING)')) return fail('login', words, 'wait until it has');
  if (words.startsWith('WRONGPASS'))
    return fail('login', 'it refuses this user or password', 'check both: in REDIS_URL, or in their files');
  if (words.startsWith('NOAUTH'))
    return fail(
      'login',
      'it wants a password, and got none',
      'name a file that holds it in EXPUNGE_REDIS_PASSWORD_FILE',
    );
  return fail('login', words, null);
}

/** Waits for the event, and returns null when it comes, or the first error if one comes before it. */
function firstOf(socket: Socket, event: 'connect' | 'secureConnect' | 'data'): Promise<unknown> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, deadlineMs, late);
    const end = (error: unknown) => {
      clearTimeout(timer);
      resolve(error);
    };
    socket
      .once(event, () => end(null))
      .on('error', end)
      .once('close', () => end(new Error('connection closed')));
  });
}
