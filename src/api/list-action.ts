import { settingsOfTarget } from '../config/check-target.ts';
import type { Source, Sources } from '../config/read-config.ts';
import { apiField, type Config, type SettingName, settings } from '../config/settings.ts';
import type { Target } from '../model/target.ts';
import type { ListAction, RunOptions } from '../operations/list-action.ts';
import { scheduledSettings } from '../schedule/schedule.ts';
import type { Caller } from './access.ts';
import { parsedAs } from './problem.ts';
import type { ApiDeps } from './route.ts';

/** Settings as texts for their flags. A missing one has the value of the server, or its default if it is about a list: see `ofLists`. */
type SettingTexts = Partial<Record<SettingName, string | undefined>>;

/** An action for a list over HTTP. */
type Given = {
  target: Target;
  texts?: SettingTexts;
  options?: RunOptions;
  reason: string;
  accepted?: ListAction['accepted'];
  onRun?: ListAction['onRun'];
};

/**
 * The settings that a plan seals or a schedule stores: how a list is read and its ids are deleted. This server may be set up for another target, so
 * its own values do not apply to these. Two of its settings do apply: its protected ids, because they only ever keep ids from being deleted, and how
 * long it keeps files.
 */
const ofLists = scheduledSettings.filter((name) => name !== 'protect' && name !== 'keep');

/** Settings about a file of protected ids go with that file: they apply if the file of this server does. */
const ofProtectFile: readonly SettingName[] = ['protectColumn', 'expectUnprotected'];

/** The action as a command line would give it. Throws `invalid` for any value that a flag would also refuse. */
export function toListAction(
  { config, sources, env }: Pick<ApiDeps, 'config' | 'sources' | 'env'>,
  { name: who, role }: Caller,
  { target, texts = {}, options = {}, reason, accepted = {}, onRun }: Given,
): ListAction {
  const given = parsed(texts);
  const isOwnFile = config.protect !== undefined && given.protect === undefined;
  const replaced = ofLists.filter((name) => !(isOwnFile && ofProtectFile.includes(name)));
  const defaults = Object.fromEntries(replaced.map((name) => [name, settings[name].fallback]));
  return {
    config: Object.freeze({ ...config, ...defaults, ...settingsOfTarget(target), ...given }) as Config,
    sources: sourcesOf(sources, Object.keys(given) as SettingName[]),
    env,
    options,
    by: { who, reason },
    role,
    command: '',
    isAsked: false,
    accepted,
    newRunOnly: true,
    onRun,
  };
}

function parsed(texts: SettingTexts): Partial<Record<SettingName, unknown>> {
  const given = Object.entries(texts).filter((entry): entry is [SettingName, string] => entry[1] !== undefined);
  return Object.fromEntries(
    given.map(([name, text]) => [name, parsedAs<unknown>(apiField(name), text, settings[name].parse)]),
  );
}

/** The sources of the settings of this action: a flag of the server is not a flag of the action. */
function sourcesOf(sources: Sources, given: readonly SettingName[]): Sources {
  const own = Object.entries(sources).map(([name, source]) => [name, source === 'flag' ? 'file' : source]);
  const all = (names: readonly SettingName[], source: Source) => names.map((name) => [name, source]);
  return Object.fromEntries([...own, ...all(ofLists, 'default'), ...all(given, 'flag')]);
}
