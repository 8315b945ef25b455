import { connect, type Socket } from 'node:net';
import { type PeerCertificate, type TLSSocket, connect as tlsConnect } from 'node:tls';
import type { RedisOptions } from 'ioredis';
import { isLoopback } from './address.ts';
import { redisWords, tlsAdvice } from './errors.ts';
import { firstTroubleOf, oneShot } from './probe.ts';
import { doubtful, type Finding, fine, wrong } from './server.ts';

const deadlineMs = 3_000;
const soonMs = 14 * 86_400_000;
const late = new Error(`no answer in ${deadlineMs / 1_000} s`);

/**
 * Comes to a server as a client would and tells what it meets, step by step: whether it is there, what it shows for TLS, whether it takes the
 * login. Ends with the first step that fails, since the next ones could tell nothing. Writes nothing but a PING.
 */
export async function* knock(options: RedisOptions): AsyncGenerator<Finding> {
  const steps = [reach, ...(options.tls ? [shakeHands] : []), logIn];
  for (const step of steps) {
    const finding = await step(options);
    yield finding;
    if (finding.state === 'wrong') return;
  }
}

async function reach(options: RedisOptions): Promise<Finding> {
  const where = options.path ?? `${options.host}:${options.port}`;
  const socket = options.path ? connect(options.path) : connect({ host: options.host!, port: options.port! });
  const trouble = await firstOf(socket, 'connect');
  socket.destroy();
  if (trouble) return wrong('reach', `${where}: ${redisWords(trouble)}`, 'check REDIS_URL, and that Redis runs there');
  if (options.path || options.tls || isLoopback(options.host!)) return fine('reach', `${where} is there`);
  return doubtful('reach', `${where} is there, and everybody between can read along`, 'use rediss://');
}

/** Says hello behind TLS, too: with TLS 1.3 a server tells only then that it wants a certificate from us. */
async function shakeHands(options: RedisOptions): Promise<Finding> {
  const socket = tlsConnect({ host: options.host!, port: options.port!, ...options.tls });
  const refused = await firstOf(socket, 'secureConnect');
  const shown = refused ? null : shownBy(socket);
  if (!refused) socket.write('PING\r\n');
  const trouble = refused ?? (await firstOf(socket, 'data'));
  socket.destroy();
  if (!trouble) return judgeShown(shown!, Date.now());
  const said =
    trouble === late
      ? `no handshake in ${deadlineMs / 1_000} s: perhaps it does not speak TLS on this port`
      : redisWords(trouble);
  const words =
    shown && !tlsAdvice(said)
      ? `it breaks off after the handshake (${said}): perhaps it wants a certificate from us`
      : said;
  return wrong('tls', words, tlsAdvice(words));
}

type Shown = { protocol: string; name: string; by: string; until: string };

function shownBy(socket: TLSSocket): Shown {
  const { subject, issuer, valid_to: until } = socket.getPeerCertificate() as Partial<PeerCertificate>;
  const name = (party: PeerCertificate['subject'] | undefined) => String(party?.CN ?? party?.O ?? 'somebody unnamed');
  return { protocol: socket.getProtocol() ?? 'TLS', name: name(subject), by: name(issuer), until: until ?? '' };
}

function judgeShown({ protocol, name, by, until }: Shown, now: number): Finding {
  const ends = Date.parse(until);
  const words = `${protocol}, verified: the certificate of ${name}, signed by ${by}, until ${new Date(ends).toISOString().slice(0, 10)}`;
  return ends - now > soonMs ? fine('tls', words) : doubtful('tls', words, 'have it renewed soon');
}

async function logIn(options: RedisOptions): Promise<Finding> {
  const redis = oneShot(options, 'check');
  const trouble = firstTroubleOf(redis);
  try {
    await redis.connect();
    await redis.ping();
    return fine(
      'login',
      `accepted as ${options.username ?? 'default'}${options.password ? '' : ', without a password'}`,
    );
  } catch (error) {
    return refusedLogin(redisWords(trouble() ?? error));
  } finally {
    redis.disconnect();
  }
}

function refusedLogin(words: string): Finding {
  if (words.endsWith('(LOADING)')) return wrong('login', words, 'wait until it has');
  if (words.startsWith('WRONGPASS'))
    return wrong('login', 'it refuses this user or password', 'check both: in REDIS_URL, or in their files');
  if (words.startsWith('NOAUTH'))
    return wrong('login', 'it wants a password, and got none', 'name a file that holds it with --redis-password-file');
  return wrong('login', words, null);
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
