/**
 * A number from 0 up to 1 that depends on nothing but its arguments. Faults are drawn with it instead of from a sequence, so
 * the same seed strikes the same requests of the same objects, in whatever order and on however many connections they come.
 */
export function drawFor(seed: number, name: string, nth: number): number {
  let hash = (seed ^ 0x811c9dc5) >>> 0;
  for (let i = 0; i < name.length; i++) hash = Math.imul(hash ^ name.charCodeAt(i), 0x01000193);
  return mix(Math.imul(hash ^ nth, 0x01000193)) / 2 ** 32;
}

/** Spreads every bit over all others (the finaliser of MurmurHash3): without it, names that differ in one digit draw alike. */
function mix(hash: number): number {
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}
