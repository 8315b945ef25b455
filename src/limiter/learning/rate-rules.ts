/** Every number of the learned rate, with its unit. The headings are the rules of `learn-rate.ts`. */
export const rateRules = {
  // Seek: double while nothing is refused
  startPerSecond: 20,
  seekFactor: 2, // the rate is multiplied by this …
  seekMs: 40, // … once so many milliseconds' worth of clean answers came (what leaves between two reports is 100), …
  seekAnswers: 3, // … and at least so many
  wellUsed: 0.75, // share of the allowed rate that must be sent before a higher one is tried, …
  wellUsedBusy: 0.25, // the same while processes lack computing time, in …
  busy: 0.25, // … this part of their reports, …
  demandMs: 1_000, // … over about this time

  idleMs: 1_500, // after so long without a call, nobody works on the target: a seek goes on from what was answered

  // Measure: hold the rate and see what is accepted
  settleMs: 110, // the first answers after a refusal may still come from the target's burst
  measureMs: 330,
  measureAnswers: 6,
  leastShare: 0.25, // a smaller accepted share is an outage or a spent quota, not a rate
  coarsePerSecond: 50, // below this rate a measurement would take too long and bring too many refusals

  // Ramp: from under `low` past `high`, then a climb
  under: 0.02, // begins this share under `low` …
  over: 0.01, // … and ends this share over `high`
  climbMs: 2_500, // after its end the rate grows by `climb` in this time, by 8 × `climb` in twice this time
  climb: 0.06,
  shortestMs: 5_000,
  refusedPrice: 0.004, // share of the answers that looking for more may cost
  manyAnswers: 300, // at low rates a ramp lasts for so many answers
  hastyAnswers: 30, // after a fall, which is measured in a hurry, for so many
  climbLatencies: 2, // `climbMs` is at least so many latencies
  longestMs: 15_000, // neither of the two above makes a ramp longer than this

  // Ramp after a Retry-After: each refusal makes all processes wait
  blockedPrice: 0.03, // share of the time that waiting may cost
  longBlockedPrice: 0.02, // the same of long waits
  longestBlockedMs: 60_000,
  narrow: 0.013, // bounds this close (high ÷ low − 1) are worth the full price; wider ones are looked into sooner
  knownWell: 1.1, // bounds this close (high ÷ low) are a limit that was known
  deepShare: 0.5, // fewer accepted answers than this share, right after a wait, are a deep fall, …
  deepest: 0.25, // … by this factor at most
  tightOver: 0.002, // ends at `high`, at least this share over `low`, …
  tightUnder: 0.25, // … and begins under `low` by this part of that distance
  stillSure: 0.99, // of what was sure before, with each further refusal
  refuted: 1.2, // a burst does not explain ramps that end early where the limit would be this times what is sure, …
  refutedKnown: 3, // … after so many that were long enough to know, or one that was not
  doubt: 0.25, // `high` is this part of the way from the limit that was found to the rate that was refused
  shortestBurstMs: 50, // assumed at first
  longestBurstMs: 1_000,
  surelyAbove: 0.003, // a ramp began above the limit when it began this share above it
  fallen: 0.7, // a limit under this share of what it was has fallen, which says nothing about the burst
  lateFactor: 2, // answers that take this times as long as usual, …
  lateMs: 40, // … and so much longer, have stood still somewhere: …
  lateForMs: 200, // … a refusal so soon after them says nothing about the rate, …
  excuseEveryMs: 8_000, // … unless the last refusal that was excused so is nearer than this
  behindMs: 150, // what left so shortly before a refusal was seen has no answer yet

  // Refusals
  knownMs: 2_000, // after this long, and …
  knownAnswers: 20, // … so many answers, a ramp has shown what is accepted; until then only a fall counts:
  fallMs: 400,
  fallAnswers: 6,
  fallShare: 0.08, // share of answers refused
  fallRoom: 1.25, // `high` is at most this × a `low` that was measured in a hurry

  // Steps
  setBackMs: 1_000, // the clock of Redis went back by more than this: nothing else that is stored has a meaning
  staleRateMs: 130, // how long after a step down permits may still be used at the old rate
  dropBelow: 0.7, // leases are dropped when the rate falls below this share of what it was
  roundingMs: 1, // less of an update is time in which requests might be sent by rounding alone
  recall: 0.9, // of what was known, after a silence
  leastPerSecond: 0.05,
  mostPerSecond: 1_000_000,
};
