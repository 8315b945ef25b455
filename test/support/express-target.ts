import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import express from 'express';
import { type Options, rateLimit } from 'express-rate-limit';
import type { AtEnd } from './harness.ts';
import type { Arrivals } from './rate-measures.ts';

/** A server that deletes whatever it is asked to, behind express-rate-limit: `limit` in each window, which begins with the first request after the last. */
export async function openExpressTarget(
  atEnd: AtEnd,
  options: Pick<Options, 'windowMs' | 'limit' | 'standardHeaders' | 'legacyHeaders'>,
): Promise<{ url: string; arrivals: Arrivals }> {
  const arrivals = { atMs: [] as number[], status: [] as number[] };
  const app = express();
  app.use((_request, response, next) => {
    const place = arrivals.atMs.push(performance.now()) - 1;
    arrivals.status.push(0);
    response.on('finish', () => {
      arrivals.status[place] = response.statusCode;
    });
    next();
  });
  app.use(rateLimit({ ...options, validate: false, keyGenerator: () => 'everybody' }));
  app.delete('/v2/:resource/:id', (_request, response) => void response.status(204).end());
  const server = app.listen(0, '127.0.0.1');
  await once(server, 'listening');
  atEnd(async () => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, arrivals };
}
