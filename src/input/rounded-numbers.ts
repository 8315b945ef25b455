import { isDigit } from '../model/check-id.ts';
import { inputError, shown } from './input-error.ts';

/** The number of digits from which spreadsheets (which keep 15), or programs that read ids as numbers (16 to 17), lose digits. */
const minDigits = 16;

/** A list is refused if chance would give one like it in fewer than one of a thousand cases. */
const minSurprise = 3 * Math.LN10 - 1e-9;

/**
 * Counts the long numeric ids of a file that look rounded: ids that end in 0, and ids of 18 digits and more that a double holds. Ids can look so
 * without damage. For example, snowflake ids of a system that makes one per millisecond are multiples of 4,096, so all are even and doubles hold
 * them.
 */
export class RoundedNumbers {
  #long = 0;
  #zeros = 0;
  #odd = 0; // ids that do not end in an even digit
  readonly #doubles = { long: 0, rounded: 0, odd: 0 }; // odd: multiples of the distance between doubles, but not of twice that distance
  #first: { line: number; id: string } | null = null;

  add(line: number, id: string): void {
    if (id.length < minDigits || !isDigit(id, 0) || !isDigit(id, id.length - 1) || !digits.test(id)) return;
    this.#long += 1;
    const last = id.charCodeAt(id.length - 1) - 48;
    this.#odd += last & 1;
    if (last === 0) {
      this.#zeros += 1;
      this.#first ??= { line, id };
    }
    if (id.length >= 18 && this.#isDouble(id)) this.#first ??= { line, id };
  }

  /** Throws USAGE if far more ids look rounded than chance explains. Call it at the end of the file. */
  refuse(name: string): void {
    if (this.#first === null || !(this.#endInZero() || this.#wentThroughDoubles())) return;
    const { line, id } = this.#first;
    const message = `the long numbers in this list look rounded, like ${shown(id)}: a program kept only their first digits; nothing was sent`;
    throw inputError(name, line, message, roundedNext);
  }
  /** Whether far more ids end in 0 than by chance. If all other ids are even, one of five ends in 0 by chance. */
  #endInZero(): boolean {
    const areOthersEven = this.#zeros < this.#long && this.#odd === 0;
    return isSurprising({ chance: areOthersEven ? 1 / 5 : 1 / 10, long: this.#long, rounded: this.#zeros });
  }

  /** Whether doubles have changed the numbers: then half are odd multiples of the distance. Among ids that are even by design, almost none are. */
  #wentThroughDoubles(): boolean {
    const { long, rounded, odd } = this.#doubles;
    return 4 * odd >= rounded && isSurprising({ chance: 1 / 16, long, rounded });
  }

  /** Counts a number of 18 digits or more, which is at least 2^56, so that doubles are 16 or more apart. Returns whether a double holds it. */
  #isDouble(id: string): boolean {
    this.#doubles.long += 1;
    if (Number(id.slice(-4)) % 16 !== 0) return false; // most ids cost no more than this test
    const number = BigInt(id);
    const distance = 1n << BigInt(Math.max(4, number.toString(2).length - 53));
    if (number % distance !== 0n) return false;
    this.#doubles.rounded += 1;
    if (number % (2n * distance) !== 0n) this.#doubles.odd += 1;
    return true;
  }
}

const digits = /^\d+$/;

const roundedNext =
  'export the ids as text, not through a spreadsheet or as JSON numbers; if they are right as they are: --allow-damaged-numbers';

/** Whether the share is at least twice the chance, and its large-deviation bound says that this is not an accident. */
function isSurprising({ chance, long, rounded }: { chance: number; long: number; rounded: number }): boolean {
  if (long === 0 || rounded < 2 * chance * long) return false;
  const share = rounded / long;
  const others = share === 1 ? 0 : (1 - share) * Math.log((1 - share) / (1 - chance));
  return long * (share * Math.log(share / chance) + others) >= minSurprise;
}
