import type { RedisClient } from '../redis/client.ts';
import { keys as allKeys } from '../redis/keys.ts';
import type { AnswerTally } from './outage.ts';
import { learnedLua, targetLua } from './target.lua.ts';

/** Where the state of one limiter is. */
export type LimiterKeys = {
  limiter: string;
  members: string;
  ceiling: string;
  quotas: string;
  stop: string;
  processes: string;
  pin: string;
};

/** Those of a target's limiter; `scope`: what it is for. */
export function limiterKeys(fp: string, scope: string): LimiterKeys {
  return {
    limiter: allKeys.limiter(fp, scope),
    members: allKeys.limiterMembers(fp, scope),
    ceiling: allKeys.ceiling(fp),
    quotas: allKeys.ceilingQuotas(fp),
    stop: allKeys.stop(fp),
    processes: allKeys.processes(fp),
    pin: allKeys.pin(fp),
  };
}

/** What a process reports and asks for; see target.lua.ts. */
export type TargetCall = {
  process: string;
  wants: boolean;
  till: string;
  unused: number;
  epoch: string;
  rate: string;
  burst: string;
  slots: number;
  hold: { ms: number; why: string };
  outage: { why: string; kind: OutageKind | '' };
  advised: { perSecond: number; forMs: number } | null;
  tally: AnswerTally;
  starved: boolean;
  busy: boolean;
  stop: string; // the stop of this process alone, as stored; '' = none
};

/** `unreachable`: no connection; `trouble`: it answers, but no request succeeds. */
export type OutageKind = 'unreachable' | 'trouble';

/** What Redis answers. Times are ms of the Redis clock, 0 = not. */
export type TargetReply = {
  now: number;
  epoch: string;
  dropEpoch: string;
  validFrom: number;
  holdUntil: number;
  holdWhy: string;
  outageAt: number;
  outageWhy: string;
  outageKind: OutageKind | '';
  first: number;
  gap: number;
  count: number;
  inFlightShare: number;
  rate: number;
  phase: string;
  limitMet: number;
  budget: number;
  turn: number;
  learned: string;
  seen: string;
  unreachableAt: number;
  localBackoffMs: number;
  stop: string; // the stop of the whole target, as stored; '' = none
  releasedEpoch: number; // the epoch that began with the last release by an operator; 0 = none
};

type Scripts = {
  expungeTarget(...args: (string | number)[]): Promise<(string | number)[]>;
  expungeLearned(...args: (string | number)[]): Promise<number>;
};

function scriptsOf(redis: RedisClient): Scripts {
  redis.defineCommand('expungeTarget', { numberOfKeys: 7, lua: targetLua });
  redis.defineCommand('expungeLearned', { numberOfKeys: 1, lua: learnedLua });
  return redis as unknown as Scripts;
}

/** The two scripts of a target's limiter. `now` is for tests in a time of their own: '' takes that of Redis. */
export function openTargetCalls(redis: RedisClient, keys: LimiterKeys, now: () => string = () => '') {
  const scripts = scriptsOf(redis);
  return {
    async call(call: TargetCall): Promise<TargetReply> {
      const { tally, hold, outage, advised, stop } = call;
      const reply = await scripts.expungeTarget(
        ...[keys.limiter, keys.members, keys.quotas, keys.stop, keys.processes, keys.pin, keys.ceiling],
        ...[call.process, call.wants ? 1 : 0, call.till, call.unused, now()],
        ...[call.epoch, call.rate, call.burst, call.slots, hold.ms, hold.why, outage.why, outage.kind],
        ...(advised === null ? ['', 0] : [advised.perSecond, advised.forMs]),
        ...[tally.sent, tally.latencies, tally.latencySum, tally.latencySquares, call.starved ? 1 : 0, tally.lost],
        ...[call.busy ? 1 : 0, stop, ...tally.flat()],
      );
      return parseReply(reply);
    },

    /** Stores a new estimate. False if another process has stored one since. */
    async learned(turn: number, { json, rate, steps, drops, validFrom, phase, limitMet, inFlight }: Learned) {
      const args = [json, rate, steps ? 1 : 0, drops ? 1 : 0, validFrom, phase, limitMet, inFlight];
      return (await scripts.expungeLearned(keys.limiter, turn, now(), ...args)) === 1;
    },
  };
}

/** The result of an update of the estimate; see learnedLua. */
export type Learned = {
  json: string;
  rate: number;
  steps: boolean;
  drops: boolean;
  validFrom: number;
  phase: string;
  limitMet: number;
  inFlight: number;
};

function parseReply(reply: (string | number)[]): TargetReply {
  const text = (at: number) => String(reply[at]);
  const number = (at: number) => Number(reply[at]);
  return {
    ...{
      now: number(0),
      epoch: text(1),
      dropEpoch: text(2),
      validFrom: number(3),
      holdUntil: number(4),
      holdWhy: text(5),
    },
    ...{ outageAt: number(6), outageWhy: text(7), outageKind: text(8) as OutageKind | '' },
    ...{ first: number(9), gap: number(10), count: number(11), inFlightShare: number(12), rate: number(13) },
    ...{
      phase: text(14),
      limitMet: number(15),
      budget: number(16),
      turn: number(17),
      learned: text(18),
      seen: text(19),
      ...{ unreachableAt: number(20), localBackoffMs: number(21), stop: text(22), releasedEpoch: number(23) },
    },
  };
}
