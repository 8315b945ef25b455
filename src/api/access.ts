import { BlockList, isIP, type Socket } from 'node:net';
import type { Context } from 'hono';
import { getCookie } from 'hono/cookie';
import { isLoopback } from '../config/parse-url.ts';
import { noteMember } from '../http/strangers.ts';
import { statedName } from '../model/person.ts';
import { mayAct, type Role, roles } from '../model/role.ts';
import type { RedisClient } from '../redis/client.ts';
import { inTime, Problem } from './problem.ts';
import { hashSecret, type Person, readSession, readToken, toPerson } from './token-store.ts';

/** The person who sends a request, and how they proved who they are. */
export type Caller = Person & { by: 'token' | 'session' | 'proxy' };

/**
 * A proxy that authenticates people and names them in a header. `hosts`: the names under which it is reached; [] = none are stated. `role`: for a
 * person whose groups have no role; null = such a person is refused.
 */
export type TrustedProxy = {
  header: string;
  role: Role | null;
  groups: GroupRoles | null;
  hosts: readonly string[];
  isTrusted(address: string): boolean;
};

/** The header in which a proxy names groups, and the role of each group. */
export type GroupRoles = { header: string; roles: ReadonlyMap<string, Role> };

const sessionCookie = 'expunge_session';
export const maxNameLength = 100;
const maxSecretLength = 200;
const maxWaitMs = 3_000;

/** The parts that identify a person. `linked`: finds the person with a cookie from a link of this process, which no other process accepts. */
type Authority = {
  redis: RedisClient;
  proxy: TrustedProxy | null;
  linked(cookie: string, now: number): Person | null;
};

/**
 * The person who sends a request, identified by a token, a trusted proxy, or a session; null if no one is logged in. Throws `unavailable` if Redis
 * does not answer in time.
 */
export async function authenticate(context: Context, authority: Authority, now: number): Promise<Caller | null> {
  const late = new Problem('unavailable', 'Redis does not answer', 'try it again soon');
  const caller = await inTime(maxWaitMs, findCaller(context, authority, now), late);
  const { incoming } = connectionOf(context);
  if (caller !== null && incoming?.socket !== undefined) noteMember(incoming.socket);
  return caller;
}

/** The connection of a request; empty in tests without one. */
function connectionOf(context: Context): { incoming?: { socket?: Socket } } {
  return context.env ?? {};
}

async function findCaller(context: Context, { redis, proxy, linked }: Authority, now: number): Promise<Caller | null> {
  const token = tokenIn(context);
  if (token !== undefined) {
    const known = token.length > maxSecretLength ? null : await readToken(redis, hashSecret(token), now);
    return known && { ...toPerson(known), by: 'token' };
  }
  const named = proxy === null ? '' : (context.req.header(proxy.header) ?? '').trim();
  if (proxy !== null && named !== '' && proxy.isTrusted(addressOf(context))) {
    refuseOtherNames(context, proxy);
    const name = statedName(named);
    return { name, role: roleAt(proxy, name, context), reach: null, by: 'proxy' };
  }
  const cookie = getCookie(context, sessionCookieName(context));
  if (cookie === undefined || cookie.length > maxSecretLength) return null;
  const session = linked(cookie, now) ?? (await readSession(redis, cookie, now));
  return session && { ...toPerson(session), by: 'session' };
}

function tokenIn({ req }: Context): string | undefined {
  return /^Bearer +(\S+)$/i.exec(req.header('authorization') ?? '')?.[1];
}

/** The role of a person at the proxy. Throws forbidden if none of their groups has one. */
function roleAt({ role, groups }: TrustedProxy, name: string, { req }: Context): Role {
  const found = groups === null ? role : (highestRole(groups.roles, req.header(groups.header) ?? '') ?? role);
  if (found !== null) return found;
  throw new Problem(
    'forbidden',
    `${name} is in no group that is allowed to use this server, by the header ${groups?.header}`,
    'start the worker with EXPUNGE_TRUST_PROXY_GROUP_ROLES for one of their groups, or EXPUNGE_TRUST_PROXY_ROLE for everyone',
  );
}

/** The highest role of these comma-separated groups; null if none of them has a role. Pure. */
function highestRole(known: ReadonlyMap<string, Role>, groups: string): Role | null {
  const found = new Set(groups.split(',').map((group) => known.get(group.trim())));
  return roles.findLast((role) => found.has(role)) ?? null;
}

/** Throws wrong_host for a request that may come from a page whose name leads here, and not from the proxy. */
function refuseOtherNames(context: Context, proxy: TrustedProxy): void {
  const host = context.req.header('host') ?? '';
  if (isNameOfProxy(proxy.hosts, addressOf(context), host)) return;
  throw new Problem(
    'wrong_host',
    `expected a Host that is a name of the trusted proxy, got "${host.slice(0, maxNameLength)}"`,
    'start the worker with the name that people open in EXPUNGE_TRUST_PROXY_HOST, and let the proxy pass on their Host',
  );
}

const isOwnAddress = addressFilter(['127.0.0.0/8', '::1']);

/**
 * Whether a proxy at this address would send this Host. A page of any site can make its own name lead to this machine, and then send every header. So
 * a proxy on this machine is trusted only for its stated names, or for the names of this machine if none are stated. Pure.
 */
export function isNameOfProxy(hosts: readonly string[], address: string, host: string): boolean {
  const name = parseHostName(host);
  if (hosts.length > 0) return name !== null && hosts.includes(name);
  return !isOwnAddress(address) || isOwnName(host);
}

/**
 * Whether a Host is a name of this machine. A name that only resolves to it does not count: a page of another site can make its own name do so, and
 * then read the answers.
 */
export function isOwnName(host: string): boolean {
  const name = parseHostName(host);
  return name !== null && isLoopback(name);
}

/** The name in `name:port`, in the form of a URL; null if there is none. */
export function parseHostName(host: string): string | null {
  return urlOf(host)?.hostname ?? null;
}

function urlOf(host: string): URL | null {
  return /^[^/?#@\s]+$/.test(host) && URL.canParse(`http://${host}`) ? new URL(`http://${host}`) : null;
}

/**
 * The name of the cookie of a session, with the port that the browser asks unless that is the usual one: browsers send a cookie to all ports of a
 * name, and two dashboards on one machine would log each other out.
 */
export function sessionCookieName({ req }: Context): string {
  const port = urlOf(req.header('host') ?? '')?.port ?? '';
  return port === '' ? sessionCookie : `${sessionCookie}_${port}`;
}

/** Throws if no one is logged in, or the role of the caller is not enough. */
export function requireRole(context: Context, caller: Caller | null, needed: Role): Caller {
  if (caller === null)
    throw new Problem(
      'unauthenticated',
      whyUnknown(context),
      (toType) => `log in, or send Authorization: Bearer TOKEN; ${toType('token add', 'NAME')} makes one`,
    );
  if (mayAct(caller.role, needed)) return caller;
  throw new Problem(
    'forbidden',
    `${caller.name} has the role "${caller.role}", but this request requires "${needed}"`,
    null,
  );
}

/** Says why a request has no caller: its token or session is unknown, or it has neither. */
function whyUnknown(context: Context): string {
  if (tokenIn(context) !== undefined)
    return 'this server does not know the token: it was mistyped or revoked, or it has expired';
  if (getCookie(context, sessionCookieName(context)) !== undefined) return 'the session has ended';
  return 'expected a token or a session, got none';
}

/** The address that a request came from; '' without a connection, as in tests. */
function addressOf(context: Context): string {
  const { incoming } = connectionOf(context);
  return (incoming?.socket?.remoteAddress ?? '').replace(/^::ffff:/, '');
}

/**
 * The address of the person behind a request: the address of the connection or, behind a trusted proxy, the last address in X-Forwarded-For that is
 * not a trusted proxy itself.
 */
export function findPersonAddress(context: Context, proxy: TrustedProxy | null): string {
  const address = addressOf(context);
  if (proxy === null || !proxy.isTrusted(address)) return address;
  return lastForwarded(context.req.header('x-forwarded-for') ?? '', proxy.isTrusted) ?? address;
}

const maxHops = 10;

/** The last untrusted address in the header; null if there is none. Earlier addresses may be made up by the sender. Pure. */
export function lastForwarded(header: string, isTrusted: (address: string) => boolean): string | null {
  const hops = header.split(',').slice(-maxHops).reverse();
  for (const hop of hops) {
    const address = hop
      .trim()
      .replace(/^(\d+(?:\.\d+){3}):\d+$/, '$1')
      .replace(/^\[(.*)\](:\d+)?$/, '$1');
    if (isIP(address) === 0) return null;
    if (!isTrusted(address)) return address;
  }
  return null;
}

/** What the headers of a request say about the page that sent it. */
export type Sender = { method: string; site: string | null; origin: string | null; host: string; isAmbient: boolean };

/**
 * Why a request is refused because it comes from another site; null if it is accepted. `isAmbient`: the browser adds the credentials by itself, so it
 * must also say that a page of this server sends the request. `hono/csrf` is more lenient: it checks only the content types of forms, and accepts a
 * request if one of the two headers fits. It also compares the scheme, which is another one behind a proxy that ends TLS. Pure.
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

/** Does the same for a request; throws cross_site. */
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

/**
 * Returns a function that checks whether an address is among these: single addresses, and networks like 10.0.0.0/8. Throws an Error for any other
 * text.
 */
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
