import { type Advice, readAdvice, spellOut, type TypedWords } from '../model/to-type.ts';

/** Warnings as an answer has them. `commands`: all commands in them, so that a client can write them as its user has to type them. */
export type AnsweredWarnings = { warnings: string[]; commands?: readonly TypedWords[] };

export function spellOutWarnings(warnings: readonly Advice[]): AnsweredWarnings {
  const all = warnings.map(spellOut);
  const commands = all.flatMap((one) => one.commands);
  return { warnings: all.map(({ text }) => text), ...(commands.length > 0 && { commands }) };
}

/** Reads the warnings of an answer. A server may be of another version, and name its commands in another way or not at all. */
export function readWarnings({ warnings, commands }: AnsweredWarnings): Advice[] {
  const named = readCommands(commands);
  return warnings.map((text) => readAdvice(text, named));
}

/** The commands that a server names. */
export function readCommands(named: unknown): TypedWords[] {
  return Array.isArray(named) ? named.filter(isCommand) : [];
}

function isCommand(words: unknown): words is TypedWords {
  return Array.isArray(words) && words.length > 0 && words.every((word) => typeof word === 'string');
}
