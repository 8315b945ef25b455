import { Hono, type MiddlewareHandler } from 'hono';
import type { ListenAddress } from '../../config/parse-setting.ts';
import { messageOf } from '../../errors.ts';
import type { Log } from '../../logger.ts';
import type { Target } from '../../model/target.ts';
import type { RedisClient } from '../../redis/client.ts';
import type { Part, Parts } from '../parts.ts';
import type { Service } from '../service.ts';
import { httpPart } from './http-part.ts';
import { type Metrics, openMetrics } from './metrics.ts';
import { openReadiness, type Readiness } from './readiness.ts';
import { type Build, openScrape } from './scrape.ts';

type HttpOptions = {
  build: Build;
  service: Service;
  redis: RedisClient;
  /** Why there is no connection to Redis, if known; '' while there is one. */
  connectionError: () => string;
  target: Target;
  /** The state of the process. */
  state: () => Parts['state'];
  log: Log;
  /** The API and the pages, and who is allowed to scrape. */
  site: Site;
};

/** The site in addition to the probes. `admit` lets a scrape pass, or answers it. */
type Site = { app: Hono; admit: MiddlewareHandler };

/** The part of a worker that serves health checks and metrics at the address. Its start throws USAGE if it cannot listen there. */
export function openHttp(
  address: ListenAddress,
  { build, service, redis, connectionError, target, state, log, site }: HttpOptions,
): Part {
  const clock = () => performance.now();
  const { token, sender } = service;
  const readiness = openReadiness({
    state,
    redis,
    connectionError,
    fp: target.fp,
    token,
    clock,
    writeRejection: () => service.writeRejection,
    hold: () => sender.hold,
    losses: () => service.actions.losses,
  });
  const metrics = openMetrics(openScrape({ build, service, redis, target, clock, now: Date.now }));
  return httpPart(address, createApp({ readiness, metrics, log, site }), {
    flag: '--http',
    onListening: (http) => log.info({ http }, 'listening'),
  });
}

type AppOptions = { readiness: () => Promise<Readiness>; metrics: Metrics; log: Log; site: Site };

/**
 * The HTTP endpoints of a worker. `/healthz`: whether its event loop answers, without Redis, because a restart does not repair Redis. `/readyz`:
 * whether it can delete, with its checks. `/metrics`: Prometheus text.
 */
function createApp({ readiness, metrics, log, site }: AppOptions): Hono {
  const app = new Hono();
  app.use(async (context, next) => {
    await next();
    if (!context.res.headers.has('cache-control')) context.header('cache-control', 'no-store');
  });
  app.get('/healthz', (context) => context.json({ ok: true }));
  app.get('/readyz', async (context) => {
    const found = await readiness();
    return context.json(found, found.ready ? 200 : 503);
  });
  app.get('/metrics', site.admit, async (context) => {
    return context.body(await metrics.text(), 200, { 'content-type': metrics.contentType });
  });
  app.route('/', site.app);
  app.onError((error, context) => {
    log.error({ path: context.req.path, reason: messageOf(error) }, 'a request over HTTP failed');
    return context.json({ error: 'internal error' }, 500);
  });
  return app;
}
