import { type Context, Hono, type MiddlewareHandler } from 'hono';
import { secureHeaders } from 'hono/secure-headers';
import { ExpungeError } from '../errors.ts';
import { readVersion } from '../version.ts';
import { isOwnName, maxNameLength, refuseCrossSite, requireRole, sessionCookieName } from './access.ts';
import { assetAnswer, readAsset, readPageFile } from './assets.ts';
import { evidenceRoutes } from './evidence-routes.ts';
import { doOnce, type Work } from './idempotency.ts';
import { type Login, loginPath } from './login.ts';
import { describeApi } from './openapi.ts';
import { planRoutes } from './plan-routes.ts';
import { Problem, type ProblemDocument, problemAnswer, problemPage, toProblem } from './problem.ts';
import { refuseBeyondReach } from './reach.ts';
import { readJson } from './read-body.ts';
import { readRoutes } from './read-routes.ts';
import { type ApiDeps, checked, type Route } from './route.ts';
import { runRoutes } from './run-routes.ts';
import { scheduleRoutes } from './schedule-routes.ts';
import { findFields } from './setting-fields.ts';
import { targetRoutes } from './target-routes.ts';

type SiteOptions = ApiDeps & {
  login: Login;
  /** Whether only browsers of this machine are served. Other host names are refused, because anyone can make one lead here. */
  isLocal: boolean;
};

/** Every operation of the API. */
export const routes: readonly Route[] = [
  ...readRoutes,
  ...runRoutes,
  ...targetRoutes,
  ...scheduleRoutes,
  ...planRoutes,
  ...evidenceRoutes,
];

const apiPath = '/api/v1';

/** The API and the pages of the dashboard. Without a login it serves only the login page and the files of the pages. */
export function openSite(options: SiteOptions): Hono {
  const { log, login } = options;
  const app = new Hono();
  app.use(headers());
  app.use(async (context, next) => {
    await next();
    if (!context.res.headers.has('cache-control')) context.header('cache-control', 'no-store');
  });
  if (options.isLocal) app.use(refuseOtherHosts);
  app.onError((error, context) => {
    const { path } = context.req;
    const problem = toProblem(error, log, path);
    const isPage = !path.startsWith('/api/') && context.req.header('accept')?.includes('text/html');
    return isPage ? problemPage(problem) : answerOf(problem);
  });
  for (const route of routes) serve(app, route, options);
  app.get(`${apiPath}/openapi.json`, async (context) => {
    requireRole(context, await login.caller(context), 'read');
    return context.json(describeApi(routes, readVersion(), sessionCookieName(context)));
  });
  for (const path of [...new Set(routes.map(({ path }) => path)), '/openapi.json'])
    refuseOtherMethods(app, path, login);
  app.all(`${apiPath}/*`, async (context) => {
    requireRole(context, await login.caller(context), 'read');
    throw new Problem(
      'not_found',
      `there is no ${context.req.method} ${context.req.path}`,
      'GET /api/v1/openapi.json lists what there is',
    );
  });
  app.get('/assets/*', async (context) => fileOf(context, await readAsset(context.req.path.slice('/assets/'.length))));
  login.serve(app);
  app.get('*', async (context) => {
    const { pathname, search } = new URL(context.req.url);
    if ((await login.caller(context)) === null) return context.redirect(loginPath(pathname + search), 303);
    return fileOf(context, await readPageFile('index.html'));
  });
  app.all('*', (context) => {
    throw new Problem('not_found', `there is no ${context.req.method} ${context.req.path}`);
  });
  return app;
}

/** Refuses other hosts, so that a page of another site cannot make its own name lead to this server and read it. */
const refuseOtherHosts: MiddlewareHandler = async ({ req }, next) => {
  if (isOwnName(req.header('host') ?? '')) return next();
  throw new Problem(
    'wrong_host',
    `expected the address of this machine as Host, got "${req.header('host')?.slice(0, maxNameLength) ?? ''}"`,
    (toType) => `use the address that ${toType('dashboard')} prints`,
  );
};

/** Headers that forbid resources of other origins, inline scripts and styles, and framing. */
function headers() {
  const own = ["'self'"];
  return secureHeaders({
    contentSecurityPolicy: {
      defaultSrc: ["'none'"],
      scriptSrc: own,
      styleSrc: own,
      imgSrc: [...own, 'data:'],
      connectSrc: own,
      fontSrc: own,
      formAction: own,
      baseUri: ["'none'"],
      frameAncestors: ["'none'"],
    },
    xFrameOptions: 'DENY',
    referrerPolicy: 'no-referrer',
    strictTransportSecurity: false, // the proxy that ends TLS decides that
  });
}

function serve(app: Hono, route: Route, options: SiteOptions): void {
  const answer = async (context: Context): Promise<Response> => {
    const caller = await options.login.caller(context);
    const known = requireRole(context, caller, route.role);
    refuseCrossSite(context, known.by !== 'token');
    if (context.req.method === 'HEAD' && route.answer === null)
      return context.body(null, 200, { 'content-type': route.types[0]! }); // the stream would have no reader, and no end
    const query = checked(route.query, context.req.query(), 'query');
    const body = route.body === null ? {} : checked(route.body, await readJson(context), 'body');
    const isStillAllowed = async () => {
      const now = await options.login.caller(context);
      return now !== null && now.name === known.name;
    };
    const params = context.req.param();
    const call = { deps: options, caller: known, params, query, body, context, isStillAllowed, onRun: async () => {} };
    await refuseBeyondReach(route, call);
    if (!route.isCreating) return answerWith(context, await route.handle(call), route.status);
    const work: Work = {
      handle: (onRun) => route.handle({ ...call, onRun }),
      made: (run) => route.made(params, run),
    };
    const bound = (known.reach ?? []).map(({ fp }) => fp); // a new token of that name may have another binding
    const facts = [route.path, query, body, context.req.header('content-length'), ...bound];
    const { answer, isRepeated } = await doOnce(context, options.session.redis, known, facts, work);
    if (isRepeated) context.header('idempotency-replayed', 'true');
    return answerWith(context, answer, route.status);
  };
  app.on(route.method.toUpperCase(), servedAt(route.path), (context) =>
    answer(context).catch((error) => {
      if (!(error instanceof ExpungeError)) throw error;
      return answerOf(withFields(toProblem(error, options.log, context.req.path), route));
    }),
  );
}

/** Answers any other method of this path with the list of its methods. HEAD is GET without a body. */
function refuseOtherMethods(app: Hono, path: string, login: Login): void {
  const own = routes.filter((route) => route.path === path).map(({ method }) => method);
  const methods = own.length === 0 ? ['get' as const] : own;
  const allow = methods.flatMap((method) => (method === 'get' ? ['GET', 'HEAD'] : [method.toUpperCase()])).join(', ');
  app.all(servedAt(path), async (context) => {
    requireRole(context, await login.caller(context), 'read');
    const { method } = context.req;
    throw new Problem('method_not_allowed', `${apiPath}${path} takes ${allow}, not ${method}`, null, { allow });
  });
}

function servedAt(path: string): string {
  return apiPath + path.replace(/\{(\w+)\}/g, ':$1');
}

/** The problem with the fields of the route added for the flags that the text names. */
function withFields(problem: ProblemDocument, { query, body }: Route): ProblemDocument {
  const fields = findFields(`${problem.detail} ${problem.next ?? ''}`, body === null ? [query] : [query, body]);
  return fields.length === 0 ? problem : { ...problem, fields };
}

function answerWith(context: Context, answer: unknown, status: 200 | 201): Response {
  return answer instanceof Response ? answer : context.json(answer as object, status);
}

function fileOf(context: Context, asset: Awaited<ReturnType<typeof readPageFile>>): Response {
  if (asset === null) throw new Problem('not_found', `there is no ${context.req.path}`);
  return assetAnswer(asset, context.req.header('if-none-match'));
}

function answerOf(problem: ReturnType<typeof toProblem>): Response {
  const { status, seconds, allow } = problem as { status: number; seconds?: number; allow?: string };
  return problemAnswer(problem, {
    ...(status === 401 && { 'www-authenticate': 'Bearer' }),
    ...(seconds !== undefined && { 'retry-after': String(seconds) }),
    ...(allow !== undefined && { allow }),
  });
}
