import { isDigit } from '../model/check-id.ts';
import { inputError, shown } from './input-error.ts';

/** The number of digits from which spreadsheets (which keep 15), or programs that read ids as numbers (16 to 17), lose digits. */
const minDigits = 16;

/** A list is refused if chance would give one like it in fewer than one of a thousand cases. */
const minSurprise = 3 * Math.LN10 - 1e-9;

/** Long lists are damaged as a whole: after this many long numbers, one of 16 tells enough. */
const allLooked = 10_000;

/** How many numbers of how many have the form in which a program leaves all, how many would by chance, and how many are odd in a way that tells. */
type Tally = { numbers: number; rounded: number; byChance: number; odd: number };

const newTally = (): Tally => ({ numbers: 0, rounded: 0, byChance: 0, odd: 0 });

/**
 * Counts the long numeric ids of a file that look rounded: ids that end in 0, as a spreadsheet leaves them, and ids that a double holds, exactly (as C
 * and Go print it) or in its shortest form (as JavaScript does). Ids can look so without damage. For example, snowflake ids of a system that makes one
 * per millisecond are multiples of 4,096, so doubles hold all of them.
 */
export class RoundedNumbers {
  #long = 0;
  readonly #zeros = newTally();
  readonly #exact = newTally();
  readonly #shortest = newTally();
  #first: { line: number; id: string } | null = null;
  #bare: { line: number; id: string } | null = null;
  #areDigitsKept = false;

  /** Adds a number without quotes that is too long for a double. One that no double holds shows that its writer keeps all digits. */
  addBare(line: number, id: string): void {
    this.#bare ??= { line, id };
    this.#areDigitsKept ||= !isMultiple(id, distanceOf(Math.abs(Number(id)))) && String(Number(id)) !== id;
  }

  add(line: number, id: string): void {
    if (id.length < minDigits || !isDigit(id, 0) || !isDigit(id, id.length - 1) || !digits.test(id)) return;
    this.#long += 1;
    if (this.#long > allLooked && this.#long % 16 !== 0) return;
    const isOdd = id.charCodeAt(id.length - 1) % 2 === 1;
    const endsInZero = count(this.#zeros, { chance: 1 / 10, isRounded: id.endsWith('0'), isOdd });
    if (this.#looksLikeDouble(id) || endsInZero) this.#first ??= { line, id };
  }

  /**
   * Throws USAGE if far more ids look rounded than chance explains, or if nothing shows that a writer kept the digits of its numbers. Call it at the
   * end of the file.
   */
  refuse(name: string): void {
    if (this.#bare !== null && !this.#areDigitsKept) throw bareNumber(name, this.#bare);
    const isDamaged = this.#endInZero() || wentThroughDoubles(this.#exact) || wentThroughDoubles(this.#shortest);
    if (this.#first === null || !isDamaged) return;
    const { line, id } = this.#first;
    const message = `the long numbers in this list look rounded, like ${shown(id)}: a program kept only their first digits; nothing was sent`;
    throw inputError(name, line, message, roundedNext);
  }

  /** Whether far more ids end in 0 than by chance. If all other ids are even, one of five ends in 0 by chance. */
  #endInZero(): boolean {
    const { numbers, rounded, byChance, odd } = this.#zeros;
    return isSurprising({ numbers, rounded, byChance: odd === 0 && rounded < numbers ? 2 * byChance : byChance });
  }

  /** Counts a number as a double, if doubles are further apart than whole numbers there. Returns whether it has one of the forms of a double. */
  #looksLikeDouble(id: string): boolean {
    const double = Number(id);
    const distance = distanceOf(double);
    if (distance === 1) return false;
    const [chance, isOdd] = [1 / distance, !isMultiple(id, 2 * distance)];
    const [isExact, isShortest] = [isMultiple(id, distance), String(double) === id];
    count(this.#exact, { chance, isRounded: isExact, isOdd: isExact && isOdd });
    count(this.#shortest, { chance, isRounded: isShortest, isOdd: isShortest && isOdd });
    return isExact || isShortest;
  }
}

function count(tally: Tally, id: { chance: number; isRounded: boolean; isOdd: boolean }): boolean {
  tally.numbers += 1;
  tally.byChance += id.chance;
  tally.rounded += Number(id.isRounded);
  tally.odd += Number(id.isOdd);
  return id.isRounded;
}

/** Whether doubles have changed the numbers: then a quarter or more are odd multiples of the distance. Among ids that are even by design, almost none are. */
function wentThroughDoubles(tally: Tally): boolean {
  return 8 * tally.odd >= tally.rounded && isSurprising(tally);
}

/** Whether the share is far above the chance, and its large-deviation bound says that this is not an accident. */
function isSurprising({ numbers, rounded, byChance }: Omit<Tally, 'odd'>): boolean {
  const [share, chance] = [rounded / numbers, byChance / numbers];
  if (!(share >= Math.min(2 * chance, (1 + chance) / 2))) return false; // also if there are no numbers
  const others = share === 1 ? 0 : (1 - share) * Math.log((1 - share) / (1 - chance));
  return numbers * (share * Math.log(share / chance) + others) >= minSurprise;
}

const maxDistance = 2 ** 14;

/** The distance between the doubles around this one, in whole numbers. A larger one than the maximum tells no more. */
function distanceOf(double: number): number {
  let distance = 1;
  while (double >= 2 ** 53 * distance && distance < maxDistance) distance *= 2;
  return distance;
}

/** Whether a number is a multiple of a power of two, which only its last digits decide: 10^15 is a multiple of 2^15. */
function isMultiple(id: string, power: number): boolean {
  return Number(id.slice(-15)) % power === 0;
}

function bareNumber(name: string, { line, id }: { line: number; id: string }): Error {
  const message = `the number ${shown(id)} has more digits than most programs keep, and nothing shows that this one kept them; nothing was sent`;
  return inputError(name, line, message, roundedNext);
}

const digits = /^\d+$/;

const roundedNext =
  'export the ids as text, not through a spreadsheet or as JSON numbers; if they are right as they are: --allow-damaged-numbers';
