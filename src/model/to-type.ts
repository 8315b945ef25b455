import { quoteForShell } from './shell-word.ts';

/**
 * The only function that writes a command of expunge for somebody who is to type it, `toType('runs remove', id)`: as the reader has to start it,
 * each word quoted for a shell. `…` stands for what the reader knows. Text of users never passes it.
 */
export type ToType = (verb: string, ...words: readonly string[]) => string;

/** What to do about an error; a function where that contains a command, because only who prints it knows how the reader starts one. */
export type Advice = string | ((toType: ToType) => string);

/** For a reader of whom nothing is known: who asks over HTTP, or reads a file. */
export const toTypeAnywhere: ToType = (verb, ...words) => typedLine('expunge', verb, words);

const hardBlank = '\ue000';

/**
 * Text that is laid out in lines, where `lay` gets it: a command is not broken, because the shell would take its begin for all of it. One that
 * is longer than a line is left to the terminal, which breaks it without a newline.
 */
export function unbroken(toType: ToType, lay: (toType: ToType) => string): string {
  const laid = lay((verb, ...words) => toType(verb, ...words).replaceAll(' ', hardBlank));
  return laid.replaceAll(hardBlank, ' ');
}

/** A command line of a shell. `program` is one already. */
export function typedLine(program: string, verb: string, words: readonly string[]): string {
  return [
    program,
    ...(verb === '' ? [] : [verb]),
    ...words.map((word) => (word === '…' ? word : quoteForShell(word))),
  ].join(' ');
}

/** The advice for one reader; null for none. */
export function adviceText<T extends Advice | null>(advice: T, toType: ToType): string | (T & null) {
  return typeof advice === 'function' ? advice(toType) : (advice as string | (T & null));
}

/** The advice in other words; null for none. */
export function mapAdvice(advice: Advice | null, change: (text: string) => string): Advice | null {
  return advice && ((toType) => change(adviceText(advice, toType)));
}

/** Several advices as one. */
export function joinAdvice(advices: readonly Advice[], separator: string): Advice {
  return (toType) => advices.map((advice) => adviceText(advice, toType)).join(separator);
}

/** A command in a text that somebody else wrote, as the words that `toTypeAnywhere` was given for it. */
export type TypedWords = readonly [verb: string, ...words: string[]];

/** The advice as anybody can read it, and the commands in it, in their order. */
export function spellOut(advice: Advice): { text: string; commands: TypedWords[] } {
  const commands: TypedWords[] = [];
  const text = adviceText(advice, (verb, ...words) => {
    commands.push([verb, ...words]);
    return toTypeAnywhere(verb, ...words);
  });
  return { text, commands };
}

/** The opposite of `spellOut`: each of the commands is replaced where it stands, all other text stays. */
export function readAdvice(text: string, commands: readonly TypedWords[]): Advice {
  if (commands.length === 0) return text;
  return (toType) => {
    let rest = text;
    let read = '';
    for (const [verb, ...words] of commands) {
      const known = toTypeAnywhere(verb, ...words);
      const at = rest.indexOf(known);
      if (at === -1) continue;
      read += rest.slice(0, at) + toType(verb, ...words);
      rest = rest.slice(at + known.length);
    }
    return read + rest;
  };
}
