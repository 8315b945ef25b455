import { type Rate, rateSetting } from '../model/rate.ts';
import type { Definitions } from '../model/resource.ts';
import type { ListSources } from './list-source.ts';
import * as parse from './parse-setting.ts';
import * as url from './parse-url.ts';
import { processSettings } from './process-settings.ts';
import { runSettings } from './run-settings.ts';
import { serviceSettings } from './service-settings.ts';
import type { SettingUse } from './setting.ts';

/**
 * Every setting once: its flag, its variable, its default and its parser. Help, configuration file, `config show` and the tables of the documentation
 * are derived from it. Secrets are not settings: see `token/token.ts`.
 */
export const settings = { ...runSettings, ...processSettings, ...serviceSettings } as const;

export type SettingName = keyof typeof settings;

/** The settings that a flag can set; only a variable or the configuration file sets the others. */
export const flagSettings = (Object.keys(settings) as SettingName[]).filter((name) => !settings[name].isFlagless);

/** The settings with this use. */
export type SettingFor<U extends SettingUse> = {
  [N in SettingName]: (typeof settings)[N]['use'] extends U ? N : never;
}[SettingName];

/** The settings with this use, in the order of the tables. */
export function settingsFor<U extends SettingUse>(use: U): SettingFor<U>[] {
  return (Object.keys(settings) as SettingName[]).filter((name): name is SettingFor<U> => settings[name].use === use);
}

type Value<S> = S extends { parse: (text: string) => infer T; fallback: infer F }
  ? F extends undefined
    ? T | undefined
    : T
  : never;

/** All settings with their values, and the sources of schedules. Frozen; read once per command, before any work. */
export type Config = { readonly [K in SettingName]: Value<(typeof settings)[K]> } & {
  /** The sources of schedules, which only the configuration file can define. */
  readonly sources: ListSources;
  /** The resources that the configuration file defines. */
  readonly resources: Definitions;
};

/** The value of a setting as text for its flag, or null if it is unset. Parsing the text gives the same value. */
export function settingText<N extends SettingName>(name: N, value: Config[N]): string | null {
  if (value === undefined) return null;
  if (value === null) return 'none';
  const writer = writers.get(settings[name].parse);
  return writer ? writer(value) : String(value);
}

/** The name of a setting in queries and bodies of the API: the name of its flag. */
export function apiField(name: SettingName): string {
  return settings[name].flag.replaceAll('-', '_');
}

/** The value of a setting for people, without parts that may be secret. */
export function shownSetting<N extends SettingName>(name: N, value: Config[N]): string | null {
  const text = settingText(name, value);
  if (text === null) return null;
  if (name === 'tokenCommand')
    return text
      .trim()
      .replace(/^([\w./-]*)(\s.*|[^\w./-].*)$/s, '$1 ***')
      .trim();
  if (name === 'notify') return url.listOrigins(value as readonly string[]);
  return urls.includes(name) ? url.withoutUrlSecrets(text) : text;
}

const urls: readonly SettingName[] = ['baseUrl', 'tokenUrl', 'proxy', 'results'];

const writers = new Map<unknown, (value: unknown) => string>([
  [parse.duration, (value) => durationText(value as number)],
  [parse.graceTime, (value) => (value === 0 ? 'none' : durationText(value as number))],
  [url.webhookUrls, (value) => (value as string[]).join(',')],
  [parse.durations, (value) => (value as number[]).map(durationText).join(',')],
  [parse.rate, (value) => rateSetting(value as Rate)],
  [parse.listenAddress, (value) => parse.listenText(value as parse.ListenAddress)],
  [parse.delimiter, (value) => (value === '\t' ? 'tab' : String(value))],
]);

const units = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['min', 60_000],
  ['s', 1_000],
] as const;

/** A duration in the largest unit that divides it: 30d, 90s, 1500ms. */
export function durationText(ms: number): string {
  const [unit, size] = units.find(([, length]) => ms > 0 && ms % length === 0) ?? ['ms', 1];
  return `${ms / size}${unit}`;
}
