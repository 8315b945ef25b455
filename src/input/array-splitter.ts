import { adviceToSplit } from './convert-advice.ts';
import { inputError, shown } from './input-error.ts';
import { maxRecordSize } from './read-lines.ts';

const [quote, backslash, comma] = [0x22, 0x5c, 0x2c];
const [openList, closeList, openObject, closeObject] = [0x5b, 0x5d, 0x7b, 0x7d];

/**
 * Splits the text of a JSON array, or of several arrays one after another, into their elements. The text may come in pieces of any size. It only
 * finds where elements end. The caller parses each, and if all are JSON, so is the array. Throws USAGE for text that is not an array, or has no end.
 */
export class ArraySplitter {
  readonly #name: string;
  #place: 'before' | 'within' | 'behind' = 'before';
  #element = ''; // the text so far of the element that has not ended
  #depth = 0; // number of objects and arrays that are open in it
  #isString = false;
  #isEscaped = false;
  #count = 0;

  constructor(name: string) {
    this.#name = name;
  }

  /** Yields the elements that end in this piece. */
  *split(text: string): Generator<string> {
    let start = 0;
    for (let at = 0; at < text.length; at++) {
      if (this.#place !== 'within') {
        this.#passOutside(text, at);
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

  /** Passes a character before or after the array: white space, or the bracket that opens it. */
  #passOutside(text: string, at: number): void {
    const character = text[at]!;
    if (' \t\r\n'.includes(character)) return;
    if (this.#place === 'behind' && character !== '[')
      throw inputError(
        this.#name,
        null,
        'something other than a JSON array follows the JSON array',
        adviceToSplit(this.#name, valuesOrElements),
      );
    if (character === '{')
      throw inputError(this.#name, null, 'expected a JSON array, got an object', ofObject(this.#name, text.slice(at)));
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

  /** Whether the element is the empty text within `[]`. */
  #isEmptyArray(element: string): boolean {
    return this.#place === 'behind' && this.#count === 0 && element.trim() === '';
  }

  #hold(text: string): void {
    this.#element += text;
    if (this.#element.length <= maxRecordSize) return;
    throw inputError(this.#name, null, `element ${this.#count + 1} of the array is longer than 1 MiB`, again);
  }
}

const again = 'export or transfer it again: it may be cut off';
const valuesOrElements = 'if type == "array" then .[] else . end';

/**
 * The error for an object instead of an array; `text`: the object so far. The message names an array in it, which is most often the list, if there is
 * only one.
 */
function ofObject(name: string, text: string): string {
  const [array, ...others] = arraysIn(text);
  const isPretty = /^\s*\{\s*\n/.test(text);
  const ndjson = isPretty
    ? `for objects with an id of their own: ${adviceToSplit(name, '.')}`
    : 'if each line is an object with an id of its own: --format ndjson';
  if (array === undefined) return ndjson;
  const which = others.length === 0 ? '' : ` (or the one of ${others.map(shown).join(', ')})`;
  const key = /^[A-Za-z_]\w*$/.test(array) ? array : `[${JSON.stringify(array)}]`;
  return `for the array ${shown(array)} in the object${which}:\n${adviceToSplit(name, `.${key}[]`)}\n${ndjson}`;
}

/** The names of the arrays in the object, the longest first; for an object larger than this piece, the first of them. Empty if each line is an object. */
function arraysIn(text: string): string[] {
  if (/^\{.*\}\s*\n\s*\{/.test(text)) return [];
  try {
    const entries = Object.entries(JSON.parse(text) as Record<string, unknown>);
    const arrays = entries.filter((entry): entry is [string, unknown[]] => Array.isArray(entry[1]));
    return arrays.sort(([, a], [, b]) => b.length - a.length).map(([key]) => key);
  } catch {
    const first = /"([^"\\]+)"\s*:\s*\[/.exec(text)?.[1];
    return first === undefined ? [] : [first];
  }
}

const ofElse =
  'name what the file holds: --format csv, --format lines (one id per line) or --format ndjson (one object or string per line)';
