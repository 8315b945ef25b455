import { loadConfig } from '../../config/read-config.ts';
import { type SettingName, settings } from '../../config/settings.ts';
import { allOptions } from './command-line.ts';
import { commands } from './commands.ts';
import { type Candidate, completeWords } from './complete-words.ts';

const shownRuns = 50;

/**
 * Answers a completion script; see completion.ts. Never fails and never reports an error, because the user is typing. Starts no Redis, and treats one
 * that does not answer at once as a Redis without runs.
 */
export async function complete(line: readonly string[], env: NodeJS.ProcessEnv): Promise<string> {
  const { given, completion } = completeWords(allOptions(), commands, line);
  if (completion.kind === 'words') return answer(completion.words);
  if (completion.kind !== 'runs') return `${completion.kind}\n`;
  const runs = await readRuns(given, env).catch(() => []);
  return answer(runs.filter(({ word }) => word.startsWith(line.at(-1) ?? '')));
}

function answer(words: readonly Candidate[]): string {
  return ['words', ...words.map(({ word, help }) => `${word}\t${plainHelp(help)}`)].join('\n').concat('\n');
}

/** The help text without default and variable, which are in brackets at its end. */
function plainHelp(help: string): string {
  return help.replace(/\s+/g, ' ').replace(/ \([^()]*\)$/, '');
}

/** The newest runs of the Redis that the line would use. */
async function readRuns(given: ReadonlyMap<string, string>, env: NodeJS.ProcessEnv): Promise<Candidate[]> {
  const { config } = loadConfig({ flags: flagsIn(given), env, configFile: given.get('--config') });
  const { listNewest } = await import('./complete-runs.ts');
  return listNewest(config, env, shownRuns);
}

function flagsIn(given: ReadonlyMap<string, string>): Record<string, string | boolean> {
  const names = (Object.keys(settings) as SettingName[]).filter((name) => given.has(`--${settings[name].flag}`));
  const read = (name: SettingName) => (settings[name].arg === null ? true : given.get(`--${settings[name].flag}`)!);
  return Object.fromEntries(names.map((name) => [name, read(name)]));
}
