import { type Options, type RateLimitRequestHandler, rateLimit } from 'express-rate-limit';

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
