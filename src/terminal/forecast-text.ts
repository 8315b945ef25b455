import { duration, isoTime, plural, rate, roughly } from '../format.ts';
import { type Forecast, forecastEnd } from '../model/forecast.ts';
import { partsAt } from '../model/time-zone.ts';

/** A forecast in one sentence: `about 6 h 40 min at the 83/s learned 3 d ago; in 2 windows; ends Thu 14:10 Europe/Berlin`. Pure but for the zone. */
export function forecastText(forecast: Forecast, zone = localZone()): string {
  const { causes, secondsFrom, secondsTo } = forecast;
  if (causes.length === 1 && secondsFrom === 0 && secondsTo === null)
    return 'not known before the first requests: no rate is set, and none was learned';
  return [timeText(forecast), ...waitTexts(forecast), ...endTexts(forecast, forecast.zone ?? zone)].join('; ');
}

/** A forecast for `--json` and the API: seconds, and times in ISO 8601; null = not known. */
export function forecastFacts(forecast: Forecast) {
  const { at, seconds, secondsFrom, secondsTo, fits, perSecond } = forecast;
  const momentIn = (after: number | null) => (after === null ? null : isoTime(at + 1_000 * after));
  return {
    seconds: rounded(seconds),
    seconds_from: rounded(secondsFrom),
    seconds_to: rounded(secondsTo),
    ends_at: momentIn(seconds),
    ends_from: momentIn(secondsFrom),
    ends_to: momentIn(secondsTo),
    per_second: perSecond,
    fits,
    because: [basisText(forecast), ...waitTexts(forecast)].filter(Boolean),
  };
}

/** A time by the clocks of a zone: `Thu 14:10 Europe/Berlin`; more than six days from `now`, `Thu 3 Dec 14:10 Europe/Berlin`. */
export function zonedTime(at: number, now: number, zone: string): string {
  const { weekday, day, month, year, hour, minute } = partsAt(zone, at);
  const time = `${hour}:${minute} ${zone}`;
  if (at - now < nearMs) return `${weekday} ${time}`;
  const name = new Date(Date.UTC(2000, Number(month) - 1)).toLocaleString('en-GB', { month: 'short', timeZone: 'UTC' });
  return `${weekday} ${Number(day)} ${name}${at - now > yearMs ? ` ${year}` : ''} ${time}`;
}

/** The time zone of this machine. */
function localZone(): string {
  return Intl.DateTimeFormat().resolvedOptions().timeZone;
}

const nearMs = 6 * 86_400_000;
const yearMs = 300 * 86_400_000;
const narrow = 1.4; // a range that is not wider than this factor is shown as one number

function timeText(forecast: Forecast): string {
  const { seconds, secondsFrom, secondsTo } = forecast;
  const [least, most] = [secondsFrom, secondsTo ?? 0].map((value) => duration(value * 1_000));
  const basis = basisText(forecast);
  const after = basis === '' ? '' : ` ${basis}`;
  if (secondsTo === null) return `at least ${least}${after}, longer if the API is slower`;
  if (least === most) return `about ${least}${after}`;
  if (seconds === null)
    return `${secondsFrom < 1 ? '' : `${least} to `}${secondsFrom < 1 ? 'at most ' : ''}${most}${after}`;
  if (!isRange(forecast)) return `about ${duration(seconds * 1_000)}${after}`;
  return `${least} to ${most}${after}`;
}

function isRange({ seconds, secondsFrom, secondsTo, causes }: Forecast): boolean {
  return seconds !== null && causes[0] === 'learned' && secondsTo! > secondsFrom * narrow;
}

/** The origin of its rate. */
function basisText({ perSecond, causes, learned, seconds }: Forecast): string {
  if (perSecond === null) return '';
  const shown = rate(learned?.perSecond ?? perSecond);
  if (causes[0] === 'rate') return `at the ${shown} of --rate`;
  if (causes[0] === 'limit') return `at the ${shown} of the limit of the target`;
  const ago = learned === null || learned.silentMs < freshMs ? '' : ` ${roughly(learned.silentMs)} ago`;
  if (seconds === null) return `at the ${shown} up to which nothing was refused${ago}, less if the API allows more`;
  return `at the ${shown} learned${ago || ' just now'}`;
}

const freshMs = 60_000;

function waitTexts({ causes, openings }: Forecast): string[] {
  return [
    ...(causes.includes('quota') ? ['waits for a quota'] : []),
    ...(openings > 1 || causes.includes('window') ? [`in ${plural(openings, 'windows')}`] : []),
  ];
}

const soonSeconds = 120;

function endTexts(forecast: Forecast, zone: string): string[] {
  const { at, seconds, secondsTo, fits, perSecond } = forecast;
  const endsAt = forecastEnd({ ...forecast, seconds: seconds ?? secondsTo });
  const end = zonedTime(endsAt, at, zone);
  if (fits !== null)
    return [`pauses ${end}, when ${plural(fits, 'ids')} ${perSecond === null ? 'at most ' : ''}are sent`];
  if (endsAt - at < soonSeconds * 1_000) return [];
  const bound = seconds !== null ? '' : secondsTo === null ? ' at the earliest' : ' at the latest';
  return [`ends ${isRange(forecast) ? 'about ' : ''}${end}${bound}`];
}

function rounded(seconds: number | null): number | null {
  return seconds === null ? null : Math.ceil(seconds);
}
