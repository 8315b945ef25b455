import type { Signal } from '../limiter/tally.ts';
import { type Answer, noContent } from './answer.ts';

/** What an answer tells about the target as a whole, whatever it means for its id. `waits`: statuses by which it says "not now". */
export function signalOf(answer: Answer, waits: ReadonlySet<number>): Signal {
  if (answer === noContent) return 'accepted';
  if (answer.kind === 'not-sent') return 'unreachable';
  if (answer.kind === 'maybe-sent') return 'lost';
  if (answer.status === 429 || waits.has(answer.status)) return 'refused';
  if (answer.status === 401) return 'nothing'; // about the token, not about the load
  if (answer.status === 408 || (answer.status >= 500 && answer.status !== 501 && answer.status !== 505))
    return 'trouble';
  return 'accepted';
}
