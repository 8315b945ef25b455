import { settingText } from '../../src/config/setting-text.ts';
import { type SettingName, settings } from '../../src/config/settings.ts';
import { verdictTable } from '../../src/delete/verdict.ts';
import { exitCodes } from '../../src/errors.ts';
import { haltRules } from '../../src/ledger/thresholds.ts';
import { neededCommands, ourKeys } from '../../src/redis/rights.ts';
import { describeHaltRule, describeHaltStatuses } from '../../src/terminal/describe-halt.ts';
import { families } from '../../src/worker/http/metrics.ts';

/** The README's table of settings: flag, variable, default, meaning. */
export function settingsTable(): string {
  const rows = (Object.keys(settings) as SettingName[]).map((name) => {
    const { flag, arg, env, fallback, help } = settings[name];
    const text = fallback === false ? null : settingText(name, fallback as never);
    return [code(arg === null ? `--${flag}` : `--${flag} ${arg}`), env ? code(env) : '', text ? code(text) : '', help];
  });
  return table(['flag', 'variable', 'default', 'meaning'], rows);
}

/** The README's table of exit codes. */
export function exitCodesTable(): string {
  const rows = Object.values(exitCodes).map(({ exit, meaning }) => [String(exit), meaning]);
  return table(['exit', 'meaning'], rows);
}

/** The README's table of what an answer means. */
export function verdictsTable(): string {
  const rows = verdictTable.map(({ answers, means }) => [answers, means]);
  const others = [
    ['no answer', 'retried; may have been executed'],
    ['not sent', 'waits until the API can be reached; not an attempt'],
  ];
  return table(['answer', 'means'], [...rows, ...others]);
}

/** The README's table of what halts a run. */
export function haltsTable(): string {
  return table(
    ['halted for', 'by', 'with status'],
    haltRules.map((rule) => [code(rule.halt), describeHaltRule(rule), describeHaltStatuses(rule)]),
  );
}

/** The README's table of metrics. */
export function metricsTable(): string {
  const rows = families.map(({ name, type, labels, help }) => [
    code(labels ? `${name}{${labels.join(',')}}` : name),
    type,
    help,
  ]);
  return table(['metric', 'type', 'meaning'], rows);
}

/** The README's command that makes a login: our keys, no channels, what is needed, and in its last line what is of use. */
export function loginCommand(): string {
  const first = `redis-cli ACL SETUSER expunge reset on '>PASSWORD' '~${ourKeys}*' resetchannels`;
  const rows = [...neededCommands.map((row) => Object.keys(row)), ['client|list', 'client|setname']];
  const lines = rows.map((row) => row.map((right) => (right.includes('|') ? `'+${right}'` : `+${right}`)).join(' '));
  return `\`\`\`sh\n${[first, ...lines].join(' \\\n  ')}\n\`\`\``;
}

/** What stands in a text between `<!-- name -->` and `<!-- /name -->`, or null where one of them is missing. */
export function between(text: string, name: string): string | null {
  const [, inside] = new RegExp(`<!-- ${name} -->\\n([^]*?)\\n?<!-- /${name} -->`).exec(text) ?? [];
  return inside === undefined ? null : inside.trim();
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
