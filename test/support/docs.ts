import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { dailySettings, settingHeading } from '../../src/commands/line/help.ts';
import { type SettingName, settings, settingText } from '../../src/config/settings.ts';
import { verdictTable } from '../../src/delete/verdict.ts';
import { exitCodes } from '../../src/errors.ts';
import { topicNames, topics } from '../../src/help/topics.ts';
import { describeHalts } from '../../src/ledger/halt-rules.ts';
import { isSuccess, type Outcome, outcomes } from '../../src/model/outcome.ts';
import { neededCommands, ourKeys } from '../../src/redis/rights.ts';
import { families } from '../../src/worker/http/metrics.ts';
import { readInvariants } from './invariants.ts';

// `npm run docs` writes what the code knows into the README, the topics and the pages about the architecture, between `<!-- name -->` and `<!-- /name -->`.

const root = fileURLToPath(new URL('../../', import.meta.url));

/** The README and every topic, by their path from the root. */
export const pages: readonly string[] = [
  'README.md',
  ...readdirSync(`${root}src/help`)
    .filter((name) => name.endsWith('.md'))
    .map((name) => `src/help/${name}`),
];

/** The pages about the architecture, by their path from the root. */
export const architecturePages: readonly string[] = readdirSync(`${root}src`, { recursive: true, encoding: 'utf8' })
  .map((path) => `src/${path.replaceAll('\\', '/')}`)
  .filter((path) => path.endsWith('.md') && !path.startsWith('src/help/'));

export function readPage(path: string): string {
  return readFileSync(root + path, 'utf8');
}

/** What stands between the markers of each name. */
const generated: Readonly<Record<string, () => string>> = {
  settings: () => [...new Set(settingNames.map(settingHeading))].map(groupOfSettings).join('\n\n'),
  'common-settings': () => settingsTable([...dailySettings, 'maxConcurrency', 'workers', 'keep', 'stateDir']),
  'exit-codes': () => table(['exit', 'meaning'], Object.values(exitCodes).map(exitRow)),
  outcomes: () => table(['outcome', 'meaning', 'success'], outcomes.map(outcomeRow)),
  verdicts: verdictsTable,
  halts: () =>
    table(
      ['halted for', 'by', 'with status'],
      describeHalts().map(({ halt, when, answer }) => [code(halt), when, answer]),
    ),
  metrics: () => table(['metric', 'type', 'meaning'], families.map(metricRow)),
  topics: () => table(['topic', 'about'], topicNames.map(topicRow)),
  login: loginCommand,
  invariants: () => table(['invariant', 'tests'], readInvariants().map(invariantRow)),
};

/** A page with all its generated parts as they are now. Throws for a marker without an end, or with a name that nothing is generated for. */
export function withGenerated(page: string): string {
  const names = [...page.matchAll(/^<!-- ([\w-]+) -->$/gm)].map(([, name]) => name!);
  return names.reduce((text, name) => {
    const make = generated[name];
    const [part] = new RegExp(`<!-- ${name} -->\n.*?<!-- /${name} -->`, 's').exec(text) ?? [];
    if (!make || part === undefined) throw new Error(`<!-- ${name} -->: nothing can be written there`);
    return text.replace(part, () => `<!-- ${name} -->\n${make()}\n<!-- /${name} -->`);
  }, page);
}

const settingNames = Object.keys(settings) as SettingName[];

function groupOfSettings(heading: string): string {
  return `### ${heading}\n\n${settingsTable(settingNames.filter((name) => settingHeading(name) === heading))}`;
}

function settingsTable(names: readonly SettingName[]): string {
  const rows = names.map((name) => {
    const { flag, arg, env, fallback, help, isFlagless = false } = settings[name];
    const text = fallback === false ? null : settingText(name, fallback as never);
    const shown = isFlagless ? code(name) : code(arg === null ? `--${flag}` : `--${flag} ${arg}`);
    return [shown, env ? code(env) : '', text ? code(text) : '', help];
  });
  const first = names.some((name) => settings[name].isFlagless) ? 'flag or key' : 'flag';
  return table([first, 'variable', 'default', 'meaning'], rows);
}

function exitRow({ exit, meaning }: { exit: number; meaning: string }): string[] {
  return [String(exit), meaning];
}

const outcomeMeanings: Readonly<Record<Outcome, string>> = {
  deleted: 'expunge received the 204',
  absent: 'not there at our first request that can have been executed',
  gone_unconfirmed:
    '404 or 410 after a request that may have been executed: no answer received, a 408, 5xx or a 2xx other than 204, or a crash',
  failed: 'a definite refusal; the object presumably still exists',
  unknown:
    'no answer shows whether the object is gone: none was definite, or a 404 came at the end of the list with nothing accepted after it',
  not_attempted: 'the run was cancelled before any attempt (a 429 is not an attempt)',
  rejected: 'the row holds no id that is safe to send; never sent',
  duplicate: 'the id is listed earlier; sent once',
  protected: '`--protect` lists the id; never sent',
};

function outcomeRow(outcome: Outcome): string[] {
  return [code(outcome), outcomeMeanings[outcome], isSuccess(outcome) ? 'yes' : 'no'];
}

function verdictsTable(): string {
  const rows = verdictTable.map(({ answers, means }) => [answers, means]);
  const others = [
    ['no answer', 'retried; may have been executed'],
    ['not sent', 'waits until the API can be reached; not an attempt'],
  ];
  return table(['answer', 'means'], [...rows, ...others]);
}

function metricRow({ name, type, labels, help }: (typeof families)[number]): string[] {
  return [code(labels ? `${name}{${labels.join(',')}}` : name), type, help];
}

function topicRow(name: (typeof topicNames)[number]): string[] {
  return [`[${name}](src/help/${name}.md)`, topics[name]];
}

/** The command that makes a login: our keys, no channels, what is needed, and in its last line what is of use. */
function loginCommand(): string {
  const first = `redis-cli ACL SETUSER expunge reset on '>PASSWORD' '~${ourKeys}*' resetchannels`;
  const rows = [...neededCommands.map((row) => Object.keys(row)), ['client|list', 'client|setname']];
  const lines = rows.map((row) => row.map((right) => (right.includes('|') ? `'+${right}'` : `+${right}`)).join(' '));
  return `\`\`\`sh\n${[first, ...lines].join(' \\\n  ')}\n\`\`\``;
}

/** A statement, and its tests as `file` "title", "title"; `file` "title". */
function invariantRow({ sentence, tests }: ReturnType<typeof readInvariants>[number]): string[] {
  const files = [...new Set(tests.map(({ file }) => file))].map((file) => {
    const titles = tests.filter((test) => test.file === file).map(({ title }) => `"${title}"`);
    return `${code(file)} ${titles.join(', ')}`;
  });
  return [sentence, files.join('; ')];
}

function table(header: string[], rows: string[][]): string {
  const [first, ...others] = [header, ...rows].map((cells) => `| ${cells.map(cell).join(' | ')} |`);
  return [first, `|${'---|'.repeat(header.length)}`, ...others].join('\n');
}

function code(text: string): string {
  return `\`${text}\``;
}

/** A bar would begin the next cell. */
function cell(text: string): string {
  return text.replaceAll('|', '\\|');
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  for (const path of [...pages, ...architecturePages]) {
    const [before, after] = [readPage(path), withGenerated(readPage(path))];
    if (before === after) continue;
    writeFileSync(root + path, after);
    process.stdout.write(`${path} written\n`);
  }
}
