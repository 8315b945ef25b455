import { Option, type Command as Program } from 'commander';
import { type Takes, takenBy } from '../../config/parse-setting.ts';
import { settings } from '../../config/settings.ts';
import type { Command } from '../command.ts';

/** A word that can follow at the cursor, and its meaning. */
export type Candidate = { word: string; help: string };

/** The words that can follow at the cursor. `runs`: the ids of runs, which only Redis knows. */
type Completion = { kind: 'files' | 'folders' | 'runs' } | { kind: 'words'; words: Candidate[] };

/** The words before the cursor: the current options, the number of arguments, and the flags given. */
type Read = {
  program: Program;
  path: string[]; // the names of the commands
  args: number;
  isPastDashes: boolean; // after `--`, every word is an argument
  open: Option | null; // the option whose value is next
  given: Map<string, string>; // keys are long flags; '' for a switch
};

/**
 * Finds the words that can follow at the end of a line, as far as the declarations of commands and options tell. `line`: the words after the name of
 * the program; the last one may be incomplete. Pure; skips unknown words.
 */
export function completeWords(root: Program, commands: readonly Command[], line: readonly string[]) {
  const current = line.at(-1) ?? '';
  const read = line.slice(0, -1).reduce(readWord, start(root));
  return { given: read.given, completion: completionOf(read, commands, current) };
}

function start(program: Program): Read {
  return { program, path: [], args: 0, isPastDashes: false, open: null, given: new Map() };
}

function readWord(read: Read, word: string): Read {
  const { program, path, args, isPastDashes, open, given } = read;
  if (open !== null) return { ...read, open: null, given: given.set(open.long ?? '', word) };
  if (!isPastDashes && word === '--') return { ...read, isPastDashes: true };
  if (!isPastDashes && /^-./.test(word)) return readFlag(read, word);
  const sub = args === 0 && !isPastDashes ? program.commands.find((command) => command.name() === word) : undefined;
  return sub ? { ...read, program: sub, path: [...path, word] } : { ...read, args: args + 1 };
}

/** Reads `--flag`, `--flag=value`, or several short flags in a row, of which the last may take a value. */
function readFlag(read: Read, word: string): Read {
  const [, name = word, value] = /^(--[^=]+)=(.*)$/s.exec(word) ?? [];
  const names = word.startsWith('--') ? [name] : [...word.slice(1)].map((letter) => `-${letter}`);
  for (const flag of names) {
    const option = optionsOf(read.program).find(({ long, short }) => long === flag || short === flag);
    if (option === undefined) continue;
    read.given.set(option.long ?? '', value ?? '');
    if (option.required && value === undefined) return { ...read, open: option };
  }
  return read;
}

function completionOf(
  { program, path, args, isPastDashes, open, given }: Read,
  commands: readonly Command[],
  current: string,
): Completion {
  if (open !== null) return valuesOf(open, rowsOf(commands, path), current);
  const [, flag, value = ''] = /^(--[^=]+)=(.*)$/s.exec(current) ?? [];
  if (isPastDashes || !current.startsWith('-')) return argumentsOf(program, args, current);
  const options = optionsOf(program);
  const option = flag === undefined ? undefined : options.find(({ long }) => long === flag);
  if (option !== undefined) return valuesOf(option, rowsOf(commands, path), value);
  const left = options.filter(({ long }) => long && !given.has(long));
  return words(
    left.map(({ long, description }) => ({ word: long!, help: description })),
    current,
  );
}

/** The visible options of a command and of its parents. */
function optionsOf(program: Program): Option[] {
  const help = program.createHelp();
  return [...help.visibleOptions(program), ...help.visibleGlobalOptions(program)];
}

function argumentsOf(program: Program, args: number, current: string): Completion {
  const help = program.createHelp();
  const subcommands = args === 0 ? help.visibleCommands(program) : [];
  if (subcommands.length > 0)
    return words(
      subcommands.map((sub) => ({ word: sub.name(), help: sub.description() })),
      current,
    );
  const all = program.registeredArguments;
  const argument = all[args] ?? (all.at(-1)?.variadic ? all.at(-1) : undefined);
  if (argument === undefined) return words([], current);
  if (argument.name() === 'run') return { kind: 'runs' };
  if (['file', 'files'].includes(argument.name())) return { kind: 'files' };
  return words(
    literalsOf(argument.name()).map((word) => ({ word, help: '' })),
    current,
  );
}

/** The literal words in `<high|normal|low>` and `<rate|none>`. A word that is also the name of a setting is a placeholder for its value. */
function literalsOf(name: string): string[] {
  return name.split('|').filter((word, _, all) => all.length > 1 && !Object.hasOwn(settings, word));
}

/** The declarations of a command and of its parents. */
function rowsOf(commands: readonly Command[], path: readonly string[]): Command[] {
  const row = commands.find(({ name }) => name === path[0]);
  return row === undefined ? [] : [row, ...rowsOf(row.subcommands ?? [], path.slice(1))];
}

function valuesOf(option: Option, rows: readonly Command[], current: string): Completion {
  if (/<files?(\.{3})?>$/.test(option.flags)) return { kind: 'files' };
  if (option.flags.endsWith('<folder>')) return { kind: 'folders' };
  const { words: known = [], isList = false } = takes(option, rows);
  const before = isList ? current.slice(0, current.lastIndexOf(',') + 1) : '';
  return words(
    known.map((word) => ({ word: before + word, help: '' })),
    current,
  );
}

function takes(option: Option, rows: readonly Command[]): Takes {
  const own = rows.flatMap(({ options = [] }) => options).find(({ flags }) => new Option(flags).long === option.long);
  const setting = Object.values(settings).find(({ flag }) => `--${flag}` === option.long);
  return takenBy(own ? own.parse : setting?.parse);
}

function words(all: readonly Candidate[], current: string): Completion {
  return { kind: 'words', words: all.filter(({ word }) => word.startsWith(current)) };
}
