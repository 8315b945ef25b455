import type { RedisClient } from '../redis/client.ts';
import { near, type Spans } from '../redis/distance.ts';
import { keys as allKeys } from '../redis/keys.ts';
import type { Closed } from './learning/closed.ts';
import { advisedRate, knownRate, type TargetControl } from './learning/control.ts';
import type { Alarm } from './learning/sums.ts';
import type { AnswerTally } from './outage.ts';
import type { Unused } from './permits.ts';
import { callArguments, replyNumbers, replyTexts, stateArguments } from './script-fields.ts';
import { storeStateLua } from './store-state.lua.ts';
import { targetLua } from './target.lua.ts';

/** The keys of one limiter's state. */
type LimiterKeys = {
  limiter: string;
  members: string;
  pace: string;
  quotas: string;
  stop: string;
  processes: string;
  bounds: string;
};

/** The keys of a target's limiter. */
export function limiterKeys(fp: string): LimiterKeys {
  return {
    limiter: allKeys.limiter(fp),
    members: allKeys.limiterMembers(fp),
    pace: allKeys.limitPace(fp),
    quotas: allKeys.limitQuotas(fp),
    stop: allKeys.stop(fp),
    processes: allKeys.processes(fp),
    bounds: allKeys.bounds(fp),
  };
}

/** What sends the requests for a limiter's permits in one process. */
export type PermitTaker = {
  /** Whether a permit was due and no connection was free since the last call. */
  takeStarved(): boolean;
  /** Whether all queues that wanted to send in the last second have a rate of their own. */
  readonly isPaced: boolean;
};

/** The report and the request of a process; see `callArguments`. */
export type TargetCall = {
  process: string;
  wants: boolean;
  till: string;
  granted: number;
  heardAt: number;
  limitId: string;
  epoch: string;
  connections: number;
  hold: { ms: number; why: string };
  alarm: Alarm | null;
  claim: { remaining: number; quota: number | null; forMs: number } | null; // the latest statement of the server's headers
  tally: AnswerTally;
  starved: boolean;
  busy: boolean;
  distance?: Spans; // of Redis from the process; by default it is near
  restMs: number; // it calls again within this time
  here: string; // why this process alone is held, as stored; '' = it is not
} & Unused;

/** The report of a process about its own load since its last call. */
type Load = Pick<TargetCall, 'starved' | 'busy'>;

/** Measures the load. A call right after another one repeats the last measurement, because a few milliseconds say nothing. */
export class LoadMeter {
  readonly #measure: (nowMs: number) => Load;
  readonly #minMs: number;
  #measuredAtMs = Number.NEGATIVE_INFINITY;
  #load: Load = { starved: false, busy: false };

  /** `measure` is not called again before `minMs` have passed. */
  constructor(measure: (nowMs: number) => Load, minMs: number) {
    this.#measure = measure;
    this.#minMs = minMs;
  }

  /** Returns the load. `nowMs`: monotonic. */
  at(nowMs: number): Load {
    if (nowMs - this.#measuredAtMs < this.#minMs) return this.#load;
    this.#measuredAtMs = nowMs;
    this.#load = this.#measure(nowMs);
    return this.#load;
  }
}

/** The answer of Redis; see `replyNumbers`. */
export type TargetReply = Record<(typeof replyNumbers)[number], number> & {
  closed: Closed['kind'] | '';
} & Record<Exclude<(typeof replyTexts)[number], 'closed'>, string>;

type Scripts = {
  expungeTarget(...args: (string | number)[]): Promise<(string | number)[]>;
  expungeStoreState(...args: (string | number)[]): Promise<number>;
};

function scriptsOf(redis: RedisClient): Scripts {
  redis.defineCommand('expungeTarget', { numberOfKeys: 7, lua: targetLua });
  redis.defineCommand('expungeStoreState', { numberOfKeys: 1, lua: storeStateLua });
  return redis as unknown as Scripts;
}

/** The two scripts of a target's limiter. `now` is for tests in a time of their own; '' = the time of Redis. */
export function openTargetCalls(redis: RedisClient, keys: LimiterKeys, now: () => string = () => '') {
  const scripts = scriptsOf(redis);
  return {
    async call(call: TargetCall): Promise<TargetReply> {
      const { tally, hold, alarm, claim, distance = near } = call;
      const said: Record<(typeof callArguments)[number], string | number> = {
        process: call.process,
        wants: call.wants ? 1 : 0,
        till: call.till,
        given: now(),
        unused: call.unused,
        unusedSince: call.unusedSince,
        granted: call.granted,
        heardAt: call.heardAt,
        limitId: call.limitId,
        epoch: call.epoch,
        connections: call.connections,
        holdMs: hold.ms,
        holdWhy: hold.why,
        alarmWhy: alarm?.why ?? '',
        alarmKind: alarm?.kind ?? '',
        claimLeft: claim?.remaining ?? '',
        claimMs: claim?.forMs ?? 0,
        claimQuota: claim?.quota ?? '',
        sent: tally.sent,
        latencies: tally.latencies,
        latencySum: tally.latencySum,
        starved: call.starved ? 1 : 0,
        lost: tally.lost,
        busy: call.busy ? 1 : 0,
        leadMs: distance.leadMs,
        aheadMs: distance.aheadMs,
        answerMs: distance.answerMs,
        restMs: call.restMs,
        saidHere: call.here,
      };
      const { limiter, members, quotas, stop, processes, bounds, pace } = keys;
      const all = [limiter, members, quotas, stop, processes, bounds, pace];
      return parseReply(await scripts.expungeTarget(...all, ...inOrder(callArguments, said), ...tally.flat()));
    },

    /** Stores the next state. Returns false if another process has begun an update since. */
    async store(turn: number, before: TargetControl | null, next: TargetControl): Promise<boolean> {
      const { rate, closed } = next;
      const isNewEpoch = next.epoch !== before?.epoch;
      const closes = closed !== null && !before?.closed;
      const drops = closes || (rate.dropEpoch === rate.epoch && rate.dropEpoch !== before?.rate.dropEpoch);
      const said: Record<(typeof stateArguments)[number], string | number> = {
        turn,
        given: now(),
        json: JSON.stringify(next),
        rate: rate.rate,
        steps: isNewEpoch ? 1 : 0,
        drops: isNewEpoch && drops ? 1 : 0,
        validFrom: rate.validFromMs,
        phase: rate.phase,
        limitMet: knownRate(next).high,
        inFlight: Math.round(next.inFlight.limit),
        closed: closed?.kind ?? '',
        closedWhy: closed?.why ?? '',
        closedAt: closed?.sinceMs ?? 0,
        probeGap: closed?.probeGapMs ?? 0,
        announced: advisedRate(next, rate.lookedAtMs) ?? '',
      };
      return (await scripts.expungeStoreState(keys.limiter, ...inOrder(stateArguments, said))) === 1;
    },
  };
}

function inOrder<K extends string>(names: readonly K[], values: Record<K, string | number>): (string | number)[] {
  return names.map((name) => values[name]);
}

function parseReply(reply: (string | number)[]): TargetReply {
  const numbers = replyNumbers.map((name, i) => [name, Number(reply[i])]);
  const texts = replyTexts.map((name, i) => [name, String(reply[replyNumbers.length + i])]);
  return Object.fromEntries([...numbers, ...texts]) as TargetReply;
}
