import { partsOfLimit, rateFromStored } from '../model/rate.ts';

/** A number of requests in any period, and how many of them were sent. `until`: when there is room again, ms since 1970; 0 = there is room. */
export type QuotaUse = { count: number; perMs: number; used: number; until: number };

type Hash = Record<string, string>;

/** The data in Redis about the quotas of a target: its limit ('' = none), and the requests by slice of a period. */
export type StoredQuotas = { limit: string; slices: Hash };

const slicesPerPeriod = 60; // as in lease.lua.ts

/** All quotas of a target, as `target.lua.ts` applies them at this moment. `now`: ms of the Redis clock. Pure. */
export function listQuotaUse({ limit, slices }: StoredQuotas, now: number): QuotaUse[] {
  const { quotas } = partsOfLimit(rateFromStored(limit));
  return quotas.map((quota) => ({ ...quota, ...useOf(slices, quota, now) }));
}

/** The facts that a forecast needs about a quota. `freeAt`: when there is room again, if it is used up. */
export function toBound({ count, perMs, used, until }: QuotaUse) {
  return { count, perMs, used, ...(until > 0 && { freeAt: until }) };
}

/** The quota that holds requests back the longest; null while all have room. */
export function spentQuota(quotas: readonly QuotaUse[], now: number): QuotaUse | null {
  const spent = quotas.filter(({ until }) => until > now);
  return spent.reduce<QuotaUse | null>((last, quota) => (last && last.until >= quota.until ? last : quota), null);
}

/** The use of a quota. The oldest slice that counts is the first to leave the period, with its requests. */
function useOf(slices: Hash, { count, perMs }: { count: number; perMs: number }, now: number) {
  const width = perMs / slicesPerPeriod;
  const oldest = Math.floor(now / width) - slicesPerPeriod;
  const within = Object.entries(slices).flatMap(([name, sent]) => {
    const [period, slice] = name.split(':').map(Number);
    return period === perMs && slice! >= oldest && Number(sent) > 0 ? [{ slice: slice!, sent: Number(sent) }] : [];
  });
  const used = within.reduce((sum, { sent }) => sum + sent, 0);
  const isSpent = count - used < 1 && within.length > 0;
  return { used, until: isSpent ? (Math.min(...within.map(({ slice }) => slice)) + slicesPerPeriod + 1) * width : 0 };
}
