import { namePatterns } from '../model/resource.ts';
import { shown } from './input-error.ts';

/** The number of protected ids that are compared: the first ones of a longer file, so that memory stays bounded. */
const maxIds = 200_000;

/**
 * Finds protected ids that miss an id of the list only by the way they are written: `(1201)` or `id:` around it, capital letters, dashes, leading
 * zeros. Such an id protects nothing, although a person meant it to.
 */
export class NearMisses {
  readonly #exact = new Set<string>();
  readonly #byForm = new Map<string, string>();
  readonly #label = labelPattern();
  /** The first near miss, in words; null if there is none. */
  found: string | null = null;

  protect(id: string): void {
    if (this.#exact.size >= maxIds) return;
    this.#exact.add(id);
    this.#byForm.set(formOf(id.replace(this.#label, '')), id);
  }

  /** Compares an id of the list. */
  compare(id: string): void {
    if (this.found !== null || this.#byForm.size === 0 || this.#exact.has(id)) return;
    const form = formOf(id);
    const near = form === '' ? undefined : this.#byForm.get(form);
    if (near !== undefined) this.found = `the protected id ${shown(near)} is written ${shown(id)} in the list`;
  }
}

/**
 * An id without the punctuation around it and the zeros before a number. Short ids keep their case, because other ids may differ from them only in
 * case. All ids but UUIDs keep the characters between their parts: 1-23 is not 12-3.
 */
function formOf(id: string): string {
  const core = id.replace(outer, '');
  if (/^\d+$/.test(core)) return core.replace(/^0+(?=.)/, '');
  const folded = core.length < minFolded ? core : core.toLowerCase();
  return uuid.test(folded) ? folded.replaceAll('-', '') : folded;
}

const outer = /^[^\p{L}\p{N}]+|[^\p{L}\p{N}]+$/gu;
const minFolded = 10;
const uuid = /^[\da-f]{8}-?(?:[\da-f]{4}-?){3}[\da-f]{12}$/;

/** An expression for a label in front of an id: `id:7`, `urn:annotation:7`, `ObjectId("7")`. */
function labelPattern(): RegExp {
  return new RegExp(`^\\W*(?:(?:id|uuid|urn|${namePatterns().join('|')}|objectid)[\\s:=("']+)+(?=.)`, 'i');
}
