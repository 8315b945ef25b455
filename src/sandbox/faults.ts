import type { Resource } from '../model/resource.ts';
import { type Fault, type FaultKind, readFault } from './fault-kinds.ts';
import type { RateLimit } from './rate-limit.ts';

/** The fault of the nth authorised request for an object, counted from 1; null leaves the choice to the probabilities. */
type FaultScript = (resource: Resource, id: string, nth: number) => FaultKind | null;

/** The faults: a probability for each kind, together at most 1, and faults by rate or script. */
export type FaultTable = { [Kind in FaultKind]?: number } & {
  rate?: RateLimit | undefined;
  retryAfterSeconds?: number | undefined; // the wait in faults with a Retry-After; 1 by default
  script?: FaultScript | undefined;
};

/** Chooses the fault of one request, or null. */
export type FaultPicker = (resource: Resource, id: string) => Fault | null;

/**
 * Makes a picker from a table, or null for a table without faults, which then costs nothing. Throws an Error for unknown kinds and for invalid
 * probabilities. Requests above the rate are answered earlier and do not count as an nth request.
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

/** Reads `status-503=0.01,reset=0.005`. Throws an Error that says what was expected. */
export function parseFaults(text: string): FaultTable {
  const table: FaultTable = {};
  for (const part of text.split(',')) {
    const [kind, probability] = parseOne(part.trim());
    if (Object.hasOwn(table, kind)) throw new Error(`${kind} is given twice`);
    table[kind] = probability;
  }
  compileFaults(table, 0);
  return table;
}

function parseOne(part: string): [FaultKind, number] {
  const [kind = '', probability = '', ...rest] = part.split('=');
  if (!kind || rest.length > 0) throw new Error(`expected faults like status-503=0.01,reset=0.005, got "${part}"`);
  readFault(kind, 1);
  const number = Number(probability);
  if (/^[\d.]+$/.test(probability) && number <= 1) return [kind as FaultKind, number];
  throw new Error(`${kind}: expected a probability from 0 to 1 like ${kind}=0.01, got "${probability}"`);
}

/**
 * A number from 0 up to 1 that depends only on its arguments. Faults are drawn with it instead of from a sequence: the same seed gives the same
 * requests of the same objects their faults, in any order and on any number of connections.
 */
function drawFor(seed: number, name: string, nth: number): number {
  let hash = (seed ^ 0x811c9dc5) >>> 0;
  for (let i = 0; i < name.length; i++) hash = Math.imul(hash ^ name.charCodeAt(i), 0x01000193);
  return mix(Math.imul(hash ^ nth, 0x01000193)) / 2 ** 32;
}

/** Spreads every bit over all others (the finaliser of MurmurHash3): without this, names that differ in one digit would get similar draws. */
function mix(hash: number): number {
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}
