import { Help, Option, type Command as Program } from 'commander';
import { settingText } from '../config/setting-text.ts';
import { type SettingName, settings } from '../config/settings.ts';
import { ExpungeError } from '../errors.ts';
import type { Command } from './command.ts';

const settingsHeading = 'Settings (flag, else variable, else configuration file, else default):';

/** The flag of a setting; its help names the default and the variable. */
export function settingOption(name: SettingName): Option {
  const { flag, arg, env, help, fallback, twice } = settings[name];
  const value = arg === null ? null : settingText(name, fallback as never);
  const notes = [value ? `default: ${value === ',' ? '","' : value}` : '', env ?? ''].filter(Boolean).join(', ');
  const option = new Option(`--${flag}${arg ? ` ${arg}` : ''}`, `${help} (${notes})`).helpGroup(settingsHeading);
  return twice === undefined ? option : option.argParser(twice === 'joined' ? joined : onlyOnce(flag));
}

function joined(value: string, before: string | undefined): string {
  return before === undefined ? value : `${before},${value}`;
}

/** For what protects: whoever names two files means both, and the last one would be all that counts. */
function onlyOnce(flag: string) {
  return (value: string, before: string | undefined): string => {
    if (before === undefined) return value;
    throw new ExpungeError('USAGE', `--${flag} is given twice: ${before} and ${value}; only one file can be named`, {
      next: 'put what they say into one file',
    });
  };
}

/** How the list of commands names one: without `[options]`, which they all have. */
export function subcommandTerm(program: Program): string {
  return new Help().subcommandTerm(program).replace(' [options]', '');
}

/** What stands below the options: numbered examples, and for the whole program the variables that are no settings. */
export function addHelp(program: Program, command: Command | null): void {
  const text = command ? examplesText(command) : variablesText;
  if (text) program.addHelpText('after', `\n${text}`);
}

function examplesText({ examples }: Command): string {
  const lines = examples.map(([line, does], i) => `  ${i + 1}. ${does}\n     $ ${line}`);
  return lines.length > 0 ? ['Examples:', ...lines].join('\n') : '';
}

const variablesText = [
  'Variables:',
  '  EXPUNGE_TOKEN           the access token, unless it comes from a file, a command or a token endpoint',
  '  EXPUNGE_CLIENT_SECRET   the client secret for --token-url, unless --client-secret-file holds it',
  '  REDIS_URL               the Redis to use; without it expunge starts a private one',
  '',
  'Begin with: expunge run --help',
].join('\n');
