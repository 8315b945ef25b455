import { setFlagsFromString } from 'node:v8';

/**
 * Keeps the space that V8 gives new objects as small as it is, which is for reading lists: of millions of rows nothing stays alive, and a
 * larger space would only take memory.
 */
export function keepNewSpace(): void {
  setFlagsFromString('--semi-space-growth-factor=1');
}

/** Lets it grow, at once instead of doubling step by step, for deleting: in a small space V8 copies what is in flight again and again. */
export function growNewSpace(): void {
  setFlagsFromString('--semi-space-growth-factor=32');
}
