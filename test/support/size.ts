import { inject } from 'vitest';

declare module 'vitest' {
  interface ProvidedContext {
    size: 'short' | 'full';
  }
}

/**
 * The size of the tests of this run. Those of `unit`, `integration` and `e2e` are short in `npm test`, and full with `TEST_SIZE=full`;
 * those of `chaos`, `services`, `containers` and `browser` are short in `npm run test:chaos`, and full in `npm run prove`.
 */
export const isFull = inject('size') === 'full';

/** What the test takes in each size. */
export function sized<S, F>(short: S, full: F): S | F {
  return isFull ? full : short;
}

/**
 * A promise of time, in ms, which only the full size holds anybody to: there the machine belongs to the tests. In short they see that it comes,
 * and in which order.
 */
export function promised(ms: number): number {
  return isFull ? ms : Number.POSITIVE_INFINITY;
}
