/** What a simulated server answers to one request: whether it lets it through, and after how long. */
type Answer = { accepted: boolean; serviceMs: number; blockedUntilMs: number };

/** A simulated server. It is asked once for each request, in the order in which they arrive. */
export type LimitedServer = {
  answer(nowMs: number): Answer;
  /** Requests a second it lets through at present; infinite where only its capacity limits it. */
  limit(): number;
  setLimit(perSecond: number, nowMs: number): void;
};

/** What comes with a refusal: no header, seconds, or a date (whole seconds, so one to two seconds from now). */
export type RetryAfter = 'none' | 'delta' | 'date';

const blockEndMs: Record<RetryAfter, (nowMs: number) => number> = {
  none: () => 0,
  delta: (nowMs) => nowMs + 1000,
  date: (nowMs) => Math.ceil(nowMs / 1000 + 1) * 1000,
};

/** A token bucket: `perSecond` on the long run, `burstSeconds` of it at once. */
export function tokenBucket(perSecond: number, burstSeconds: number, retryAfter: RetryAfter = 'none'): LimitedServer {
  const size = () => Math.max(1, limit * burstSeconds);
  let limit = perSecond;
  let tokens = size();
  let filledMs = 0;
  const fill = (nowMs: number) => {
    tokens = Math.min(size(), tokens + ((nowMs - filledMs) / 1000) * limit);
    filledMs = nowMs;
  };
  return {
    answer(nowMs) {
      fill(nowMs);
      if (tokens < 1) return { accepted: false, serviceMs: 0, blockedUntilMs: blockEndMs[retryAfter](nowMs) };
      tokens -= 1;
      return { accepted: true, serviceMs: 0, blockedUntilMs: 0 };
    },
    limit: () => limit,
    setLimit(next, nowMs) {
      fill(nowMs);
      limit = next;
      tokens = Math.min(tokens, size());
    },
  };
}

/** A fixed window: `perSecond` × one second at once, then nothing until the next second begins. */
export function fixedWindow(perSecond: number): LimitedServer {
  let limit = perSecond;
  let window = -1;
  let used = 0;
  return {
    answer(nowMs) {
      if (Math.floor(nowMs / 1000 + 0.37) !== window) {
        window = Math.floor(nowMs / 1000 + 0.37);
        used = 0;
      }
      used += 1;
      return { accepted: used <= limit, serviceMs: 0, blockedUntilMs: 0 };
    },
    limit: () => limit,
    setLimit(next) {
      limit = next;
    },
  };
}

/** A server of `places` places, each busy for about `serviceMs`, and a queue of any length before them. It refuses nothing. */
export function queueing(places: number, serviceMs: number, random: () => number): LimitedServer {
  const freeMs = new Array<number>(places).fill(0);
  return {
    answer(nowMs) {
      const place = freeMs.indexOf(Math.min(...freeMs));
      const start = Math.max(nowMs, freeMs[place]!);
      freeMs[place] = start + serviceMs * (0.9 + 0.2 * random());
      return { accepted: true, serviceMs: freeMs[place]! - nowMs, blockedUntilMs: 0 };
    },
    limit: () => Number.POSITIVE_INFINITY,
    setLimit() {},
  };
}

/** Lets everything through at once. */
export function unlimited(): LimitedServer {
  return {
    answer: () => ({ accepted: true, serviceMs: 0, blockedUntilMs: 0 }),
    limit: () => Number.POSITIVE_INFINITY,
    setLimit() {},
  };
}

/**
 * A client that is short of computing time rather than a limited server: each doubling of what is in flight brings
 * `gain` more throughput (0.25 = a quarter more). The time an answer takes follows from that.
 */
export function cpuBoundClient(baseMs: number, gain: number): LimitedServer {
  const endsMs: number[] = [];
  return {
    answer(nowMs) {
      while (endsMs.length > 0 && endsMs[0]! <= nowMs) endsMs.shift();
      const inFlight = endsMs.length + 1;
      const serviceMs = baseMs * (2 / (1 + gain)) ** Math.log2(inFlight);
      endsMs.splice(endsMs.findLastIndex((end) => end <= nowMs + serviceMs) + 1, 0, nowMs + serviceMs);
      return { accepted: true, serviceMs, blockedUntilMs: 0 };
    },
    limit: () => Number.POSITIVE_INFINITY,
    setLimit() {},
  };
}
