import { parseCanary, parseExpectedCount, parseMaxFailures } from '../model/brakes.ts';
import { labelsSetting } from '../model/labels.ts';
import { formatOnStatus, parseOnStatus } from '../model/on-status.ts';
import { paceOf, parseRate } from '../model/rate.ts';
import { type IdCounts, resources } from '../model/resource.ts';
import { parseRetrySelection, parseSelection, retryWords, selectionWords } from '../model/selection.ts';
import { isRefusal } from '../model/status.ts';
import { suggest } from '../model/suggest.ts';
import { targetPattern } from '../model/target-pattern.ts';
import { parseTimeWindow, timeWindowSetting, windowStateAt } from '../model/time-window.ts';
import { compileIdPattern } from './id-pattern.ts';

// Each parser takes the text of one setting and returns its value, or throws an Error that says what was expected.

/** The values that a parser takes, if they can be listed: for the configuration file and its schema, and for shell completion. */
export type Takes = {
  words?: readonly string[];
  /** Comma-separated values, which the configuration file may hold as a list. */
  isList?: true;
  range?: { min: number; max: number };
  /** The kind of JSON value that the configuration file may hold instead of text. */
  json?: 'boolean' | 'number';
  /** Whether `none` is also accepted: see `orNone`. */
  mayBeNone?: true;
};

export function takenBy(parser: unknown): Takes {
  return typeof parser === 'function' ? (parser as Takes) : {};
}

export const text = (value: string): string => {
  if (value === '') throw new Error('expected a value, got nothing');
  return value;
};

export const textUpTo = (max: number) => (value: string) => {
  if (value.length <= max) return value;
  throw new Error(`expected at most ${max} characters, got ${value.length}`);
};

/** Several comma-separated texts, split where they are used. */
export const texts = Object.assign((value: string) => text(value), { isList: true } as const);

/** Patterns of base URLs, in normal form. `isStrict`: see `targetPattern`. */
export const targetPatterns = (isStrict: boolean) =>
  Object.assign((value: string): string[] => value.split(',').map((part) => targetPattern(part, isStrict)), {
    isList: true,
  } as const);

export const flag = Object.assign(
  (value: string): boolean => {
    if (['true', '1', 'yes', 'on'].includes(value)) return true;
    if (['false', '0', 'no', 'off', ''].includes(value)) return false;
    throw new Error(`expected true or false, got "${value}"`);
  },
  { json: 'boolean' } as const,
);

export const integerFrom = (min: number, max: number) => {
  const read = (value: string) => {
    const number = Number(value);
    if (/^\d+$/.test(value) && number >= min && number <= max) return number;
    throw new Error(`expected a whole number from ${min} to ${max}, got "${value}"`);
  };
  return Object.assign(read, { range: { min, max }, json: 'number' } as const);
};

export const positiveInteger = integerFrom(1, Number.MAX_SAFE_INTEGER);

/** A parser that also takes `none`, which ends a rule of a run. */
export function orNone<T, N>(parser: (value: string) => T, none: N) {
  const read = (value: string): T | N => (value === 'none' ? none : parser(value));
  return Object.assign(read, takenBy(parser), { mayBeNone: true } as const);
}

/** null = no bound */
export const positiveOrNone = orNone(positiveInteger, null);

/** A count as the output shows it: 249981 or 249,981. */
export const count = (value: string): number => {
  if (/^\d+$|^\d{1,3}(,\d{3})+$/.test(value)) return Number(value.replaceAll(',', ''));
  throw new Error(`expected a number like 249981 or 249,981, got "${value}"`);
};

export const oneOf = <const W extends string>(words: readonly W[]) => {
  const read = (value: string): W => {
    if ((words as readonly string[]).includes(value)) return value as W;
    throw new Error(`"${value}" is not one of ${words.join(', ')}.${suggest(value, words)}`);
  };
  return Object.assign(read, { words });
};

export const resource = oneOf(resources);

/** The number of objects of each resource: `annotations=5000,views=20`. The names are checked when the configuration file has been read. */
export const objectCounts = (value: string): IdCounts => {
  const parts = value.split(',').map((part) => /^([^=]+)=(\d{1,8})$/.exec(part));
  if (parts.includes(null)) throw new Error(`expected numbers like annotations=5000,views=20, got "${value}"`);
  return Object.fromEntries(parts.map((part) => [part![1]!, Number(part![2])]));
};

export const delimiter = (value: string): string => {
  if (value === 'tab' || value === '\\t') return '\t';
  if (value.length === 1 && !'"\r\n'.includes(value)) return value;
  throw new Error(`expected one character or "tab", got "${value}"`);
};

export const commentMark = (value: string): string => {
  if (/^[^\p{L}\p{N}\s"',{[]{1,3}$/u.test(value)) return value;
  throw new Error(`expected a mark like # or //, got "${value}"`);
};

export const idChars = (value: string): string => {
  const wrong = [...value].find((character) => !idCharacters.includes(character));
  if (wrong === undefined) return value;
  throw new Error(`only ${[...idCharacters.trim()].join(' ')} and the space can be allowed, got "${wrong}"`);
};

const idCharacters = '/\\%?#;"\'`,*|<> ';

/** A regular expression for whole ids; see `compileIdPattern`. */
export const idPattern = (value: string): string => {
  try {
    compileIdPattern(text(value));
    return value;
  } catch (error) {
    throw new Error(`"${value}" cannot be used as a pattern: ${(error as Error).message}`);
  }
};

/** `--on-status` in its normal form: texts that mean the same give the same value. */
export const onStatus = Object.assign((value: string) => formatOnStatus(parseOnStatus(text(value))), {
  isList: true,
} as const);

/** Statuses with which an API refuses an id, sorted and without repetition. */
export const refusals = Object.assign(
  (value: string): string => {
    const statuses = text(value)
      .split(',')
      .map((part) => part.trim());
    const wrong = statuses.find((status) => !/^[45]\d\d$/.test(status) || !isRefusal(Number(status)));
    if (wrong !== undefined)
      throw new Error(`expected statuses with which an API refuses an id, like 403,409, got "${wrong}"`);
    return [...new Set(statuses)].sort().join(',');
  },
  { isList: true } as const,
);

export const canary = Object.assign((value: string) => parseCanary(value), { isList: true, json: 'number' } as const);

export const labels = Object.assign((value: string) => labelsSetting(text(value)), { isList: true } as const);

export const maxFailures = orNone(Object.assign(parseMaxFailures, { json: 'number' } as const), 'none');

export const expectedCount = Object.assign((value: string) => parseExpectedCount(value), { json: 'number' } as const);

export const timeWindow = Object.assign((value: string) => timeWindowSetting(value), { isList: true } as const);

export const rate = Object.assign((value: string) => parseRate(value), { isList: true } as const);

/** Requests per second, as a plain number: `200/s` or `6000/min`. */
export const perSecond = (value: string): number => {
  const rate = parseRate(value);
  if (rate.length === 1) return paceOf(rate);
  throw new Error(`expected one rate like 200/s or 6000/min, got "${value}"`);
};

const unitsMs: Record<string, number> = { ms: 1, s: 1_000, min: 60_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** Milliseconds of `500ms`, `5s`, `2min`, `12h` or `30d`. */
export const duration = (value: string): number => {
  const match = /^(\d+(?:\.\d+)?)(ms|s|min|m|h|d)$/.exec(value);
  if (match) return Math.round(Number(match[1]) * unitsMs[match[2]!]!);
  throw new Error(`expected a duration like 500ms, 5s, 2min, 12h or 30d, got "${value}"`);
};

/** A duration of at least a second. */
export const longDuration = (value: string): number => {
  const ms = duration(value);
  if (ms >= 1_000) return ms;
  throw new Error(`expected a duration of at least 1s, got "${value}"`);
};

/** The longest grace period, in ms: a longer one is a slip, and its end need not be a date. */
const maxGraceMs = 365 * unitsMs.d!;

/** A grace period in ms; 0 = none. */
export const graceTime = orNone((value: string): number => {
  const ms = longDuration(value);
  if (ms <= maxGraceMs) return ms;
  throw new Error(`expected at most 365d, got "${value}"`);
}, 0);

/** Ms since 1970 for a date in UTC, or for a time with its offset from UTC. */
export const moment = (value: string): number => {
  const isMoment = /^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d))?$/.test(value);
  if (isMoment && Number.isFinite(Date.parse(value))) return Date.parse(value);
  throw new Error(`expected a moment like 2027-03-13 or 2027-03-13T12:00Z, got "${value}"`);
};

/** Ms since 1970 for a date or time, or for the time that long before `now`: `2d`, `90min`. */
export const momentOrAgo = (value: string, now = Date.now()): number => {
  if (/^\d+(?:\.\d+)?(ms|s|min|m|h|d)$/.test(value)) return now - duration(value);
  if (/^\d{4}-/.test(value)) return moment(value);
  throw new Error(`expected a moment like 2027-03-13 or 2027-03-13T12:00Z, or how long ago like 2d, got "${value}"`);
};

/** Ms since 1970 for a future time, or for the next time the clocks of a zone show this time: `06:00`, `06:00 Europe/Berlin`. */
export const futureMoment = (value: string, now = Date.now()): number => {
  const at = /^\d\d:\d\d/.test(value) ? nextTime(value, now) : moment(value);
  if (at > now) return at;
  throw new Error(`expected a future time, got "${value}", which is in the past`);
};

/** A time of day, with a zone or without: `06:00`, `06:00 Europe/Berlin`. See `nextTime`. */
export const timeOfDay = (value: string): string => {
  nextTime(value, 0);
  return value;
};

/** The next time that the clocks show this. If they skip it, the moment right after the gap. */
export function nextTime(value: string, now: number): number {
  const [, hours = '', minutes = '', zone = ''] = /^([01]\d|2[0-3]):([0-5]\d)( .*)?$/.exec(value) ?? [];
  const isToTheSecond = /^\d\d:\d\d:\d\d/.test(value);
  const form = isToTheSecond ? 'hours and minutes without seconds, like 06:00' : 'a time like 06:00';
  if (hours === '') throw new Error(`expected ${form} or 06:00 Europe/Berlin, got "${value}"`);
  const later = String((Number(hours) + 12) % 24).padStart(2, '0');
  const window = parseTimeWindow(`${hours}:${minutes}-${later}:${minutes}${zone}`); // the window opens at this time
  const { isOpen, until } = windowStateAt(window, now);
  return isOpen ? windowStateAt(window, until).until : until;
}

/** One or more of these words, separated by commas. */
export const someOf = <const W extends string>(words: readonly W[]) => {
  const read = (value: string): W[] => value.split(',').map((word) => oneOf(words)(word.trim()));
  return Object.assign(read, { words, isList: true } as const);
};

/** Outcomes and codes of rows. */
export const selection = Object.assign((value: string) => parseSelection(value), {
  words: selectionWords,
  isList: true,
} as const);

/** Outcomes and codes of rows that can be retried. */
export const retrySelection = Object.assign((value: string) => parseRetrySelection(value), {
  words: retryWords,
  isList: true,
} as const);

/** The waits before the later passes in ms: exactly five, because the attempts in a cell determine the next pass. */
export const durations = Object.assign(
  (value: string): number[] => {
    const list = value.split(',').map((part) => duration(part.trim()));
    if (list.length === 5) return list;
    throw new Error(`expected five durations separated by commas, got ${list.length}`);
  },
  { isList: true } as const,
);

/** The address to listen on. */
export type ListenAddress = { host: string; port: number };

/** `9464` is loopback only; `0.0.0.0:9464` and `[::]:9464` are all addresses of this machine. Port 0 takes a free one. */
export const listenAddress = Object.assign(
  (value: string): ListenAddress => {
    const match = /^(?:(\[[\da-f:.]+\]|[\w.-]+):)?(\d{1,5})$/i.exec(value);
    const port = Number(match?.[2]);
    if (match && port <= 65_535) return { host: match[1]?.replace(/^\[|\]$/g, '') ?? '127.0.0.1', port };
    throw new Error(`expected a port like 9464 (this machine only) or an address like 0.0.0.0:9464, got "${value}"`);
  },
  { json: 'number' } as const,
);

/** An address as `listenAddress` reads it. */
export function listenText({ host, port }: ListenAddress): string {
  return `${host.includes(':') ? `[${host}]` : host}:${port}`;
}

/** A number above 1: the allowed multiple of the usual size. */
export const factor = (value: string): number => {
  const number = Number(value);
  if (/^\d+(\.\d+)?$/.test(value) && number > 1) return number;
  throw new Error(`expected a number above 1, got "${value}"`);
};

/** The name of an HTTP header. */
export const headerName = (value: string): string => {
  if (/^[A-Za-z][\w-]{0,63}$/.test(value)) return value;
  throw new Error(`expected the name of a header like X-Forwarded-User, got "${value}"`);
};
