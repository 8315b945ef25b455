import { createScanner } from 'jsonc-parser';
import { messageOf } from './errors.ts';

/**
 * Parses a JSON text that a person writes. A byte order mark is skipped. Throws an Error for text that is not JSON, and for an object with the same
 * key twice, as `JSON.parse` silently takes the last one. The message is for the end of a sentence that says what was expected. It gives line and
 * column, and quotes nothing but the repeated key, because the text may be a secret.
 */
export function parseStrictJson(text: string): unknown {
  const json = text.replace(/^\uFEFF/, '');
  const value = parse(json);
  const repeated = findRepeatedKey(json);
  if (repeated === null) return value;
  throw new Error(`it has ${JSON.stringify(repeated.value.slice(0, 60))} twice in one object (${placeOf(repeated)})`);
}

function parse(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch (error) {
    throw new Error(`it is not JSON (${failurePlace(json, messageOf(error))})`);
  }
}

/** The place at which the parser failed. Nothing else of its message is shown, because it may quote the text. */
function failurePlace(json: string, message: string): string {
  if (/end of JSON input/.test(message)) return 'it ends too early';
  const place = /line \d+ column \d+/.exec(message)?.[0]; // the parser gives none for text that is not even a token
  if (place !== undefined) return place;
  const strange = [...tokensIn(json)].find(({ isToken }) => !isToken);
  return strange === undefined ? 'a comma or bracket is misplaced' : placeOf(strange);
}

/**
 * A token of a JSON text; `line` and `column` from 1. `sign`: its first character, which tells what it is. `value`: the text of a string, or the token
 * as it is written. `isToken`: false for text that is no token of JSON, or not a whole one.
 */
type Token = { sign: string; value: string; at: number; line: number; column: number; isToken: boolean };

const [unknown, endOfText] = [16, 17]; // of SyntaxKind, a constant enum, which only its own package can use

function* tokensIn(json: string): Generator<Token> {
  const scanner = createScanner(json, true);
  for (let kind = scanner.scan(); kind !== endOfText; kind = scanner.scan()) {
    const at = scanner.getTokenOffset();
    yield {
      sign: json[at]!,
      value: scanner.getTokenValue(),
      at,
      line: scanner.getTokenStartLine() + 1,
      column: scanner.getTokenStartCharacter() + 1,
      isToken: kind !== unknown && scanner.getTokenError() === 0,
    };
  }
}

/** A key of an object. `depth`: how many objects and lists are open around it. `isFirst`: whether it is the first of its object. */
type Key = Token & { depth: number; isFirst: boolean };

/** The keys of a JSON text that is known to be valid, in their order, however deep it is. */
function* keysIn(json: string): Generator<Key> {
  let depth = 0;
  let isFirst = false;
  let last: Token | null = null;
  for (const token of tokensIn(json)) {
    const { sign } = token;
    if (sign === ':') yield { ...last!, depth, isFirst };
    if (sign === '{' || sign === '[') depth += 1;
    else if (sign === '}' || sign === ']') depth -= 1;
    if (sign === '"') isFirst = last?.sign === '{';
    last = token;
  }
}

/** Whether an object of a valid JSON text has one of these keys twice: the outermost one, or any. */
export function hasKeyTwice(json: string, names: readonly string[], where: 'outermost' | 'any'): boolean {
  const isAsked = ({ depth, value }: Key) => (depth === 1 || where === 'any') && names.includes(value);
  return findRepeatedKey(json, isAsked) !== null;
}

/**
 * The line of a key in a JSON text that is known to be valid, counted from 1. `keys`: the names that lead to it from the outermost object. For a missing
 * key, the line of the last name that was found.
 */
export function lineOfKey(text: string, keys: readonly string[]): number {
  let [found, line] = [0, 1];
  for (const { value, depth, line: here } of keysIn(text.replace(/^\uFEFF/, ''))) {
    if (depth <= found) break; // the object of the last name has ended
    if (depth !== found + 1 || value !== keys[found]) continue;
    found += 1;
    line = here;
    if (found === keys.length) break;
  }
  return line;
}

/** Finds the first of the keys asked for that occurs twice in one object; null if there is none. The text is known to be JSON. */
function findRepeatedKey(json: string, isAsked: (key: Key) => boolean = () => true): Key | null {
  const seen: Set<string>[] = []; // by depth: the keys of the object that is open there
  for (const key of keysIn(json)) {
    if (key.isFirst) seen[key.depth] = new Set();
    if (!isAsked(key)) continue;
    if (seen[key.depth]!.has(key.value)) return key;
    seen[key.depth]!.add(key.value);
  }
  return null;
}

function placeOf({ line, column }: Token): string {
  return `line ${line} column ${column}`;
}
