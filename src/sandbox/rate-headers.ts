/** How a server may tell of its limit: as the newest draft does, as drafts 07 and 06 did, or by custom, with three kinds of reset. */
export const rateHeaderKinds = [
  'ratelimit',
  'ratelimit-07',
  'ratelimit-06',
  'x-ratelimit-delta',
  'x-ratelimit-epoch',
  'x-ratelimit-epoch-ms',
] as const;
export type RateHeaderKind = (typeof rateHeaderKinds)[number];

/** A limit as it stands: so many of `quota` requests remain, and in `resetMs` it counts afresh. */
export type Standing = { quota: number; windowMs: number; remaining: number; resetMs: number };

/** The headers that tell of it. Seconds are rounded up: obeying them never comes too early. */
export function formatRateHeaders(kind: RateHeaderKind, standing: Standing, nowMs: number): Record<string, string> {
  const [quota, remaining] = [Math.floor(standing.quota), Math.floor(standing.remaining)];
  const [window, reset] = [Math.ceil(standing.windowMs / 1_000), Math.ceil(standing.resetMs / 1_000)];
  switch (kind) {
    case 'ratelimit':
      return {
        'ratelimit-policy': `"default";q=${quota};w=${window}`,
        ratelimit: `"default";r=${remaining};t=${reset}`,
      };
    case 'ratelimit-07':
      return {
        'ratelimit-policy': `${quota};w=${window}`,
        ratelimit: `limit=${quota}, remaining=${remaining}, reset=${reset}`,
      };
    case 'ratelimit-06':
      return threeHeaders('ratelimit', `${quota}, ${quota};w=${window}`, remaining, reset);
    case 'x-ratelimit-delta':
      return threeHeaders('x-ratelimit', quota, remaining, reset);
    case 'x-ratelimit-epoch':
      return threeHeaders('x-ratelimit', quota, remaining, Math.ceil((nowMs + standing.resetMs) / 1_000));
    case 'x-ratelimit-epoch-ms':
      return threeHeaders('x-ratelimit', quota, remaining, Math.ceil(nowMs + standing.resetMs));
  }
}

function threeHeaders(prefix: string, limit: number | string, remaining: number, reset: number) {
  return {
    [`${prefix}-limit`]: String(limit),
    [`${prefix}-remaining`]: String(remaining),
    [`${prefix}-reset`]: String(reset),
  };
}
