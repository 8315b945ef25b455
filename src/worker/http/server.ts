import { once } from 'node:events';
import type { AddressInfo, Server } from 'node:net';
import { createAdaptorServer } from '@hono/node-server';
import { Hono } from 'hono';
import { type ListenAddress, listenText } from '../../config/parse-setting.ts';
import { ExpungeError, messageOf } from '../../errors.ts';
import type { Log } from '../../logger.ts';
import { sharedQueueName } from '../../queue/queue.ts';
import type { RedisClient } from '../../redis/client.ts';
import { explainListenError } from '../../system-errors.ts';
import type { Part, Parts } from '../parts.ts';
import type { Service } from '../service.ts';
import { type Metrics, openMetrics } from './metrics.ts';
import { openReadiness, type Readiness } from './readiness.ts';
import { type Build, openScrape } from './scrape.ts';

export type HttpOptions = {
  build: Build;
  service: Service;
  redis: RedisClient;
  /** Why there is no connection to Redis, if that is known; '' while there is one. */
  connectionError: () => string;
  fp: string;
  /** The state of the process. */
  state: () => Parts['state'];
  log: Log;
};

/** The part of a worker that serves health checks and metrics at the address. Its start throws USAGE if it cannot listen there. */
export function openHttp(
  address: ListenAddress,
  { build, service, redis, connectionError, fp, state, log }: HttpOptions,
): Part {
  const clock = () => performance.now();
  const { token, senders } = service;
  const readiness = openReadiness({
    ...{ state, redis, connectionError, fp, token, clock },
    writeRejection: () => service.writeRejection,
    hold: () => senders.hold,
  });
  const metrics = openMetrics(
    openScrape({ build, service, redis, fp, queueName: sharedQueueName, clock, now: Date.now }),
  );
  return httpPart(address, createApp({ readiness, metrics, log }), log);
}

type AppOptions = { readiness: () => Promise<Readiness>; metrics: Metrics; log: Log };

/**
 * The HTTP endpoints of a worker. `/healthz`: whether its event loop answers, without Redis, because a restart does not repair Redis.
 * `/readyz`: whether it can delete, with its checks. `/metrics`: Prometheus text.
 */
function createApp({ readiness, metrics, log }: AppOptions): Hono {
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

const connectionsAtMost = 128;

/** It is the first part of a process, so that it also answers while the others start and drain. */
function httpPart(address: ListenAddress, app: Hono, log: Log): Part {
  const server = createAdaptorServer({ fetch: app.fetch, overrideGlobalObjects: false }) as Server & {
    closeAllConnections(): void;
  };
  server.maxConnections = connectionsAtMost;
  return {
    name: 'http',
    start: async () => {
      await listen(server, address);
      const { address: host, port } = server.address() as AddressInfo;
      log.info({ http: `http://${listenText({ host, port })}` }, 'listening');
    },
    drain: () => {
      server.close();
      server.closeAllConnections();
    },
  };
}

async function listen(server: Server, { host, port }: ListenAddress): Promise<void> {
  try {
    server.listen(port, host);
    await once(server, 'listening');
  } catch (error) {
    const { words, next } = explainListenError(error);
    throw new ExpungeError('USAGE', `--http ${listenText({ host, port })}: ${words}`, { cause: error, next });
  }
}
