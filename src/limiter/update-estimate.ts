import { firstInFlight, type InFlight, learnInFlight } from './learn-in-flight.ts';
import { learnRate, recallRate } from './learn-rate.ts';
import { firstRate, type LearnedRate, type Observation } from './learned-rate.ts';
import { detectOverload, initialOverload, type OverloadState } from './overload.ts';
import type { Learned, TargetReply } from './target-call.ts';

/** What is kept of a target between updates of the estimate, and from one run to the next. */
type Kept = { rate: LearnedRate; inFlight: InFlight; overload: OverloadState };

/** The sums of the script; see target.lua.ts. */
type Sums = Record<
  | 'blockedMs'
  | 'accepted'
  | 'refused'
  | 'trouble'
  | 'currentaccepted'
  | 'currentrefused'
  | 'currenttrouble'
  | 'sent'
  | 'latencies'
  | 'latencySum'
  | 'latencySquares'
  | 'starved'
  | 'busy'
  | 'reports'
  | 'lost'
  | 'tripped'
  | 'recall'
  | 'holdUntil'
  | 'most'
  | 'pinned'
  | 'ceiling',
  number
>;

/** The new estimate from the sums of all processes: the next rate and the next number of requests in flight. Pure. */
export function updateEstimate({ now, learned, seen }: TargetReply): Learned {
  const sums = JSON.parse(seen) as Sums;
  const ceiling = sums.ceiling > 0 ? sums.ceiling : null;
  const before = learned === '' ? null : (JSON.parse(learned) as Kept);
  const first = before?.rate ?? firstRate(now, ceiling);
  const answers = sums.accepted + sums.refused + sums.trouble;
  const verdict = detectOverload(
    before?.overload ?? initialOverload(now),
    { now, answers, trouble: sums.trouble },
    first,
  );
  const observation = observe(sums, verdict.isRefusal, now);
  const rate =
    verdict.restored === null ? nextRate(before, observation, sums, ceiling) : restore(first, verdict.restored);
  const inFlight = nextInFlight(before, observation, sums.most);
  const kept: Kept = { rate, inFlight, overload: verdict.overload };
  return {
    json: JSON.stringify(kept),
    rate: rate.rate,
    steps: rate.epoch !== before?.rate.epoch,
    drops: rate.dropEpoch !== before?.rate.dropEpoch && rate.dropEpoch === rate.epoch,
    validFrom: rate.validFromMs,
    phase: rate.phase,
    limitMet: rate.high,
    inFlight: Math.round(inFlight.limit),
  };
}

/** After a pause without answers, a learned rate is used with caution; a pinned rate is used as it is. */
function nextRate(before: Kept | null, seen: Observation, sums: Sums, ceiling: number | null): LearnedRate {
  if (before === null) return firstRate(seen.now, ceiling);
  if (sums.recall > 0 && sums.pinned > 0) return { ...firstRate(seen.now, ceiling), epoch: before.rate.epoch + 1 };
  return sums.recall > 0 ? recallRate(before.rate, seen.now) : learnRate(before.rate, seen, ceiling);
}

/** While no process wants to send, nothing can be learned about requests in flight. */
function nextInFlight(before: Kept | null, seen: Observation, most: number): InFlight {
  const inFlight = before?.inFlight ?? firstInFlight(seen.now, most || Number.POSITIVE_INFINITY);
  return most === 0 ? inFlight : learnInFlight(inFlight, seen, most);
}

/** The rate from before the errors, with a new epoch. */
function restore(now: LearnedRate, earlier: LearnedRate): LearnedRate {
  return { ...earlier, epoch: now.epoch + 1, dropEpoch: now.dropEpoch };
}

function observe(sums: Sums, troubleIsRefusal: boolean, now: number): Observation {
  const [refusing, taking] = troubleIsRefusal ? [1, 0] : [0, 1];
  return {
    now,
    blockedMs: sums.blockedMs,
    blockedUntilMs: sums.holdUntil,
    accepted: sums.accepted + taking * sums.trouble,
    refused: sums.refused + refusing * sums.trouble,
    currentAccepted: sums.currentaccepted + taking * sums.currenttrouble,
    currentRefused: sums.currentrefused + refusing * sums.currenttrouble,
    sent: sums.sent,
    tripped: sums.tripped > 0,
    latency: { count: sums.latencies, sumMs: sums.latencySum, squares: sums.latencySquares },
    starved: sums.starved,
    busy: sums.busy,
    reports: sums.reports,
    lost: sums.lost,
  };
}
