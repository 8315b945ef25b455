import type { Context, Hono } from 'hono';
import { deleteCookie, getCookie, setCookie } from 'hono/cookie';
import { isLoopback } from '../config/parse-setting.ts';
import type { Log } from '../logger.ts';
import type { RedisClient } from '../redis/client.ts';
import { addressOf, type Caller, cookieName, refuseCrossSite } from './access.ts';
import { assetAnswer, readPageFile } from './assets.ts';
import { LoginLimit } from './login-limit.ts';
import { Problem } from './problem.ts';
import { readText } from './read-body.ts';
import { beginSession, endSession, hashOf, type LoggedIn, randomSecret, readToken } from './token-store.ts';

type FindCaller = (context: Context) => Promise<Caller | null>;

const onceMs = 10 * 60_000;

/** Logs in by a token, or by a link that works once, and out again. */
export class Login {
  readonly #redis: RedisClient;
  readonly #log: Log;
  readonly #limit = new LoginLimit(() => performance.now());
  #once: { hash: string; who: LoggedIn; until: number } | null = null;
  readonly #linked: string[] = []; // cookies of sessions that began with a link

  constructor(redis: RedisClient, log: Log) {
    this.#redis = redis;
    this.#log = log;
  }

  /** The path of a link that logs this person in as admin, once and within ten minutes. A new one replaces the last. */
  newLink(name: string): string {
    const secret = randomSecret();
    const who: LoggedIn = { name, role: 'admin', token: '' };
    this.#once = { hash: hashOf(secret), who, until: performance.now() + onceMs };
    return `/login?once=${secret}`;
  }

  /** Ends the sessions that began with a link: no token can be revoked to end them. */
  async endLinked(): Promise<void> {
    await Promise.all(this.#linked.map((cookie) => endSession(this.#redis, cookie)));
  }

  serve(app: Hono, findCaller: FindCaller): void {
    app.get('/login', async (context) => {
      const once = context.req.query('once');
      if (once !== undefined) return this.#byLink(context, once);
      const page = await readPageFile('login.html');
      if (page === null) throw new Problem('not_found', 'there is no /login');
      return assetAnswer(page, context.req.header('if-none-match'));
    });
    app.post('/login', (context) => this.#byToken(context));
    app.post('/logout', async (context) => {
      refuseCrossSite(context, true);
      const caller = await findCaller(context);
      const cookie = getCookie(context, cookieName);
      if (caller !== null && cookie !== undefined) await endSession(this.#redis, cookie);
      deleteCookie(context, cookieName, { path: '/' });
      return context.redirect('/login', 303);
    });
  }

  async #byLink(context: Context, secret: string): Promise<Response> {
    const once = this.#once;
    if (this.#limit.waitOf(addressOf(context)) > 0) return context.redirect('/login?problem=busy', 303);
    if (once === null || once.hash !== hashOf(secret) || performance.now() > once.until) {
      this.#limit.failed(addressOf(context));
      return context.redirect('/login?problem=link', 303);
    }
    this.#once = null;
    const cookie = await beginSession(this.#redis, once.who);
    this.#linked.push(cookie);
    return this.#enter(context, cookie);
  }

  async #byToken(context: Context): Promise<Response> {
    refuseCrossSite(context, false);
    const address = addressOf(context);
    const waitSeconds = this.#limit.waitOf(address);
    if (waitSeconds > 0) return this.#refuse(context, 'busy', waitSeconds);
    const secret = (new URLSearchParams(await readText(context)).get('token') ?? '').trim();
    const hash = hashOf(secret);
    const known = secret === '' ? null : await readToken(this.#redis, hash, Date.now());
    if (known !== null) {
      const who: LoggedIn = { name: known.name, role: known.role, token: hash };
      return this.#enter(context, await beginSession(this.#redis, who));
    }
    this.#limit.failed(address);
    this.#log.warn({ address }, 'a login was refused');
    return this.#refuse(context, 'credentials', 0);
  }

  #refuse(context: Context, problem: 'busy' | 'credentials', seconds: number): Response {
    if (context.req.header('accept')?.includes('text/html')) return context.redirect(`/login?problem=${problem}`, 303);
    if (problem === 'busy')
      throw new Problem('too_many', 'too many failed logins', `try again in ${seconds} s`, { seconds });
    throw new Problem('unauthenticated', 'no such token', 'expunge token list shows the names of all');
  }

  #enter(context: Context, cookie: string): Response {
    const host = new URL(`http://${context.req.header('host') ?? 'localhost'}`).hostname;
    setCookie(context, cookieName, cookie, {
      ...{ path: '/', httpOnly: true, sameSite: 'Strict', secure: !isLoopback(host) },
    });
    return context.redirect('/', 303);
  }
}
