import { ExpungeError } from '../errors.ts';
import type { Rate } from '../model/rate.ts';
import type { ListAction } from './list-action.ts';

/** Throws USAGE for --burst without a rate: it would have no effect. */
export function requireRateForBurst(
  { config, sources }: Pick<ListAction, 'config' | 'sources'>,
  known: Rate | null,
): void {
  if (sources.burst !== 'flag' || (config.rate ?? known) !== null) return;
  throw burstWithoutRate();
}

export function burstWithoutRate(): ExpungeError {
  return new ExpungeError('USAGE', '--burst needs a rate, but none is set', {
    next: 'add --rate, as in --rate 200/s',
  });
}
