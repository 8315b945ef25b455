import { type SettingName, settings } from '../../config/settings.ts';
import { type ToType, typedLine } from '../../model/to-type.ts';
import { shownWords } from '../../terminal/style.ts';
import { type Command, server, store, target } from '../command.ts';
import type { Call } from './command-line.ts';
import { commands } from './commands.ts';

/** What a command line says about where things are. Variables also apply to the next command, so they are not repeated. */
type Given = Pick<Call, 'flags' | 'configFile'>;

/** The place of a command line that has not been read yet. */
export const nothingGiven: Given = { flags: {}, configFile: undefined };

/**
 * Returns a function that writes commands that work where this command was started: with the same program, and with those of its flags that say where
 * things are, as far as the command takes them. A command that names a target itself gets no other target.
 */
export function makeToType(program: string, given: Given): ToType {
  return (commandName, ...words) => {
    const command = findCommand(commands, commandName.split(' '));
    const flags = command === undefined || words.includes('--help') ? [] : flagsOfPlace(command, words, given);
    return [typedLine(program, commandName, words), ...flags].join(' ');
  };
}

function findCommand(commands: readonly Command[], [name, ...below]: readonly string[]): Command | undefined {
  const found = commands.find((command) => command.name === name);
  return found && (findCommand(found.subcommands ?? [], below) ?? found); // `limit 200/s` ends with its argument
}

function flagsOfPlace(command: Command, words: readonly string[], { flags, configFile }: Given): string[] {
  if (command.settings.length === 0 || command.withoutSettings) return [];
  const config = configFile === undefined ? [] : [flagText('config', configFile)];
  const isTaken = (name: SettingName) => command.settings.includes(name) && flags[name] !== undefined;
  const names = placeOf(command, words).filter(isTaken);
  return [...config, ...names.map((name) => flagText(settings[name].flag, flags[name]!))];
}

const namesTarget: readonly SettingName[] = ['baseUrl', 'account', 'clientId'];

/** Commands that ask about a target: for them it is not a place. */
const asksAboutTargets: readonly string[] = ['status', 'explain'];

function placeOf({ name }: Command, words: readonly string[]): readonly SettingName[] {
  if (asksAboutTargets.includes(name)) return [...store, ...server];
  const isNamed = words.includes('--base-url');
  return [...store, ...server, ...target.filter((name) => !isNamed || !namesTarget.includes(name))];
}

/** `--state-dir '/my state'`, a secret as `***`. */
function flagText(flag: string, value: string | boolean): string {
  if (typeof value === 'boolean') return `--${flag}`;
  const words = value.startsWith('-') ? [`--${flag}=${value}`] : [`--${flag}`, value];
  return shownWords(words).join(' ');
}
