import { isDigit } from '../model/check-id.ts';
import { inputError, shown } from './input-error.ts';

/** Ids of this length have more digits than spreadsheets keep (15), or programs that take them for numbers (16 to 17). */
const minDigits = 16;

/** A list is refused if chance would give one like it in fewer than one of a thousand cases. */
const minSurprise = 3 * Math.LN10 - 1e-9;

/**
 * Counts the long numeric ids of a file that look rounded: those that end in 0, and those of 18 digits and more that are multiples of 16, as
 * all numbers are that went through a double.
 */
export class RoundedNumbers {
  readonly #zeros = { chance: 1 / 10, long: 0, rounded: 0 };
  readonly #doubles = { chance: 1 / 16, long: 0, rounded: 0 };
  #first: { line: number; id: string } | null = null;

  add(line: number, id: string): void {
    if (id.length < minDigits || !isDigit(id, 0) || !digits.test(id)) return;
    this.#zeros.long += 1;
    if (id.endsWith('0')) {
      this.#zeros.rounded += 1;
      this.#first ??= { line, id };
    }
    if (id.length < 18) return;
    this.#doubles.long += 1;
    if (Number(id.slice(-4)) % 16 !== 0) return;
    this.#doubles.rounded += 1;
    this.#first ??= { line, id };
  }

  /** Throws USAGE if far more ids look rounded than chance explains. Call it at the end of the file. */
  refuse(name: string): void {
    if (this.#first === null || ![this.#zeros, this.#doubles].some(isSurprising)) return;
    const { line, id } = this.#first;
    const message = `the long numbers in this list look rounded, like ${shown(id)}: a program kept only their first digits; nothing was sent`;
    throw inputError(name, line, message, roundedNext);
  }
}

const digits = /^\d+$/;

const roundedNext =
  'export the ids as text, not through a spreadsheet or as JSON numbers; if they are right as they are: --allow-damaged-numbers';

/** Whether the share is at least twice the chance, and its large-deviation bound says that this is no accident. */
function isSurprising({ chance, long, rounded }: { chance: number; long: number; rounded: number }): boolean {
  if (long === 0 || rounded < 2 * chance * long) return false;
  const share = rounded / long;
  const others = share === 1 ? 0 : (1 - share) * Math.log((1 - share) / (1 - chance));
  return long * (share * Math.log(share / chance) + others) >= minSurprise;
}
