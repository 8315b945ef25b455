import { Help, Option, type Command as Program } from 'commander';
import { type SettingName, settings, settingText } from '../../config/settings.ts';
import { ExpungeError, exitCodes } from '../../errors.ts';
import { type Topic, topicNames, topics } from '../../help/topics.ts';
import { foldCommand, readingWidth } from '../../terminal/render-markdown.ts';
import type { Command } from '../command.ts';
import { commands } from './commands.ts';

/** The settings for daily use: the only ones that the help of a command shows without `--all`. */
export const dailySettings: readonly SettingName[] = [
  'baseUrl',
  'account',
  'resource',
  'column',
  'limit',
  'protect',
  'maxDeletes',
  'rate',
  'tokenFile',
  'http',
  'logLevel',
];

/** Headings of the settings: each covers the settings from its first one on, in the order of the table of settings. */
const groups: readonly [first: SettingName, heading: string][] = [
  ['baseUrl', 'The target'],
  ['resource', 'The list'],
  ['maxDeletes', 'Guards and answers'],
  ['rate', 'The rate'],
  ['maxConcurrency', 'Requests'],
  ['tokenFile', 'The token'],
  ['caFile', 'The connection to the API'],
  ['keep', 'State'],
  ['allowPlaintextRedis', 'Redis'],
  ['server', 'A server instead of Redis'],
  ['workers', 'Workers'],
];

/** The heading of a setting. */
export function settingHeading(name: SettingName): string {
  const order = Object.keys(settings);
  return groups.findLast(([first]) => order.indexOf(first) <= order.indexOf(name))![1];
}

/** The tasks of the commands: each heading covers the commands from its own on, in the order of the help. */
const tasks: readonly [first: string, heading: string][] = [
  ['run', 'Delete the ids of a list:'],
  ['runs', 'Watch and control runs:'],
  ['stop-all', 'Control all runs of a target:'],
  ['report', 'Find out what happened to the ids:'],
  ['worker', 'Delete in the background, or on a schedule:'],
  ['check', 'Set up and try out:'],
];

/** The heading of a command in the help of the program. The commands below another command have the usual heading. */
export function commandHeading(commandName: string): string {
  const order = commands.map(({ name }) => name);
  return tasks.findLast(([first]) => order.indexOf(first) <= order.indexOf(commandName))?.[1] ?? 'Commands:';
}

/** Topics that explain a command, by the first word of the command. */
export const furtherReading: Readonly<Record<string, readonly Topic[]>> = {
  run: ['input', 'outcomes', 'rates', 'exit-codes'],
  plan: ['plans', 'input'],
  apply: ['plans', 'exit-codes'],
  plans: ['plans', 'dashboard', 'exit-codes'],
  worker: ['workers', 'results', 'notifications', 'monitoring', 'upgrade', 'exit-codes'],
  schedule: ['schedules', 'notifications'],
  dashboard: ['dashboard', 'proxy', 'control'],
  token: ['dashboard', 'api'],
  runs: ['control'],
  status: ['control'],
  pause: ['control'],
  resume: ['control', 'recovery'],
  cancel: ['control'],
  rate: ['rates'],
  'stop-all': ['control'],
  'start-all': ['control'],
  target: ['rates', 'control', 'recovery'],
  report: ['reports', 'manifests', 'outcomes'],
  verify: ['guarantees', 'check', 'exit-codes'],
  explain: ['reports', 'outcomes'],
  retry: ['retry', 'outcomes', 'exit-codes'],
  check: ['check', 'outcomes', 'exit-codes'],
  config: ['settings'],
  redis: ['redis', 'recovery'],
  sandbox: ['sandbox'],
  alerts: ['monitoring'],
  completion: [],
  help: [],
};

/** The flag of a setting. With `all`, its help names the variable and appears under a heading; otherwise only a daily setting is shown. */
export function settingOption(name: SettingName, all = true): Option {
  const { flag, arg, env, help, fallback, ifRepeated } = settings[name];
  const value = arg === null ? null : settingText(name, fallback as never);
  const notes = [value ? `default: ${value === ',' ? '","' : value}` : '', (all && env) || '']
    .filter(Boolean)
    .join(', ');
  const text = all ? help : help.split(';')[0]!; // the first clause is enough for daily use
  const option = new Option(`--${flag}${arg ? ` ${arg}` : ''}`, notes ? `${text} (${notes})` : text);
  if (all) option.helpGroup(`${settingHeading(name)}:`);
  else option.hideHelp(!dailySettings.includes(name));
  return ifRepeated === undefined ? option : option.argParser(ifRepeated === 'joined' ? joined : onlyOnce(flag));
}

function joined(value: string, before: string | undefined): string {
  return before === undefined ? value : `${before},${value}`;
}

/** A parser for files of protected ids: of two files, the last one would silently win. */
function onlyOnce(flag: string) {
  return (value: string, before: string | undefined): string => {
    if (before === undefined) return value;
    throw new ExpungeError('USAGE', `--${flag} is given twice: ${before} and ${value}; only one file can be named`, {
      next: 'combine both in one file',
    });
  };
}

/** Configures the help of a command, or of the whole program: usage, examples, options, exit codes, and further reading. */
export function configureHelp(program: Program, commandName: string, command: Command | null, all: boolean): void {
  program.configureOutput({ getOutHelpWidth: () => readingWidth(process.stdout, process.env) });
  program.configureHelp({
    showGlobalOptions: all,
    minWidthToWrap: 24,
    subcommandTerm: (sub) => new Help().subcommandTerm(sub).replace(' [options]', ''),
    formatHelp: (asked, helper) => {
      const text = Help.prototype.formatHelp.call(helper, asked, helper).trimEnd();
      const [usage = '', about = '', ...sections] = text.split('\n\n');
      const examples = examplesOf(command?.examples ?? programExamples, helper);
      const below = command ? endOfCommand(commandName, command, all, helper) : endOfProgram(all, helper);
      const [options = '', ...others] = sections;
      // Whoever asks about the program looks for a command, not for the options of all commands.
      const middle = command ? sections : [...others, options];
      return `${[usage, about, examples, ...middle, ...below].filter(Boolean).join('\n\n')}\n`;
    },
  });
}

/** The examples, each as a line that can be copied, below its description. */
function examplesOf(examples: Command['examples'], helper: Help): string {
  const lines = examples.map(([line, does]) => `  ${does}\n    ${foldCommand(`$ ${line}`, widthOf(helper), 8)}`);
  return lines.length > 0 ? ['Examples:', ...lines].join('\n') : '';
}

/** Exit codes for commands that scripts use, and further reading. */
function endOfCommand(commandName: string, { settings: own }: Command, all: boolean, helper: Help): string[] {
  const reading = furtherReading[commandName.split(' ')[0]!] ?? [];
  const exits = Object.values(exitCodes).map(({ exit, meaning }) => `${exit} ${meaning.split(/;|, or/)[0]}`);
  const isCut = !all && own.some((name) => !dailySettings.includes(name));
  const more = [
    isCut ? paragraph('--help --all lists every flag, expunge help settings every setting.', helper) : '',
    reading.length > 0 ? paragraph(`To read: expunge help ${reading.join(', ')}`, helper) : '',
  ];
  // Some exit codes mean something else for other commands; the topic lists those.
  const codes = commandName === 'run' ? paragraph(`Exit codes: ${exits.join(' · ')}`, helper) : '';
  return [codes, more.filter(Boolean).join('\n')];
}

/** What most people want to do. */
const programExamples: Command['examples'] = [
  ['expunge run old.csv --resource annotations --dry-run', 'show what would be deleted; sends nothing'],
  ['expunge run old.csv --resource annotations', 'delete it, after you have typed the number of ids'],
  ['expunge runs', 'list the runs'],
  ['expunge stop-all', 'stop everything at once'],
  ['expunge check', 'find out why a run cannot start'],
];

function endOfProgram(all: boolean, helper: Help): string[] {
  const lines = (rows: readonly (readonly [string, string])[]) => {
    const widest = Math.max(...rows.map(([term]) => term.length));
    return rows.map(([term, about]) => helper.formatItem(term, widest, about, helper)).join('\n');
  };
  return [
    `Variables:\n${lines(variables)}`,
    all
      ? `Topics, each with expunge help TOPIC:\n${lines(topicNames.map((name) => [name, topics[name]]))}`
      : paragraph(`Topics: ${topicNames.join(', ')}`, helper),
    `Start with: expunge run --help${all ? '' : ', or expunge help, which says what each topic is about'}`,
  ];
}

const variables = [
  ['EXPUNGE_TOKEN', 'the access token, unless a file, a command or a token endpoint provides it'],
  [
    'EXPUNGE_CLIENT_SECRET',
    'the client secret for --token-url, unless the file in EXPUNGE_CLIENT_SECRET_FILE holds it',
  ],
  ['EXPUNGE_SERVER_TOKEN', 'the token for --server, unless the file in EXPUNGE_SERVER_TOKEN_FILE holds it'],
  ['REDIS_URL', 'the Redis to use; without it expunge starts a private one'],
] as const;

function paragraph(text: string, helper: Help): string {
  return helper.boxWrap(text, widthOf(helper));
}

function widthOf(helper: Help): number {
  return helper.helpWidth ?? 80;
}
