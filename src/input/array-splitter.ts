import { inputError } from './input-error.ts';
import { maxRecordSize } from './read-lines.ts';

const [quote, backslash, comma] = [0x22, 0x5c, 0x2c];
const [openList, closeList, openObject, closeObject] = [0x5b, 0x5d, 0x7b, 0x7d];

/**
 * Splits the text of a JSON array, or of several one after another, into their elements. It may come in pieces of any size. It only finds where they end: the caller
 * parses each, and if all are JSON, so is the array. Throws USAGE for text that is no array, or has no end.
 */
export class ArraySplitter {
  readonly #name: string;
  #place: 'before' | 'within' | 'behind' = 'before';
  #element = ''; // what there is of the element that has not ended
  #depth = 0; // objects and arrays that are open in it
  #isString = false;
  #isEscaped = false;
  #count = 0;

  constructor(name: string) {
    this.#name = name;
  }

  /** The elements that end in this piece. */
  *split(text: string): Generator<string> {
    let start = 0;
    for (let at = 0; at < text.length; at++) {
      if (this.#place !== 'within') {
        this.#passOutside(text[at]!);
        start = at + 1;
      } else if (this.#isEnd(text.charCodeAt(at))) {
        const element = this.#element + text.slice(start, at);
        this.#element = '';
        start = at + 1;
        if (this.#isEmptyArray(element)) continue;
        this.#count += 1;
        yield element;
      }
    }
    this.#hold(text.slice(start));
  }

  /** Call it at the end of the text. Throws USAGE if the array has not ended. */
  end(): void {
    if (this.#place === 'before') throw inputError(this.#name, null, 'expected a JSON array, got nothing', again);
    if (this.#place === 'within') throw inputError(this.#name, null, 'the JSON array has no end', again);
  }

  /** A character before or after the array: white space, or the bracket that opens it. */
  #passOutside(character: string): void {
    if (' \t\r\n'.includes(character)) return;
    if (this.#place === 'behind' && character !== '[')
      throw inputError(this.#name, null, 'something other than a JSON array follows the JSON array', oneArray);
    if (character === '{') throw inputError(this.#name, null, 'expected a JSON array, got an object', ofObject);
    if (character !== '[') throw inputError(this.#name, null, 'expected a JSON array, got something else', ofElse);
    this.#place = 'within';
    this.#count = 0;
  }

  /** Whether the element ends before this character. */
  #isEnd(code: number): boolean {
    if (this.#isString) {
      if (this.#isEscaped) this.#isEscaped = false;
      else if (code === backslash) this.#isEscaped = true;
      else if (code === quote) this.#isString = false;
      return false;
    }
    if (this.#depth === 0 && (code === comma || code === closeList)) {
      if (code === closeList) this.#place = 'behind';
      return true;
    }
    if (code === quote) this.#isString = true;
    else if (code === openObject || code === openList) this.#depth += 1;
    else if ((code === closeObject || code === closeList) && this.#depth > 0) this.#depth -= 1;
    return false;
  }

  /** Whether the element is the nothing within `[]`. */
  #isEmptyArray(element: string): boolean {
    return this.#place === 'behind' && this.#count === 0 && element.trim() === '';
  }

  #hold(text: string): void {
    this.#element += text;
    if (this.#element.length <= maxRecordSize) return;
    throw inputError(this.#name, null, `element ${this.#count + 1} of the array is longer than 1 MiB`);
  }
}

const again = 'export or transfer it again: it may be cut off';
const oneArray = 'for one JSON value per line use --format ndjson';
const ofObject = `for an array within the object: jq -c '.NAME[]' FILE > ids.ndjson; for objects with an id of their own, one after another: jq -c . FILE > ids.ndjson`;
const ofElse = 'check what the file holds, and name its format with --format';
