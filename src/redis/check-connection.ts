import { connect, type Socket } from 'node:net';
import { type PeerCertificate, type TLSSocket, connect as tlsConnect } from 'node:tls';
import type { RedisOptions } from 'ioredis';
import { utcTime } from '../format.ts';
import { isLoopback } from './address.ts';
import { describeRedisError, tlsAdvice } from './errors.ts';
import { firstErrorOf, oneShot } from './probe.ts';
import { type Finding, fail, pass, warn } from './server.ts';

const deadlineMs = 3_000;
const soonMs = 14 * 86_400_000;
const late = new Error(`no answer in ${deadlineMs / 1_000} s`);

/**
 * Connects to a server as a client would and reports each step: whether it is there, what it shows for TLS, whether it takes the
 * login. Ends with the first step that fails, since the next ones could tell nothing. Writes nothing but a PING.
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
  const trouble = await firstOf(socket, 'connect');
  socket.destroy();
  if (trouble)
    return fail('reach', `${where}: ${describeRedisError(trouble)}`, 'check REDIS_URL, and that Redis runs there');
  if (options.path || options.tls || isLoopback(options.host!)) return pass('reach', `${where} is there`);
  return warn('reach', `${where} is there, and everybody between can read along`, 'use rediss://');
}

/** Says hello behind TLS, too: with TLS 1.3 a server tells only then that it wants a certificate from us. */
async function probeTls(options: RedisOptions): Promise<Finding> {
  const socket = tlsConnect({ host: options.host!, port: options.port!, ...options.tls });
  const refused = await firstOf(socket, 'secureConnect');
  const certificate = refused ? null : certificateOf(socket);
  if (!refused) socket.write('PING\r\n');
  const trouble = refused ?? (await firstOf(socket, 'data'));
  socket.destroy();
  if (!trouble) return evaluateCertificate(certificate!, Date.now());
  const said =
    trouble === late
      ? `no handshake in ${deadlineMs / 1_000} s: perhaps it does not speak TLS on this port`
      : describeRedisError(trouble);
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
  const trouble = firstErrorOf(redis);
  try {
    await redis.connect();
    await redis.ping();
    return pass(
      'login',
      `accepted as ${options.username ?? 'default'}${options.password ? '' : ', without a password'}`,
    );
  } catch (error) {
    return failedLogin(describeRedisError(trouble() ?? error));
  } finally {
    redis.disconnect();
  }
}

function failedLogin(words: string): Finding {
  if (words.endsWith('(LOADING)')) return fail('login', words, 'wait until it has');
  if (words.startsWith('WRONGPASS'))
    return fail('login', 'it refuses this user or password', 'check both: in REDIS_URL, or in their files');
  if (words.startsWith('NOAUTH'))
    return fail('login', 'it wants a password, and got none', 'name a file that holds it with --redis-password-file');
  return fail('login', words, null);
}

/** What came first: null for the event, else why it cannot come any more. */
function firstOf(socket: Socket, event: 'connect' | 'secureConnect' | 'data'): Promise<unknown> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, deadlineMs, late);
    const end = (trouble: unknown) => {
      clearTimeout(timer);
      resolve(trouble);
    };
    socket
      .once(event, () => end(null))
      .on('error', end)
      .once('close', () => end(new Error('connection closed')));
  });
}
