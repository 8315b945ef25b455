/** Servers with a rate limit, in virtual time (ms). Each is asked once for a request, in the order of their arrival. */

export type Headers = Record<string, string>;
type Reply = { status: number; headers: Headers; serviceMs: number; broken?: 'reset' | 'refused' };
/** What a limiter knows of itself, for servers that tell. */
type Quota = { limit: number; remaining: number; resetMs: number; windowS: number };
export type Server = {
  answer(now: number, isOther?: boolean): Reply;
  /** Requests a second it lets through at present. */
  perSecond(now: number): number;
  setLimit(perSecond: number, now: number): void;
  quota?(now: number): Quota;
};

const none: Headers = {};
const accepted: Reply = { status: 204, headers: none, serviceMs: 0 };
const refused: Reply = { status: 429, headers: none, serviceMs: 0 };
const ok = (serviceMs = 0): Reply => (serviceMs === 0 ? accepted : { status: 204, headers: none, serviceMs });
const no = (): Reply => refused;

export function tokenBucket(perSecond: number, burstSeconds: number): Server {
  let limit = perSecond;
  const size = () => Math.max(1, limit * burstSeconds);
  let tokens = size();
  let last = 0;
  const fill = (now: number) => {
    tokens = Math.min(size(), tokens + ((now - last) / 1000) * limit);
    last = now;
  };
  return {
    answer(now) {
      fill(now);
      if (tokens < 1) return no();
      tokens -= 1;
      return ok();
    },
    perSecond: () => limit,
    setLimit(next, now) {
      fill(now);
      limit = next;
      tokens = Math.min(tokens, size());
    },
    quota: (now) => {
      fill(now);
      return {
        limit: size(),
        remaining: Math.floor(tokens),
        resetMs: ((size() - tokens) / limit) * 1000,
        windowS: size() / limit,
      };
    },
  };
}

/** nginx limit_req rate=…r/s burst=… without nodelay: what comes early waits, what is too early is refused. */
export function leakyDelay(perSecond: number, burst: number): Server {
  let limit = perSecond;
  let excess = 0;
  let last = Number.NEGATIVE_INFINITY;
  return {
    answer(now) {
      const next = Math.max(0, excess - ((now - last) / 1000) * limit) + (last === Number.NEGATIVE_INFINITY ? 0 : 1);
      if (next > burst) return no();
      excess = next;
      last = now;
      return ok((excess / limit) * 1000);
    },
    perSecond: () => limit,
    setLimit(next) {
      limit = next;
    },
  };
}

/** How many requests a period has, which a scenario may change. */
function perPeriod(perSecond: number, periodMs: number): Pick<Server, 'perSecond' | 'setLimit'> & { count(): number } {
  const countOf = (rate: number) => Math.max(1, Math.round((rate * periodMs) / 1000));
  let count = countOf(perSecond);
  return {
    count: () => count,
    perSecond: () => (count * 1000) / periodMs,
    setLimit(next) {
      count = countOf(next);
    },
  };
}

/** So many in each window. Unaligned: a window begins with the first request after the last one. */
export function fixedWindow(perSecond: number, periodMs: number, aligned = true): Server {
  const limit = perPeriod(perSecond, periodMs);
  let ends = aligned ? -1 : 0;
  let used = 0;
  const roll = (now: number) => {
    if (now < ends) return;
    used = 0;
    ends = aligned ? (Math.floor(now / periodMs + 0.37) + 1 - 0.37) * periodMs : now + periodMs;
  };
  return {
    answer(now) {
      roll(now);
      if (used >= limit.count()) return no();
      used++;
      return ok();
    },
    ...limit,
    quota: (now) => {
      roll(now);
      return quotaOf(limit.count(), limit.count() - used, ends - now, periodMs);
    },
  };
}

export function slidingLog(perSecond: number, periodMs: number): Server {
  const limit = perPeriod(perSecond, periodMs);
  let log: number[] = [];
  let head = 0;
  const drop = (now: number) => {
    while (head < log.length && log[head]! <= now - periodMs) head++;
    if (head > 50_000) {
      log = log.slice(head);
      head = 0;
    }
  };
  return {
    answer(now) {
      drop(now);
      if (log.length - head >= limit.count()) return no();
      log.push(now);
      return ok();
    },
    ...limit,
    quota: (now) => {
      drop(now);
      return quotaOf(limit.count(), limit.count() - (log.length - head), periodMs, periodMs);
    },
  };
}

/** What a window of `limit` requests has left. */
function quotaOf(limit: number, left: number, resetMs: number, periodMs: number): Quota {
  return { limit, remaining: Math.max(0, left), resetMs, windowS: periodMs / 1000 };
}

/** The last window counts by the part of it that is not a period ago. `resets`: what it tells of its reset, a period or the end of its window. */
export function slidingCounter(perSecond: number, periodMs: number, resets: 'period' | 'end' = 'period'): Server {
  const limit = perPeriod(perSecond, periodMs);
  let window = 0;
  let [before, current] = [0, 0];
  const roll = (now: number) => {
    const k = Math.floor(now / periodMs + 0.37);
    if (k === window) return;
    before = k === window + 1 ? current : 0;
    current = 0;
    window = k;
  };
  const used = (now: number) => {
    const part = now / periodMs + 0.37 - window;
    return before * (1 - part) + current;
  };
  return {
    answer(now) {
      roll(now);
      if (used(now) + 1 > limit.count()) return no();
      current++;
      return ok();
    },
    ...limit,
    quota: (now) => {
      roll(now);
      const resetMs = resets === 'period' ? periodMs : (window + 1 - 0.37) * periodMs - now;
      return quotaOf(limit.count(), Math.floor(limit.count() - used(now)), resetMs, periodMs);
    },
  };
}

/** At most `places` at once; more are refused. */
export function concurrency(places: number, serviceMs: number, random: () => number): Server {
  const ends: number[] = [];
  let n = places;
  return {
    answer(now) {
      for (let i = ends.length - 1; i >= 0; i--) if (ends[i]! <= now) ends.splice(i, 1);
      if (ends.length >= n) return no();
      const service = serviceMs * (0.8 + 0.4 * random());
      ends.push(now + service);
      return ok(service);
    },
    perSecond: () => (n * 1000) / serviceMs,
    setLimit(next) {
      n = Math.round((next * serviceMs) / 1000);
    },
  };
}

/** `places` at once, and a queue of any length. */
export function queueing(places: number, serviceMs: number, random: () => number): Server {
  const free = new Array<number>(places).fill(0);
  return {
    answer(now) {
      let at = 0;
      for (let i = 1; i < free.length; i++) if (free[i]! < free[at]!) at = i;
      const start = Math.max(now, free[at]!);
      free[at] = start + serviceMs * (0.9 + 0.2 * random());
      return ok(free[at]! - now);
    },
    perSecond: () => (places * 1000) / serviceMs,
    setLimit() {},
  };
}

export function unlimited(serviceMs = 0): Server {
  return { answer: () => ok(serviceMs), perSecond: () => Number.POSITIVE_INFINITY, setLimit() {} };
}

// ---- what may be put around one ----

const over = (inner: Server, answer: Server['answer'], more: Partial<Server> = {}): Server => ({
  ...inner,
  answer,
  ...more,
});

/** A share of what would have been let through is refused, whatever the rate. */
export function randomly(inner: Server, share: number, random: () => number, status = 429): Server {
  return over(inner, (now, other) => {
    if (!other && random() < share) return { status, headers: {}, serviceMs: 0 };
    return inner.answer(now, other);
  });
}

export function withStatus(inner: Server, status: number): Server {
  return over(inner, (now, other) => {
    const reply = inner.answer(now, other);
    return reply.status === 429 ? { ...reply, status } : reply;
  });
}

/** `seconds` or a date; `maxS`: never more than this. */
export function retryAfter(
  inner: Server,
  form: 'seconds' | 'date',
  waitMs: (now: number) => number = () => 1000,
  maxS = 1e9,
): Server {
  return over(inner, (now, other) => {
    const reply = inner.answer(now, other);
    if (reply.status < 400 || other) return reply;
    const ms = waitMs(now);
    const text =
      form === 'seconds'
        ? String(Math.min(maxS, Math.max(1, Math.ceil(ms / 1000))))
        : httpDate(now + Math.max(1000, ms));
    return { ...reply, headers: { ...reply.headers, 'retry-after': text, date: httpDate(now) } };
  });
}

/** Until the quota is there again. */
export function retryAfterReset(inner: Server, maxS = 3600, form: 'seconds' | 'date' = 'seconds'): Server {
  return retryAfter(inner, form, (now) => inner.quota!(now).resetMs, maxS);
}

export const epochMs = 1_790_000_000_000;
/** Rounds down to the second, as servers do, and makes each text once. */
function httpDate(now: number): string {
  const second = Math.floor((epochMs + now) / 1_000);
  if (second !== lastDate.second) lastDate = { second, text: new Date(second * 1_000).toUTCString() };
  return lastDate.text;
}
let lastDate = { second: 0, text: '' };

export type HeaderKind =
  | 'draft-6'
  | 'draft-7'
  | 'draft-8'
  | 'x-delta'
  | 'x-epoch-s'
  | 'x-epoch-ms'
  | 'x-epoch-fraction'
  | 'x-wrong'
  | 'remaining-stuck'
  | 'remaining-low-stuck'
  | 'remaining-zero-stuck'
  | 'reset-past'
  | 'reset-stuck';

export function telling(inner: Server, kind: HeaderKind): Server {
  return over(inner, (now, other) => {
    const reply = inner.answer(now, other);
    if (other) return reply;
    const { limit, remaining, resetMs, windowS } = inner.quota!(now);
    const resetS = Math.ceil(resetMs / 1000);
    const L = Math.round(limit);
    const h: Headers = { ...reply.headers, date: httpDate(now) };
    const epoch = epochMs + now + resetMs;
    if (kind === 'draft-6')
      Object.assign(h, {
        'ratelimit-policy': `${L};w=${Math.ceil(windowS)}`,
        'ratelimit-limit': `${L}`,
        'ratelimit-remaining': `${remaining}`,
        'ratelimit-reset': `${resetS}`,
      });
    if (kind === 'draft-7')
      Object.assign(h, {
        'ratelimit-policy': `${L};w=${Math.ceil(windowS)}`,
        ratelimit: `limit=${L}, remaining=${remaining}, reset=${resetS}`,
      });
    if (kind === 'draft-8')
      Object.assign(h, {
        'ratelimit-policy': `"p"; q=${L}; w=${Math.ceil(windowS)}; pk=:YWJj:`,
        ratelimit: `"p"; r=${remaining}; t=${resetS}`,
      });
    const x = (r: string | number, t: string | number) =>
      Object.assign(h, { 'x-ratelimit-limit': `${L}`, 'x-ratelimit-remaining': `${r}`, 'x-ratelimit-reset': `${t}` });
    if (kind === 'x-delta') x(remaining, resetS);
    if (kind === 'x-epoch-s') x(remaining, Math.ceil(epoch / 1000));
    if (kind === 'x-epoch-fraction') x(remaining, (epoch / 1000).toFixed(3));
    if (kind === 'x-epoch-ms') x(remaining, Math.round(epoch));
    if (kind === 'x-wrong') x(Math.floor((now * 7919) % 100), Math.floor((now * 104729) % 3600)); // noise
    if (kind === 'remaining-stuck') x(L, 60); // as if never used
    if (kind === 'remaining-low-stuck') x(10, 60);
    if (kind === 'remaining-zero-stuck') x(0, 60);
    if (kind === 'reset-past') x(remaining, Math.floor((epochMs + now) / 1000) - 30);
    if (kind === 'reset-stuck') x(remaining, 3600);
    return { ...reply, headers: h };
  });
}

/** Once its limit is exceeded it refuses all for so long; `extend`: since the last request. */
export function penalty(inner: Server, ms: number, { tells = false, extend = false } = {}): Server {
  let endsAt = 0;
  return over(inner, (now, other) => {
    if (now >= endsAt) {
      const reply = inner.answer(now, other);
      if (reply.status === 204) return reply;
      endsAt = now + ms;
    } else if (extend) endsAt = now + ms;
    return { ...no(), headers: tells ? { 'retry-after': String(Math.ceil((endsAt - now) / 1000)) } : {} };
  });
}

/** Lets so many requests through from one ban to the next, until its limit changes. Its quota says how long the ban lasts. */
export function banning(quota: number, banMs: number, after: Server): Server {
  let [used, endsAt, isOver] = [0, 0, false];
  return {
    ...after,
    answer(now, other) {
      if (isOver) return after.answer(now, other);
      if (now >= endsAt && ++used <= quota) return ok();
      if (now >= endsAt) [used, endsAt] = [0, now + banMs];
      return no();
    },
    setLimit(next, now) {
      isOver = true;
      after.setLimit(next, now);
    },
    quota: (now) =>
      isOver && after.quota !== undefined
        ? after.quota(now)
        : { limit: quota, remaining: 0, resetMs: Math.max(0, endsAt - now), windowS: banMs / 1_000 },
  };
}

/** Only its refusals say anything in headers. */
export function tellingWhenRefused(inner: Server, kind: HeaderKind): Server {
  const told = telling(inner, kind);
  return over(told, (now, other) => {
    const reply = told.answer(now, other);
    return reply.status === 204 ? ok(reply.serviceMs) : reply;
  });
}

/** Answers to a share of the requests are lost, at any rate. */
export function losing(inner: Server, share: number, random: () => number): Server {
  return over(inner, (now, other) =>
    random() < share ? { status: 0, headers: {}, serviceMs: 0, broken: 'reset' } : inner.answer(now, other),
  );
}

/** Two limits, both of which hold. */
export function both(outer: Server, inner: Server): Server {
  return over(inner, (now, other) => {
    const reply = outer.answer(now, other);
    return reply.status === 204 ? inner.answer(now, other) : reply;
  });
}

/** Down for a part of each period, whatever the rate. */
export function flapping(inner: Server, downMs: number, everyMs: number, share = 1, random = () => 0): Server {
  return over(inner, (now, other) => {
    if (now % everyMs >= downMs || random() >= share) return inner.answer(now, other);
    return { status: 503, headers: {}, serviceMs: 0 };
  });
}

/** One request is refused at each of these moments, in seconds, whatever the rate. */
export function refusingAt(inner: Server, atS: readonly number[]): Server {
  const left = [...atS];
  return over(inner, (now, other) => {
    if (other || left.length === 0 || now < left[0]! * 1_000) return inner.answer(now, other);
    left.shift();
    return no();
  });
}

/** Down for a while. */
export function downBetween(inner: Server, fromS: number, toS: number, how: 503 | 'reset' | 'refused' | 429): Server {
  return over(inner, (now, other) => {
    if (now < fromS * 1000 || now >= toS * 1000) return inner.answer(now, other);
    if (how === 503 || how === 429) return { status: how, headers: {}, serviceMs: 0 };
    return { status: 0, headers: {}, serviceMs: 0, broken: how };
  });
}
