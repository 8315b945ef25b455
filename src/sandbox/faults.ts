import type { Resource } from '../ledger/outcome.ts';
import { type Fault, type FaultKind, readFault } from './fault-kinds.ts';
import { drawFor } from './random.ts';
import type { RetryAfterForm } from './retry-after.ts';

/** The fault of the nth authorised request for an object, counted from 1; null leaves it to the probabilities. */
type FaultScript = (resource: Resource, id: string, nth: number) => FaultKind | null;

/** A hidden limit: a bucket of `burst` requests (by default what 100 ms bring) gains `perSecond`; what finds it empty gets a 429. */
type RateLimit = { perSecond: number; burst?: number | undefined; retryAfter?: RetryAfterForm | undefined };

/** What goes wrong: a probability for each kind of fault, together at most 1, and what strikes by other rules. */
export type FaultTable = { [Kind in FaultKind]?: number } & {
  rate?: RateLimit | undefined;
  retryAfterSeconds?: number | undefined; // the wait that faults with a Retry-After ask for; 1 by default
  script?: FaultScript | undefined;
};

/** Chooses the fault of one request, or null. */
export type FaultPicker = (resource: Resource, id: string) => Fault | null;

type Surroundings = { seed: number; now: () => number };

/**
 * Makes a picker of a table, or null where nothing can go wrong, so that the sandbox pays for no fault it doesn't have. Throws
 * an Error for unknown kinds and for probabilities that make no sense. The rate strikes first and doesn't count as an nth request.
 */
export function compileFaults(table: FaultTable, { seed, now }: Surroundings): FaultPicker | null {
  const { rate, retryAfterSeconds = 1, script, ...probabilities } = table;
  const isLimited = rate ? limitRate(rate, now) : null;
  const draw = drawFault(probabilities, seed, retryAfterSeconds);
  if (!isLimited && !script && !draw) return null;
  const nthOf = script || draw ? countPerObject() : null;
  return (resource, id) => {
    if (isLimited?.()) return rateFault(rate!);
    if (!nthOf) return null;
    const nth = nthOf(`${resource}/${id}`);
    const scripted = script?.(resource, id, nth);
    return scripted ? readFault(scripted, retryAfterSeconds) : (draw?.(`${resource}/${id}`, nth) ?? null);
  };
}

/** Whether the bucket is empty; takes one request out of it where it isn't. */
function limitRate({ perSecond, burst = Math.max(1, perSecond / 10) }: RateLimit, now: () => number): () => boolean {
  let filled = burst;
  let at = now();
  return () => {
    const moment = now();
    filled = Math.min(burst, filled + (Math.max(0, moment - at) * perSecond) / 1_000);
    at = moment;
    if (filled < 1) return true;
    filled -= 1;
    return false;
  };
}

function rateFault({ perSecond, retryAfter: form }: RateLimit): Fault {
  const seconds = Math.ceil(1 / perSecond);
  return { ending: 'status', executes: false, status: 429, retryAfter: form ? { form, seconds } : null };
}

function drawFault(probabilities: { [kind: string]: number | undefined }, seed: number, retryAfterSeconds: number) {
  let total = 0;
  const steps = Object.entries(probabilities).map(([kind, probability = 0]) => {
    if (!(probability >= 0 && probability <= 1)) throw new Error(`${kind}: expected a probability, got ${probability}`);
    total += probability;
    return { below: total, fault: readFault(kind, retryAfterSeconds) };
  });
  if (total > 1 + 1e-9) throw new Error(`the probabilities of the faults add up to ${total}, expected at most 1`);
  if (total === 0) return null;
  return (name: string, nth: number): Fault | null => {
    const drawn = drawFor(seed, name, nth);
    return steps.find(({ below }) => drawn < below)?.fault ?? null;
  };
}

function countPerObject(): (name: string) => number {
  const counts = new Map<string, number>();
  return (name) => {
    const nth = (counts.get(name) ?? 0) + 1;
    counts.set(name, nth);
    return nth;
  };
}
