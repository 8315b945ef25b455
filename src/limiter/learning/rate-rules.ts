/** Every number of the learned rate, with its unit. The headings are the rules of `learn-rate.ts`. */
export const rateRules = {
  // Seek: double while nothing is refused
  startPerSecond: 20,
  seekFactor: 2, // factor between one rate and the next
  seekMs: 40, // clean answers before the next rate, in ms at the present rate; two reports are 100 ms apart
  seekAnswers: 3, // fewest clean answers before the next rate
  wellUsedShare: 0.75, // share of the allowed rate that must be sent before a higher rate is tried
  wellUsedShareWhenBusy: 0.25, // share of the allowed rate that must be sent while processes lack computing time
  busyShare: 0.25, // share of the reports that must be busy for processes to lack computing time
  demandMs: 1_000, // time in which the counts of sent, allowed and busy fade
  demandRequests: 3, // requests after which the counts of sent and allowed fade, at low rates

  idleMs: 1_500, // time without a call after which no process works on the target, so that a seek restarts from the rate that was answered

  // Measure: hold the rate and see what is accepted
  settleMs: 110, // time at the start that is not measured, because these answers may still come from the target's burst
  measureMs: 330, // shortest measurement
  measureAnswers: 6, // fewest answers in a measurement
  minAcceptedShare: 0.25, // a smaller accepted share is an outage or a spent quota, not a rate
  coarsePerSecond: 50, // below this rate a measurement would take too long and bring too many refusals

  // Ramp: from under `low` past `high`, then a climb
  underShare: 0.02, // distance of the start below `low`, as a share of `low`
  overShare: 0.01, // distance of the end above `high`, as a share of `high`
  climbMs: 2_500, // time after the end in which the rate grows by `climbShare`; in twice this time it grows by 8 × `climbShare`
  climbShare: 0.06, // growth of the rate in `climbMs`
  minRampMs: 5_000,
  refusedPrice: 0.004, // share of the answers that the search for a higher rate may cost
  manyAnswers: 300, // answers in a ramp, at low rates
  quickAnswers: 30, // answers in a ramp after a fall, at low rates: few, because the new limit was measured quickly
  climbLatencies: 2, // shortest `climbMs`, in latencies
  maxRampMs: 15_000, // longest ramp, whatever the price and the answers ask for

  climbAnswers: 2, // answers in the shortest `climbMs`, at low rates, …
  maxClimbMs: 10_000, // … at which it is no longer than this
  maxDoubtMs: 120_000, // longest ramp to a limit that neither enough answers nor an earlier ramp has shown

  // Ramp after a Retry-After: each refusal makes all processes wait
  blockedPrice: 0.03, // share of the time that waits may cost
  longBlockedPrice: 0.02, // share of the time that long waits may cost, for which a ramp may exceed `maxBlockedMs`
  maxBlockedMs: 60_000,
  narrowSpread: 0.013, // bounds this close (high ÷ low − 1) are worth the full price; wider bounds get a shorter ramp
  knownWellRatio: 1.1, // bounds closer than this (high ÷ low) are a limit that was known well
  deepFallShare: 0.5, // a smaller accepted share right after a wait is a deep fall
  minDeepFall: 0.25, // smallest factor by which a deep fall lowers the rate
  tightOverShare: 0.002, // smallest distance between `low` and the end of the ramp, as a share of `low`
  tightUnderShare: 0.25, // distance of the start below `low`, as a share of the distance of the end above `low`
  sureFactor: 0.99, // factor on what is sure at each further refusal, because a limit may fall
  refutedRatio: 1.2, // a burst does not explain early ends that suggest a limit of more than this times what is sure
  refutedAfter: 3, // early ends in a row that a burst may explain; the next refutes the burst. 1 if the last ramp was too short to tell
  doubtShare: 0.25, // position of `high` between the limit that was found (0) and the rate that was refused (1)
  minBurstMs: 50, // first assumption about the burst
  maxBurstMs: 1_000,
  surelyAboveShare: 0.003, // a ramp that began this share above the limit surely began above it
  fallenShare: 0.7, // a limit below this share of its former value has fallen, which says nothing about the burst
  lateFactor: 2, // late answers take more than this times the usual latency, plus `lateMs`: requests stood still somewhere
  lateMs: 40, // time by which late answers exceed `lateFactor` × the usual latency
  lateForMs: 200, // time after late answers in which a refusal says nothing about the rate
  excuseEveryMs: 8_000, // least time between two refusals that are excused by late answers
  behindMs: 150, // requests sent this shortly before a refusal was seen have no answer yet

  // Refusals
  knownMs: 2_000, // shortest ramp that shows what is accepted; in a shorter ramp only a fall counts
  knownAnswers: 20, // fewest accepted answers in such a ramp
  fallMs: 400, // shortest time that shows a fall
  fallAnswers: 6, // fewest answers that show a fall
  fallShare: 0.08, // smallest share of refused answers in a fall
  fallRoom: 1.25, // largest `high`, as a multiple of a `low` that was measured quickly

  // Steps
  olderAnswersMs: 3_000, // time after a ceiling came in which the target closes because of requests from before
  clockRollbackMs: 1_000, // if the clock of Redis goes back by more than this, no stored time has a meaning
  staleRateMs: 130, // time after a step down in which permits may still be used at the old rate
  dropBelowShare: 0.7, // leases are dropped when the rate falls below this share of the rate before
  roundingMs: 1, // an update with less open time than this was open by rounding alone
  recallFactor: 0.9, // factor on the known bounds after a silence
  minPerSecond: 0.05,
  maxPerSecond: 1_000_000,
};
