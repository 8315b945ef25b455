import { quoteForShell } from './shell-word.ts';

/**
 * The only function that writes a command of expunge for a reader to type, as in `toType('runs remove', id)`. It starts the command as this reader
 * has to, with each word quoted for a shell. `…` is a placeholder for a value that the reader knows. Text of users never passes through it.
 */
export type ToType = (command: string, ...words: readonly string[]) => string;

/** The advice for an error. It is a function if it contains a command, because only the code that prints it knows how the reader starts a command. */
export type Advice = string | ((toType: ToType) => string);

/** Writes commands for an unknown reader, who asks over HTTP or reads a file. */
export const toTypeAnywhere: ToType = (command, ...words) => typedLine('expunge', command, words);

const hardBlank = '\ue000';

/**
 * Text that `lay` lays out in lines without breaking a command, because the shell would take the first part for the whole command. A command that is
 * longer than a line is left to the terminal, which breaks it without a newline.
 */
export function unbroken(toType: ToType, lay: (toType: ToType) => string): string {
  const laid = lay((command, ...words) => toType(command, ...words).replaceAll(' ', hardBlank));
  return laid.replaceAll(hardBlank, ' ');
}

/** Writes a command line of a shell. `program` is a command line already. */
export function typedLine(program: string, command: string, words: readonly string[]): string {
  return [
    program,
    ...(command === '' ? [] : [command]),
    ...words.map((word) => (word === '…' ? word : quoteForShell(word))),
  ].join(' ');
}

/** The advice for one reader; null if there is none. */
export function adviceText<T extends Advice | null>(advice: T, toType: ToType): string | (T & null) {
  return typeof advice === 'function' ? advice(toType) : (advice as string | (T & null));
}

/** Rewords the advice; null if there is none. */
export function mapAdvice(advice: Advice | null, change: (text: string) => string): Advice | null {
  return advice && ((toType) => change(adviceText(advice, toType)));
}

/** Joins several pieces of advice into one. */
export function joinAdvice(advices: readonly Advice[], separator: string): Advice {
  return (toType) => advices.map((advice) => adviceText(advice, toType)).join(separator);
}

/** A command in a text from another process, as the words that `toTypeAnywhere` was given for it. */
export type TypedWords = readonly [command: string, ...words: string[]];

/** The advice in a form that anyone can read, and the commands in it, in order. */
export function spellOut(advice: Advice): { text: string; commands: TypedWords[] } {
  const commands: TypedWords[] = [];
  const text = adviceText(advice, (command, ...words) => {
    commands.push([command, ...words]);
    return toTypeAnywhere(command, ...words);
  });
  return { text, commands };
}

/** The inverse of `spellOut`: replaces each of the commands in its place, and keeps all other text. */
export function readAdvice(text: string, commands: readonly TypedWords[]): Advice {
  if (commands.length === 0) return text;
  return (toType) => {
    let rest = text;
    let read = '';
    for (const [command, ...words] of commands) {
      const known = toTypeAnywhere(command, ...words);
      const at = rest.indexOf(known);
      if (at === -1) continue;
      read += rest.slice(0, at) + toType(command, ...words);
      rest = rest.slice(at + known.length);
    }
    return read + rest;
  };
}
