import { randomUUID } from 'node:crypto';
import { setImmediate as turn } from 'node:timers/promises';
import { vi } from 'vitest';
import { targetLimits } from '../../../src/delete/target-limits.ts';
import type { Answer } from '../../../src/delete/verdict.ts';
import { limiterKeys, openTargetCalls } from '../../../src/limiter/target-call.ts';
import { TargetLimiter } from '../../../src/limiter/target-limiter.ts';
import type { RedisClient } from '../../../src/redis/client.ts';
import { Measures, type Result } from './measures.ts';
import { epochMs, type Server } from './servers.ts';
import { halfWay, type Scenario, seeded } from './world.ts';

/**
 * Plays a row of the zoo with the limiter as it is shipped, and its scripts on a real Redis, in virtual time. Simulated are the target, the wire,
 * and how requests come for their permits: whenever there is one.
 */
export async function playOnRedis(redis: RedisClient, scenario: Scenario): Promise<Result> {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  const keys = limiterKeys(`zoo-${randomUUID()}`);
  try {
    return await new Play(redis, keys, scenario).run();
  } finally {
    vi.useRealTimers();
    await redis.unlink(...Object.values(keys));
  }
}

type Process = ReturnType<Play['openProcess']>;
type Request = {
  process: Process;
  epoch: number;
  wasClose: boolean;
  sentAt: number;
  reply?: ReturnType<Server['answer']>;
};

const startMs = 1_000; // of a process's own clock
const request = { waitStatuses: new Set<number>(), hasFailed: false, authorization: 'Bearer t' };

class Play {
  readonly #redis: RedisClient;
  readonly #keys: ReturnType<typeof limiterKeys>;
  readonly #scenario: Scenario;
  readonly #random: () => number;
  readonly #server: Server;
  readonly #measures: Measures;
  readonly #arrivals = new Map<number, Request[]>();
  readonly #answers = new Map<number, Request[]>();
  #now = 0;
  readonly #calls = new Set<Promise<unknown>>();

  constructor(redis: RedisClient, keys: ReturnType<typeof limiterKeys>, scenario: Scenario) {
    this.#redis = redis;
    this.#keys = keys;
    this.#scenario = scenario;
    this.#random = seeded(scenario.seed ?? 1);
    this.#server = scenario.server(this.#random);
    this.#measures = new Measures(scenario);
  }

  openProcess(name: string) {
    const { connections = 64 } = this.#scenario;
    const clock = () => startMs + this.#now;
    const process = { inFlight: 0, wasFull: false };
    const limiter = new TargetLimiter({
      run: '',
      process: name,
      connections,
      clock,
      isBusy: () => false,
      calls: this.#openCalls(),
      stopHere: () => null,
      onChange: () => {},
    });
    const token = { sent: () => {}, accepted: () => {}, waiting: '' } as never;
    const limits = targetLimits(limiter, { token, now: () => epochMs + this.#now, onLongThrottle: () => {} });
    return Object.assign(process, { limiter, limits, clock });
  }

  /** Counted, so that time stands still while one is on its way. */
  #openCalls() {
    const { call, store } = openTargetCalls(this.#redis, this.#keys, () => String(epochMs + this.#now));
    const counted = async <T>(promise: Promise<T>): Promise<T> => {
      this.#calls.add(promise);
      return promise.finally(() => this.#calls.delete(promise));
    };
    return {
      call: (...args: Parameters<typeof call>) => counted(call(...args)),
      store: (...args: Parameters<typeof store>) => counted(store(...args)),
    };
  }

  async run(): Promise<Result> {
    const { seconds, processes: count = 4 } = this.#scenario;
    const processes = Array.from({ length: count }, (_, n) => this.openProcess(`p${n}`));
    const changes = [...(this.#scenario.changes ?? [])];
    const timersMs = 100 / count; // processes start so far from each other, and their timers last whole tenths of a second
    for (; this.#now < seconds * 1_000; this.#now++) {
      const now = this.#now;
      if (changes.length > 0 && now >= changes[0]![0] * 1_000) this.#server.setLimit(changes.shift()![1], now);
      if (now % timersMs === 0 && now > 0) vi.advanceTimersByTime(timersMs);
      if (now % timersMs === 0 && now < 100) this.#start(processes[now / timersMs]!);
      for (const request of take(this.#arrivals, now)) this.#arrive(request);
      for (const request of take(this.#answers, now)) this.#answer(request);
      if (this.#calls.size > 0) await this.#callsAreOver();
      for (const process of processes) this.#send(process);
      if (now % 100 === 0) this.#measures.allow(now, this.#server.perSecond(now), 0);
    }
    await Promise.all(processes.map(({ limiter }) => limiter.stop()));
    return this.#measures.result();
  }

  #start(process: Process): void {
    const takeStarved = () => {
      const { wasFull } = process;
      process.wasFull = false;
      return wasFull;
    };
    process.limiter.start({ takeStarved, isPaced: false });
    process.limiter.enter();
  }

  async #callsAreOver(): Promise<void> {
    while (this.#calls.size > 0) {
      await Promise.allSettled(this.#calls);
      await turn(); // what follows an answer may be another call
    }
  }

  #send(process: Process): void {
    const { limits, clock } = process;
    while (!limits.isBlocked && limits.permits.isDue(clock())) {
      process.wasFull ||= process.inFlight >= limits.inFlightShare;
      if (process.inFlight >= limits.inFlightShare) return;
      limits.permits.take(clock());
      process.inFlight++;
      const epoch = limits.recordSent(clock(), request.authorization);
      const sent = { process, epoch, wasClose: limits.permits.wasClose, sentAt: this.#now };
      put(this.#arrivals, this.#now + halfWay(this.#scenario, this.#now, this.#random), this.#now, sent);
    }
  }

  #arrive(request: Request): void {
    const now = this.#now;
    const reply = this.#server.answer(now);
    this.#measures.add(now, reply.status);
    put(this.#answers, now + reply.serviceMs + halfWay(this.#scenario, now, this.#random), now, { ...request, reply });
  }

  #answer({ process, epoch, wasClose, sentAt, reply }: Request): void {
    process.inFlight--;
    process.limits.recordAnswer({ epoch, wasClose, sentAt }, answerOf(reply!), this.#now - sentAt, request);
  }
}

function answerOf({ status, headers, broken }: ReturnType<Server['answer']>): Answer {
  if (broken === 'refused') return { kind: 'not-sent', why: 'ECONNREFUSED' };
  if (broken === 'reset') return { kind: 'maybe-sent', code: 'reset', why: 'ECONNRESET' } as Answer;
  return { kind: 'status', status, headers, body: '', authorization: '' };
}

function put(times: Map<number, Request[]>, ms: number, now: number, request: Request): void {
  const at = Math.max(now + 1, Math.round(ms));
  times.set(at, [...(times.get(at) ?? []), request]);
}

function take(times: Map<number, Request[]>, now: number): Request[] {
  const here = times.get(now) ?? [];
  times.delete(now);
  return here;
}
