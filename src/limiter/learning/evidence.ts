/** What was accepted in a stretch of time that began when the target refused, and ends with a refusal. Times are ms. */
export type Stretch = {
  accepted: number;
  /** In which requests were sent and answered. */
  openMs: number;
  /** In which none might be sent; default 0. */
  waitMs?: number;
  /** The burst that the target may have had ready at its begin, in ms of its limit; default 0. */
  burstMs?: number;
};

/** What a stretch says about the limit of a target, requests a second. */
export type Evidence = {
  /** The limit is no lower: nothing was left at the begin, so all that was accepted came to be allowed since, waits included. */
  least: number;
  /** The limit, if the burst was ready. */
  likely: number;
  /** The limit is no higher, unless the target refuses for other reasons: nothing was left at the end. */
  most: number;
};

/** The one estimate of a limit from what was accepted; the decisions about the rate start from it. */
export function evidence({ accepted, openMs, waitMs = 0, burstMs = 0 }: Stretch): Evidence {
  const perSecond = (ms: number) => (accepted * 1_000) / Math.max(1, ms);
  return { least: perSecond(openMs + waitMs), likely: perSecond(openMs + burstMs), most: perSecond(openMs) };
}
