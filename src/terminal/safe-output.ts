import { visible } from '../model/visible.ts';

// The only way of text to a terminal. Whatever a line quotes (reasons, file names, answers of servers) may hold control and format characters; here
// they become codes. Everything that a command writes goes through these streams.

/** Random digits that no author of a text can know: they distinguish our own styles from styles in a text. */
const ourDigits = `;${digits()};${digits()}m`;
const ourMarks = new RegExp(`\\u001b\\[(\\d+)${ourDigits}`);

/** A mark of our own: the style with this number, or the format character with this code. It takes no columns, and `safeText` passes it on. */
export function ownMark(code: number): string {
  return `\u001b[${code}${ourDigits}`;
}

/**
 * Text for a terminal: control and format characters as codes, except line feeds and our own marks. In JSON the codes are escapes, so its values stay
 * exact.
 */
export function safeText(text: string): string {
  return text
    .split(ourMarks)
    .map((part, n) => (n % 2 === 0 ? visibleLines(part) : markText(Number(part))))
    .join('');
}

/** A stream whose texts pass `safeText`. Returns a stream that is already safe unchanged. */
export function safeOutput<T extends NodeJS.WritableStream>(stream: T): T {
  if (bare.has(stream)) return stream;
  const write = (chunk: unknown, ...more: never[]) =>
    stream.write((typeof chunk === 'string' ? safeText(chunk) : chunk) as string, ...more);
  const safe = new Proxy(stream, {
    get(_, name) {
      if (name === 'write') return write;
      const value = Reflect.get(stream, name, stream);
      return typeof value === 'function' ? value.bind(stream) : value;
    },
  });
  bare.set(safe, stream);
  return safe;
}

/** The underlying stream: for code that moves the cursor and shows only texts that passed `safeText`, and for data in a pipe. */
export function bareOutput<T extends NodeJS.WritableStream>(stream: T): T {
  return (bare.get(stream) as T | undefined) ?? stream;
}

/** The stream for data for programs: byte for byte, but on a terminal with invisible characters made visible. */
export function dataOutput<T extends NodeJS.WritableStream & { isTTY?: boolean }>(stream: T): T {
  return stream.isTTY ? stream : bareOutput(stream);
}

const bare = new WeakMap<object, NodeJS.WritableStream>();

function digits(): number {
  return 1_000 + Math.floor(Math.random() * 9_000); // at most four digits, because text measurement does not know longer ones
}

function visibleLines(text: string): string {
  return text.split('\n').map(visible).join('\n');
}

function markText(code: number): string {
  return code < 256 ? `\u001b[${code}m` : String.fromCodePoint(code);
}
