import { Hono } from 'hono';
import { messageOf } from '../../errors.ts';
import type { Log } from '../../logger.ts';
import type { Metrics } from './metrics.ts';
import type { Readiness } from './readiness.ts';

export type AppOptions = { readiness: () => Promise<Readiness>; metrics: Metrics; log: Log };

/**
 * What a worker says over HTTP. `/healthz`: its event loop answers; Redis is never asked, because a restart mends no Redis. `/readyz`: whether it can
 * work, with its checks. `/metrics`: Prometheus text.
 */
export function createApp({ readiness, metrics, log }: AppOptions): Hono {
  const app = new Hono();
  app.use(async (context, next) => {
    await next();
    context.header('cache-control', 'no-store');
  });
  app.get('/healthz', (context) => context.json({ ok: true }));
  app.get('/readyz', async (context) => {
    const found = await readiness();
    return context.json(found, found.ready ? 200 : 503);
  });
  app.get('/metrics', async (context) => {
    return context.body(await metrics.text(), 200, { 'content-type': metrics.contentType });
  });
  app.notFound((context) => context.json({ error: 'not found: there are /healthz, /readyz and /metrics' }, 404));
  app.onError((error, context) => {
    log.error({ path: context.req.path, reason: messageOf(error) }, 'a request over HTTP failed');
    return context.json({ error: 'internal error' }, 500);
  });
  return app;
}
