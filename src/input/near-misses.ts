import { namePatterns } from '../model/resource.ts';
import { shown } from './input-error.ts';

/** The number of protected ids that are compared: the first ones of a longer file, so that memory stays bounded. */
const maxIds = 200_000;

/**
 * Finds protected ids that miss an id of the list only by the way they are written: `(1201)` or `id:` around it, capital letters, dashes, leading
 * zeros, accents as characters of their own, a long number that a program rounded, or an id of which only the beginning is left. Such an id protects
 * nothing, although a person meant it to.
 */
export class NearMisses {
  readonly #exact = new Set<string>();
  readonly #byForm = new Map<string, string>();
  readonly #lengths = new Set<number>(); // of the protected ids that may be cut off
  readonly #label = labelPattern();
  #found: string | null = null;
  readonly #matched = new Set<string>();
  /** The ids of the list by what they are if rounded or cut off: near misses if no id of the list is that. */
  readonly #rounded = new Map<string, string>();
  readonly #cut = new Map<string, string>();

  protect(id: string): void {
    if (this.#exact.size >= maxIds) return;
    this.#exact.add(id);
    this.#byForm.set(formOf(id.replace(this.#label, '')), id);
    if (id.length >= minCutLength && this.#lengths.size < maxLengths) this.#lengths.add(id.length);
  }

  /** Compares an id of the list. */
  compare(id: string): void {
    if (this.#found !== null || this.#exact.size === 0) return;
    if (this.#exact.has(id)) {
      this.#matched.add(id);
      return;
    }
    const form = formOf(id);
    const near = form === '' ? undefined : this.#byForm.get(form);
    if (near !== undefined) this.#found = explain(near, id);
    for (const rounded of roundedForms(id)) this.#note(this.#rounded, rounded, id);
    for (const length of this.#lengths) if (length < id.length) this.#note(this.#cut, id.slice(0, length), id);
  }

  /** The first near miss, in words; null if there is none. `isOneLength`: whether all ids of the list have one length, so that a shorter one is cut. */
  find(isOneLength: boolean): string | null {
    const pairs = [...this.#rounded, ...(isOneLength ? this.#cut : [])];
    const [near, id] = pairs.find(([guarded]) => !this.#matched.has(guarded)) ?? [];
    return this.#found ?? (near === undefined ? null : explain(near, id!));
  }

  #note(misses: Map<string, string>, guarded: string, id: string): void {
    if (this.#exact.has(guarded) && !misses.has(guarded)) misses.set(guarded, id);
  }
}

function explain(guarded: string, id: string): string {
  return `the protected id ${shown(guarded)} is written ${shown(id)} in the list`;
}

const minCutLength = 8;
const maxLengths = 8;

/** A long number as programs round it: in a spreadsheet, as an exact double, and as its shortest form. */
function roundedForms(id: string): string[] {
  if (id.length < 16 || !/^\d{16,20}$/.test(id)) return [];
  const double = Number(id);
  return [id.slice(0, 15).padEnd(id.length, '0'), BigInt(double).toString(), String(double)];
}

/**
 * An id without the punctuation around it and the zeros before a number. Short ids keep their case, because other ids may differ from them only in
 * case. All ids but UUIDs keep the characters between their parts: 1-23 is not 12-3.
 */
function formOf(id: string): string {
  const core = id.normalize('NFC').replace(outer, '');
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
