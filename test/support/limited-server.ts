import { createWriteStream } from 'node:fs';
import type { AddressInfo } from 'node:net';
import express, { type RequestHandler, type Response } from 'express';
import type { Options } from 'express-rate-limit';
import { Redis } from 'ioredis';
import { RateLimiterMemory, RateLimiterRedis, type RateLimiterRes } from 'rate-limiter-flexible';
import { expressLimiter } from './express-target.ts';

// A server in a process of its own, behind a limiter from npm: `node limited-server.ts LIMITER LOG`. It deletes every id it is asked to delete,
// prints its address, and writes a line to LOG for each answer: when it ended, how long it took, both in seconds, and its status.

/** `limit` requests in each window. A window begins with the first request after the previous window. */
export type NpmLimiter = { limit: number; windowS: number } & (
  | ({ package: 'express-rate-limit' } & Pick<Options, 'standardHeaders' | 'legacyHeaders'>)
  | { package: 'rate-limiter-flexible'; redisPort: number | null }
);

const [limiter, logFile] = process.argv.slice(2) as [string, string];
const log = createWriteStream(logFile, { flags: 'a' });
const app = express();
app.use((_request, response, next) => {
  const atMs = Date.now();
  response.on('finish', () => {
    const seconds = (ms: number) => (ms / 1_000).toFixed(3);
    log.write(`${seconds(Date.now())} ${seconds(Date.now() - atMs)} ${response.statusCode}\n`);
  });
  next();
});
app.use(limiting(JSON.parse(limiter)));
app.delete('/v2/:resource/:id', (_request, response) => void response.status(204).end());
const server = app.listen(0, '127.0.0.1', () =>
  console.log(`http://127.0.0.1:${(server.address() as AddressInfo).port}`),
);

function limiting(limiter: NpmLimiter): RequestHandler {
  if (limiter.package === 'rate-limiter-flexible') return rateLimiterFlexible(limiter);
  const { limit, windowS, standardHeaders, legacyHeaders } = limiter;
  return expressLimiter({ limit, windowMs: 1_000 * windowS, standardHeaders, legacyHeaders });
}

/** The middleware of its guide for express, with a Retry-After in whole seconds, as HTTP has it. */
function rateLimiterFlexible({
  limit,
  windowS,
  redisPort,
}: Extract<NpmLimiter, { package: 'rate-limiter-flexible' }>): RequestHandler {
  const options = { points: limit, duration: windowS };
  const limiter =
    redisPort === null
      ? new RateLimiterMemory(options)
      : new RateLimiterRedis({ ...options, storeClient: new Redis(redisPort, '127.0.0.1') });
  return (_request, response, next) => {
    limiter.consume('everybody').then(
      () => next(),
      (reason: RateLimiterRes | Error) => refuse(response, reason),
    );
  };
}

function refuse(response: Response, reason: RateLimiterRes | Error): void {
  if (reason instanceof Error) return void response.status(500).end(reason.message);
  response.setHeader('Retry-After', Math.ceil(reason.msBeforeNext / 1_000));
  response.status(429).end();
}
