import type { Context, Hono } from 'hono';
import { deleteCookie, getCookie, setCookie } from 'hono/cookie';
import { isLoopback } from '../config/parse-url.ts';
import type { Log } from '../logger.ts';
import type { RedisClient } from '../redis/client.ts';
import {
  authenticate,
  type Caller,
  findPersonAddress,
  refuseCrossSite,
  sessionCookieName,
  type TrustedProxy,
} from './access.ts';
import { assetAnswer, readLoginPage } from './assets.ts';
import { LoginLimit } from './login-limit.ts';
import { Problem } from './problem.ts';
import { readText } from './read-body.ts';
import {
  beginSession,
  endSession,
  hashSecret,
  type LoggedIn,
  type Person,
  randomSecret,
  readToken,
  sessionMs,
  toPerson,
} from './token-store.ts';

const onceMs = 10 * 60_000;

/**
 * Logs people in with a token, or with a link that works once, and out again. Sessions of a token are in Redis: every server accepts them, and they
 * end with the token. Sessions of a link are in the memory of this process: they end with it, however it ends, and no other process accepts them.
 */
export class Login {
  readonly #redis: RedisClient;
  readonly #log: Log;
  readonly #proxy: TrustedProxy | null;
  readonly #limit = new LoginLimit(() => performance.now());
  #once: { hash: string; who: Person; until: number } | null = null;
  readonly #linked = new Map<string, { who: Person; until: number }>(); // by the hash of the cookie; each link adds one

  constructor(redis: RedisClient, log: Log, proxy: TrustedProxy | null) {
    this.#redis = redis;
    this.#log = log;
    this.#proxy = proxy;
  }

  /** The path of a link that logs this person in as admin, once and within ten minutes. A new link replaces the last one. */
  newLink(name: string): string {
    const secret = randomSecret();
    this.#once = {
      hash: hashSecret(secret),
      who: { name, role: 'admin', reach: null },
      until: performance.now() + onceMs,
    };
    return `/login?once=${secret}`;
  }

  /** The person who sends a request; null if no one is logged in. */
  caller(context: Context): Promise<Caller | null> {
    const linked = (cookie: string, now: number) => this.#linkedBy(hashSecret(cookie), now);
    return authenticate(context, { redis: this.#redis, proxy: this.#proxy, linked }, Date.now());
  }

  #linkedBy(hash: string, now: number): Person | null {
    const session = this.#linked.get(hash);
    if (session !== undefined && session.until <= now) this.#linked.delete(hash);
    return session !== undefined && session.until > now ? session.who : null;
  }

  serve(app: Hono): void {
    app.get('/login', async (context) => {
      const { once, problem = '', to = '/' } = context.req.query();
      const isLooking = context.req.method === 'HEAD'; // mail and chat programs send HEAD before a person opens the link
      if (once !== undefined && !isLooking) return this.#byLink(context, once);
      const page = await readLoginPage(problem, pagePath(to));
      if (page === null) throw new Problem('not_found', 'there is no /login');
      return assetAnswer(page, context.req.header('if-none-match'));
    });
    app.post('/login', (context) => this.#byToken(context));
    app.post('/logout', async (context) => {
      refuseCrossSite(context, true);
      const caller = await this.caller(context);
      const cookieName = sessionCookieName(context);
      const cookie = getCookie(context, cookieName);
      if (caller !== null && cookie !== undefined && !this.#linked.delete(hashSecret(cookie)))
        await endSession(this.#redis, cookie);
      deleteCookie(context, cookieName, { path: '/' });
      return context.redirect('/login', 303);
    });
  }

  /**
   * Logs in with a link. Failures are not counted: 256 bits cannot be guessed, and a page of any site could lock people out by sending wrong links.
   */
  #byLink(context: Context, secret: string): Response {
    const once = this.#once;
    if (once === null || once.hash !== hashSecret(secret) || performance.now() > once.until)
      return context.redirect('/login?problem=link', 303);
    this.#once = null;
    const cookie = randomSecret();
    this.#linked.set(hashSecret(cookie), { who: once.who, until: Date.now() + sessionMs });
    return this.#enter(context, cookie, '/');
  }

  async #byToken(context: Context): Promise<Response> {
    refuseCrossSite(context, false);
    const address = findPersonAddress(context, this.#proxy);
    const waitSeconds = this.#limit.waitOf(address);
    if (waitSeconds > 0) return this.#refuse(context, '/', { problem: 'busy', seconds: waitSeconds });
    const form = new URLSearchParams(await readText(context));
    const secret = (form.get('token') ?? '').trim();
    const to = pagePath(form.get('to') ?? '/');
    const hash = hashSecret(secret);
    const known = secret === '' ? null : await readToken(this.#redis, hash, Date.now());
    if (known !== null) {
      const who: LoggedIn = { ...toPerson(known), token: hash };
      return this.#enter(context, await beginSession(this.#redis, who), to);
    }
    this.#limit.failed(address);
    this.#log.warn({ address }, 'a login was refused');
    return this.#refuse(context, to, { problem: 'credentials', seconds: 0 });
  }

  #refuse(context: Context, to: string, { problem, seconds }: LoginProblem): Response {
    if (context.req.header('accept')?.includes('text/html')) return context.redirect(loginPath(to, problem), 303);
    if (problem === 'busy')
      throw new Problem('too_many', 'too many failed logins', `try again in ${seconds} s`, { seconds });
    throw new Problem('unauthenticated', 'no such token', (toType) => `${toType('token list')} shows the names of all`);
  }

  #enter(context: Context, cookie: string, to: string): Response {
    const host = new URL(`http://${context.req.header('host') ?? 'localhost'}`).hostname;
    setCookie(context, sessionCookieName(context), cookie, {
      path: '/',
      httpOnly: true,
      sameSite: 'Strict',
      secure: !isLoopback(host),
    });
    return context.redirect(to, 303);
  }
}

type LoginProblem = { problem: 'busy' | 'credentials'; seconds: number };

const here = 'http://here.invalid';

/** The path of a page of this server, with its query; the list of runs for anything else. Pure. */
export function pagePath(to: string): string {
  const url = to.startsWith('/') && URL.canParse(to, here) ? new URL(to, here) : null;
  if (url === null || url.origin !== here || /^\/(login|logout|api)\b/.test(url.pathname)) return '/';
  return url.pathname.startsWith('//') ? '/' : url.pathname + url.search; // after two slashes comes a host
}

/** The path of the login page that leads to a page. Pure. */
export function loginPath(to: string, problem = ''): string {
  const query = new URLSearchParams({ ...(problem && { problem }), ...(pagePath(to) !== '/' && { to: pagePath(to) }) });
  return query.size === 0 ? '/login' : `/login?${query}`;
}
