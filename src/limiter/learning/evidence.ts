/** The answers in a stretch of time that began with a refusal and ends with the next one. Times are ms. */
export type Stretch = {
  accepted: number;
  /** Time in which requests were sent and answered. */
  openMs: number;
  /** Time in which sending was not allowed; default 0. */
  waitMs?: number;
  /** Burst that the target may have had ready at the start, in ms of its limit; default 0. */
  burstMs?: number;
};

/** What a stretch says about the limit of a target, in requests per second. */
export type Evidence = {
  /** Lower bound of the limit. Nothing was left at the start, so everything accepted became allowed in this time, waits included. */
  min: number;
  /** The limit, if the burst was ready. */
  likely: number;
  /** Upper bound of the limit, because nothing was left at the end. It fails if the target refuses for other reasons. */
  max: number;
};

/** Estimates a limit from what was accepted. All decisions about the rate start from this estimate. */
export function evidence({ accepted, openMs, waitMs = 0, burstMs = 0 }: Stretch): Evidence {
  const perSecond = (ms: number) => (accepted * 1_000) / Math.max(1, ms);
  return { min: perSecond(openMs + waitMs), likely: perSecond(openMs + burstMs), max: perSecond(openMs) };
}
