import { type Rate, rateSetting } from '../model/rate.ts';
import * as parse from './parse-setting.ts';
import { type Config, type SettingName, settings } from './settings.ts';

/** The value of a setting as its flag would take it, or null where it has none. Reading it again gives the same value. */
export function settingText<N extends SettingName>(name: N, value: Config[N]): string | null {
  if (value === undefined) return null;
  const writer = writers.get(settings[name].parse);
  return writer ? writer(value) : String(value);
}

/** The same for people to see: without what may be a secret. */
export function shownSetting<N extends SettingName>(name: N, value: Config[N]): string | null {
  const text = settingText(name, value);
  if (text === null) return null;
  if (name === 'tokenCommand')
    return text
      .trim()
      .replace(/^([\w./-]*)(\s.*|[^\w./-].*)$/s, '$1 ***')
      .trim();
  return urls.includes(name) ? parse.withoutUrlSecrets(text) : text;
}

const urls: readonly SettingName[] = ['baseUrl', 'tokenUrl', 'proxy'];

const writers = new Map<unknown, (value: unknown) => string>([
  [parse.duration, (value) => durationText(value as number)],
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

/** In the largest unit that divides it: 30d, 90s, 1500ms. */
function durationText(ms: number): string {
  const [unit, size] = units.find(([, length]) => ms > 0 && ms % length === 0) ?? ['ms', 1];
  return `${ms / size}${unit}`;
}
