import { BlockList, isIP } from 'node:net';
import type { Context } from 'hono';
import { getCookie } from 'hono/cookie';
import type { RedisClient } from '../redis/client.ts';
import { inTime, Problem } from './problem.ts';
import { hashOf, mayAct, type Role, readSession, readToken } from './token-store.ts';

/** Who asks, and how they showed it. */
export type Caller = { name: string; role: Role; by: 'token' | 'session' | 'proxy' };

/** A proxy that has checked who somebody is, and names them in a header. */
export type TrustedProxy = { header: string; role: Role; isTrusted(address: string): boolean };

export const cookieName = 'expunge_session';
const longestName = 100;
const longestSecret = 200;
const longestWaitMs = 3_000;

/** Who sends a request: by a token, by a trusted proxy, or by a session; null for nobody. Throws `unavailable` if Redis does not say so in time. */
export async function authenticate(
  context: Context,
  redis: RedisClient,
  proxy: TrustedProxy | null,
  now: number,
): Promise<Caller | null> {
  const late = new Problem('unavailable', 'Redis does not answer', 'try it again soon');
  return inTime(longestWaitMs, findCaller(context, redis, proxy, now), late);
}

async function findCaller(
  context: Context,
  redis: RedisClient,
  proxy: TrustedProxy | null,
  now: number,
): Promise<Caller | null> {
  const [, token] = /^Bearer +(\S+)$/i.exec(context.req.header('authorization') ?? '') ?? [];
  if (token !== undefined) {
    const known = token.length > longestSecret ? null : await readToken(redis, hashOf(token), now);
    return known && { name: known.name, role: known.role, by: 'token' };
  }
  const named = proxy === null ? '' : (context.req.header(proxy.header) ?? '').trim();
  if (proxy !== null && named !== '' && proxy.isTrusted(addressOf(context)))
    return { name: plainName(named), role: proxy.role, by: 'proxy' };
  const cookie = getCookie(context, cookieName);
  if (cookie === undefined || cookie.length > longestSecret) return null;
  const session = await readSession(redis, cookie, now);
  return session && { name: session.name, role: session.role, by: 'session' };
}

function plainName(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}]+/gu, ' ').slice(0, longestName);
}

/** Throws where nobody is logged in, or somebody whose role is not enough. */
export function requireRole(caller: Caller | null, needed: Role): Caller {
  if (caller === null)
    throw new Problem(
      'unauthenticated',
      'expected a token or a session, got none that is valid',
      'log in, or send Authorization: Bearer TOKEN; expunge token add NAME makes one',
    );
  if (mayAct(caller.role, needed)) return caller;
  throw new Problem('forbidden', `expected the role ${needed}, ${caller.name} has ${caller.role}`, null);
}

/** The address that a request came from; '' where there is no connection, as in tests. */
export function addressOf(context: Context): string {
  const { incoming } = (context.env ?? {}) as { incoming?: { socket?: { remoteAddress?: string } } };
  return (incoming?.socket?.remoteAddress ?? '').replace(/^::ffff:/, '');
}

/** What the headers of a request say about the page that sent it. */
export type Sender = { method: string; site: string | null; origin: string | null; host: string; isAmbient: boolean };

/**
 * Why a request is refused as one of another site; null if it may go on. `isAmbient`: the browser adds what shows who asks by itself, so it
 * has to say that a page of this server asks. Pure.
 */
export function crossSiteReason({ method, site, origin, host, isAmbient }: Sender): string | null {
  if (method === 'GET' || method === 'HEAD') return null;
  if (site !== null && site !== 'same-origin') return `Sec-Fetch-Site is ${site}, expected same-origin`;
  if (origin !== null && hostOf(origin) !== host) return `Origin is not of ${host}`;
  if (isAmbient && site === null && origin === null) return 'expected Origin or Sec-Fetch-Site, got neither';
  return null;
}

function hostOf(origin: string): string | null {
  return URL.canParse(origin) ? new URL(origin).host : null;
}

/** The same of a request; throws cross_site. */
export function refuseCrossSite({ req }: Context, isAmbient: boolean): void {
  const reason = crossSiteReason({
    method: req.method,
    site: req.header('sec-fetch-site') ?? null,
    origin: req.header('origin') ?? null,
    host: req.header('host') ?? new URL(req.url).host,
    isAmbient,
  });
  if (reason !== null) throw new Problem('cross_site', reason, 'send it from a page of this server, or with a token');
}

/** Whether an address is among these: single ones, and networks like 10.0.0.0/8. Throws an Error for a text that is none. */
export function addressFilter(texts: readonly string[]): (address: string) => boolean {
  const list = new BlockList();
  for (const text of texts) {
    const [address = '', bits] = text.split('/');
    const kind = isIP(address) === 6 ? 'ipv6' : 'ipv4';
    const isNetwork = bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= (kind === 'ipv6' ? 128 : 32));
    if (isIP(address) === 0 || !isNetwork)
      throw new Error(`"${text}": expected an address like 10.0.0.7 or a network like 10.0.0.0/8`);
    if (bits === undefined) list.addAddress(address, kind);
    else list.addSubnet(address, Number(bits), kind);
  }
  return (address) => isIP(address) !== 0 && list.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4');
}
