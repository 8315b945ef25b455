import { visible } from '../model/visible.ts';

// The one way of text to a terminal. Whatever a line quotes (reasons, file names, answers of servers) may hold control and format characters; here
// they become codes. Everything that a command writes goes through these streams.

/** Nobody who writes a text knows these digits: that tells our own styles from those in a text. */
const seal = `;${digits()};${digits()}m`;
const sealed = new RegExp(`\\u001b\\[(\\d+)${seal}`);

/** A mark of our own: the style with this number, or the format character with this code. It takes no columns, and `safeText` lets it through. */
export function ownMark(code: number): string {
  return `\u001b[${code}${seal}`;
}

/** Text for a terminal: control and format characters as codes, but for line feeds and marks of our own. In JSON the codes are escapes: it stays exact. */
export function safeText(text: string): string {
  return text
    .split(sealed)
    .map((part, n) => (n % 2 === 0 ? visibleLines(part) : markText(Number(part))))
    .join('');
}

/** The same stream, whose texts pass `safeText`. Of one that is safe already, itself. */
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

/** The stream behind it: for what moves the cursor and shows only texts that passed `safeText`, and for data in a pipe. */
export function bareOutput<T extends NodeJS.WritableStream>(stream: T): T {
  return (bare.get(stream) as T | undefined) ?? stream;
}

/** Where data for programs goes: byte for byte, but on a terminal what cannot be seen is shown. */
export function dataOutput<T extends NodeJS.WritableStream & { isTTY?: boolean }>(stream: T): T {
  return stream.isTTY ? stream : bareOutput(stream);
}

const bare = new WeakMap<object, NodeJS.WritableStream>();

function digits(): number {
  return 1_000 + Math.floor(Math.random() * 9_000); // four at most: what measures text knows no longer ones
}

function visibleLines(text: string): string {
  return text.split('\n').map(visible).join('\n');
}

function markText(code: number): string {
  return code < 256 ? `\u001b[${code}m` : String.fromCodePoint(code);
}
