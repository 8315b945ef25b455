import { inputError } from './input-error.ts';

/** The number of rows from which counting up from 0 is not an accident. */
const minRows = 3;

/**
 * Notices ids that are row numbers instead: 0, 1, 2, … as in the index of a data frame, which is written as a column of its own. An id 0 is rejected
 * anyway, but 1, 2, … can be other objects.
 */
export class RowNumbers {
  readonly #name: string;
  #rows = 0;
  #counted = 0;

  constructor(name: string) {
    this.#name = name;
  }

  /** Throws USAGE at the row with which the first ids count up from 0. */
  add(line: number, id: string): void {
    if (this.#rows === minRows) return;
    if (this.#counted === this.#rows && id === String(this.#rows)) this.#counted += 1;
    this.#rows += 1;
    if (this.#counted === minRows) this.#refuse(line);
  }

  /** Call it after the last row: a shorter list may also consist of such numbers. */
  end(): void {
    if (this.#rows === 2 && this.#counted === 2) this.#refuse(null);
  }

  #refuse(line: number | null): never {
    throw inputError(this.#name, line, message, rowNumbersNext);
  }
}

const message =
  'the ids count up from 0, like the row numbers that a program puts before the columns; nothing was sent';
const rowNumbersNext =
  'name the column that holds the ids with --column, or export without row numbers (pandas: index=False); if they are ids of this API: --allow-placeholders';
