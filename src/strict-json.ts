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
  throw new Error(
    `it has ${JSON.stringify(repeated.key.slice(0, 60))} twice in one object (${place(json, repeated.at)})`,
  );
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
  return /line \d+ column \d+/.exec(message)?.[0] ?? strangePlace(json);
}

/** One token after another: its string, if it is one, and the colon that follows a key. */
const tokens = /[ \t\r\n]*(?:("[^"\\]*(?:\\.[^"\\]*)*")([ \t\r\n]*:)?|[{}[\],:]|true|false|null|-?\d[\d.eE+-]*)/gy;

/**
 * The line of a key in a JSON text that is known to be valid, counted from 1. `keys`: the names that lead to it from the outermost object. For a missing
 * key, the line of the last name that was found.
 */
export function lineOfKey(text: string, keys: readonly string[]): number {
  const json = text.replace(/^\uFEFF/, '');
  let [depth, found, at] = [0, 0, 0]; // open objects and lists; names found so far
  for (const { 0: token, 1: written, 2: colon, index } of json.matchAll(tokens)) {
    const sign = written === undefined ? token.at(-1) : '';
    if (colon !== undefined && depth <= found) break; // the object of the last name has ended
    if (colon !== undefined && depth === found + 1 && JSON.parse(written!) === keys[found]) {
      found += 1;
      at = index + token.indexOf('"');
      if (found === keys.length) break;
    } else if (sign === '{' || sign === '[') depth += 1;
    else if (sign === '}' || sign === ']') depth -= 1;
  }
  return json.slice(0, at).split('\n').length;
}

/** Finds the first key that occurs twice in one object, and its place; null if there is none. The text is known to be JSON. */
function findRepeatedKey(json: string): { key: string; at: number } | null {
  const open: (Set<string> | null)[] = []; // the keys of each object that is not closed yet; null for an array
  for (const { 0: text, 1: written, 2: colon, index } of json.matchAll(tokens)) {
    const sign = text.at(-1);
    if (colon !== undefined) {
      const key: string = JSON.parse(written!);
      const keys = open.at(-1)!;
      if (keys.has(key)) return { key, at: index + text.indexOf('"') };
      keys.add(key);
    } else if (written !== undefined) continue;
    else if (sign === '{') open.push(new Set());
    else if (sign === '[') open.push(null);
    else if (sign === '}' || sign === ']') open.pop();
  }
  return null;
}

/** The place of the first text that is not a JSON token, as the parser gives no place for it. */
function strangePlace(json: string): string {
  const read = [...json.matchAll(tokens)].reduce((end, { 0: text }) => end + text.length, 0);
  const at = json.slice(read).search(/[^ \t\r\n]/);
  return at === -1 ? 'a comma or bracket is misplaced' : place(json, read + at);
}

function place(json: string, at: number): string {
  const lines = json.slice(0, at).split('\n');
  return `line ${lines.length} column ${lines.at(-1)!.length + 1}`;
}
