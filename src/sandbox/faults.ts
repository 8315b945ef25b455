import type { Resource } from '../model/outcome.ts';
import { type Fault, type FaultKind, readFault } from './fault-kinds.ts';
import { drawFor } from './random.ts';
import type { RateLimit } from './rate-limit.ts';

/** The fault of the nth authorised request for an object, counted from 1; null leaves it to the probabilities. */
type FaultScript = (resource: Resource, id: string, nth: number) => FaultKind | null;

/** What goes wrong: a probability for each kind of fault, together at most 1, and what strikes by other rules. */
export type FaultTable = { [Kind in FaultKind]?: number } & {
  rate?: RateLimit | undefined;
  retryAfterSeconds?: number | undefined; // the wait that faults with a Retry-After ask for; 1 by default
  script?: FaultScript | undefined;
};

/** Chooses the fault of one request, or null. */
export type FaultPicker = (resource: Resource, id: string) => Fault | null;

/**
 * Makes a picker of a table, or null where nothing can go wrong, so that the sandbox pays for no fault it doesn't have. Throws
 * an Error for unknown kinds and for probabilities that make no sense. The rate is not its business: what is refused by that never
 * comes here, so it doesn't count as an nth request.
 */
export function compileFaults(table: FaultTable, seed: number): FaultPicker | null {
  const { rate: _, retryAfterSeconds = 1, script, ...probabilities } = table;
  const draw = drawFault(probabilities, seed, retryAfterSeconds);
  if (!script && !draw) return null;
  const nthOf = countPerObject();
  return (resource, id) => {
    const nth = nthOf(`${resource}/${id}`);
    const scripted = script?.(resource, id, nth);
    return scripted ? readFault(scripted, retryAfterSeconds) : (draw?.(`${resource}/${id}`, nth) ?? null);
  };
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
