import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import express from 'express';
import { type Options, type RateLimitRequestHandler, rateLimit } from 'express-rate-limit';
import type { AtEnd } from './harness.ts';
import type { Arrivals } from './rate-measures.ts';

/** In which ways express-rate-limit tells what is left, or does not. */
export const headers = {
  'no headers': { standardHeaders: false, legacyHeaders: false },
  'draft-6': { standardHeaders: 'draft-6', legacyHeaders: false },
  'draft-7': { standardHeaders: 'draft-7', legacyHeaders: false },
  'draft-8': { standardHeaders: 'draft-8', legacyHeaders: false },
  'X-RateLimit': { standardHeaders: false, legacyHeaders: true },
} as const;

type Limit = Pick<Options, 'windowMs' | 'limit' | 'standardHeaders' | 'legacyHeaders'>;

/** One limit for all who ask. */
export function expressLimiter(options: Limit): RateLimitRequestHandler {
  return rateLimit({ ...options, validate: false, keyGenerator: () => 'everybody' });
}

/** A server that deletes whatever it is asked to, behind express-rate-limit: `limit` in each window, which begins with the first request after the last. */
export async function openExpressTarget(atEnd: AtEnd, options: Limit): Promise<{ url: string; arrivals: Arrivals }> {
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
  app.use(expressLimiter(options));
  app.delete('/v2/:resource/:id', (_request, response) => void response.status(204).end());
  const server = app.listen(0, '127.0.0.1');
  await once(server, 'listening');
  atEnd(async () => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, arrivals };
}
