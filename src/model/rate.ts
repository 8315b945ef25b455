/** At most `count` requests in any `perMs` milliseconds. */
type Bound = { count: number; perMs: number };

/**
 * A limit on requests: one bound or more, each with another period, the shortest first. The first is the pace and is spread evenly: 6000/min is one
 * request per 10 ms. Each further bound is a quota: never more than its count in any window of its period.
 */
export type Rate = readonly Bound[];

/**
 * Reads `200/s`, `6000/min` or `200/s,100000/day`. Throws an Error that says what was expected. This includes a number without its period, 0,
 * fractions, two bounds for one period, and more than a million per second.
 */
export function parseRate(text: string): Rate {
  const parts = text.split(',').map((part) => part.trim());
  const rate = parts.map((part) => parseBound(part, text)).sort((a, b) => a.perMs - b.perMs);
  const twice = rate.find((bound, i) => bound.perMs === rate[i + 1]?.perMs);
  if (twice) throw new Error(`"${text}" has two limits per ${unitOf(twice).name}: which one holds?`);
  return rate;
}

/** Writes a rate for people: `200/s, at most 5,000 a minute and 100,000 a day`. */
export function rateText([pace, ...quotas]: Rate): string {
  const first = `${grouped(pace!.count)}/${unitOf(pace!).suffix}`;
  return quotas.length === 0 ? first : `${first}, at most ${quotasText([pace!, ...quotas])}`;
}

/** Writes the quotas for people, without the pace: `5,000 a minute and 100,000 a day`; '' if there is no quota. */
export function quotasText([, ...quotas]: Rate): string {
  return quotas.map(boundText).join(' and ');
}

/** Writes one bound for people: `100,000 a day`. */
export function boundText(bound: Bound): string {
  return `${grouped(bound.count)} ${unitOf(bound).each}`;
}

/**
 * The parts of the limit of a target. Its bound per second paces all requests, null = none does. Unlike in the rate of a run, each longer bound is a
 * quota, also the only one.
 */
export function partsOfLimit(limit: Rate | null): { perSecond: number | null; quotas: Rate } {
  const pace = limit?.find(({ perMs }) => perMs === secondMs);
  return { perSecond: pace?.count ?? null, quotas: (limit ?? []).filter((bound) => bound !== pace) };
}

const secondMs = 1_000; // as in limiter/target.lua.ts

/** Writes a rate as the flag takes it: `200/s,100000/day`. */
export function rateSetting(rate: Rate): string {
  return rate.map((bound) => `${bound.count}/${unitOf(bound).suffix}`).join(',');
}

/** Writes a rate as Redis holds it, for scripts: `200/1000,100000/86400000`, each bound a count and a period in ms, the pace first. */
export function storedRate(rate: Rate): string {
  return rate.map(({ count, perMs }) => `${count}/${perMs}`).join(',');
}

/** Reads what `storedRate` wrote; '' = no rate. Throws an Error for any other text, so that no limit is dropped silently. */
export function rateFromStored(text: string): Rate | null {
  if (text === '') return null;
  const rate = text.split(',').map((part) => {
    const [count, perMs] = part.split('/').map(Number);
    return { count: count!, perMs: perMs! };
  });
  if (storedRate(rate) === text && rate.every(isBound)) return rate;
  throw new Error(`expected a stored rate like 200/1000, got "${text}"`);
}

/** Reads a stored rate; null if there is none, or if another version wrote it in another form. */
export function readableRate(text: string): Rate | null {
  try {
    return rateFromStored(text);
  } catch {
    return null;
  }
}

/** The even pace, in requests per second. */
export function paceOf(rate: Rate): number {
  const { count, perMs } = rate[0]!;
  return (count * 1_000) / perMs;
}

const units = [
  { suffix: 's', name: 'second', each: 'a second', perMs: 1_000 },
  { suffix: 'min', name: 'minute', each: 'a minute', perMs: 60_000 },
  { suffix: 'h', name: 'hour', each: 'an hour', perMs: 3_600_000 },
  { suffix: 'day', name: 'day', each: 'a day', perMs: 86_400_000 },
] as const;

const maxPerSecond = 1_000_000;

function parseBound(part: string, text: string): Bound {
  if (/^[1-9]\d*$/.test(part))
    throw new Error(`expected a period, as in ${part}/s, ${part}/min, ${part}/h or ${part}/day, got "${part}"`);
  const [, digits, suffix] = /^(\d+(?:\.\d+)?)(?:\/([a-z]+))?$/.exec(part) ?? [];
  const unit = units.find((one) => one.suffix === suffix);
  if (digits === undefined || unit === undefined) throw unreadable(text);
  const count = Number(digits);
  // A quota of half a request means nothing, and a pace of half a request per second is 30/min.
  if (!Number.isInteger(count)) throw new Error(`expected a whole number of requests like 30/min, got "${part}"`);
  if (count === 0) throw new Error(`${unreadable(text).message}: at 0 nothing would ever be sent`);
  if ((count * 1_000) / unit.perMs > maxPerSecond) throw new Error(`"${part}" is more than a million a second`);
  return { count, perMs: unit.perMs };
}

function unreadable(text: string): Error {
  return new Error(`expected a rate like 200/s, 6000/min or 200/s,100000/day, got "${text}"`);
}

function isBound({ count, perMs }: Bound, at: number, rate: Rate): boolean {
  const isLonger = at === 0 || perMs > rate[at - 1]!.perMs;
  return Number.isSafeInteger(count) && count > 0 && isLonger && units.some((unit) => unit.perMs === perMs);
}

function unitOf({ perMs }: Bound) {
  return units.find((unit) => unit.perMs === perMs)!;
}

function grouped(n: number): string {
  return n.toLocaleString('en-US');
}
