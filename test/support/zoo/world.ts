import { hasAdvice, readRateAdvice } from '../../../src/http/rate-headers.ts';
import { retryAfterMs } from '../../../src/http/retry-after.ts';
import { control, type TargetControl } from '../../../src/limiter/learning/control.ts';
import type { Alarm, Sums } from '../../../src/limiter/learning/sums.ts';
import { isTrouble, OutageDetector, type Signal } from '../../../src/limiter/outage.ts';
import { sums } from '../sums.ts';
import { binMs, Measures, type Result } from './measures.ts';
import { epochMs, type Headers, type Server } from './servers.ts';
import { Wire } from './wire.ts';

/** What a row of the zoo is held to: least share used, greatest share refused, longest time to follow a change in s, greatest mean latency. */
export type Wants = { used?: number; refused?: number; follow?: number; latencyMs?: number; note?: string };

export type Scenario = {
  name: string;
  group: string;
  seconds: number;
  /** What is measured: seconds [from, seconds). */
  from: number;
  server: (random: () => number) => Server;
  /** There and back, without the server's own time. */
  latencyMs: number | ((nowMs: number, random: () => number) => number);
  /** Share by which latencies differ. */
  jitter?: number;
  processes?: number;
  /** [joins at s, leaves at s] of each process; default: all the time. */
  stay?: [number, number][];
  /** Connections of one process. */
  connections?: number;
  /** The rate that the run itself is held to, requests a second; infinite = none. */
  paced?: (nowMs: number) => number;
  /** The limit that an operator has set for the target, requests a second; 0 = none. */
  ceiling?: (nowMs: number) => number;
  pauses?: { process: number; atS: number; ms: number }[];
  /** [at second, requests a second] */
  changes?: [number, number][];
  /** Another tenant: requests a second. */
  others?: (nowMs: number) => number;
  /** What could be had, requests a second; default: the server's limit less what others got. */
  possible?: (nowMs: number) => number;
  /** What a request costs a process, and when it does not run: the mean of both times; `own`: because it computes something else. */
  cpu?: { sendMs: number; answerMs: number; away?: { runMs: number; awayMs: number; own: boolean } };
  /** What the target counts are requests at once, of which it allows so many. */
  places?: number;
  /** Decides what chance does. */
  seed?: number;
  hasWork?: (nowMs: number) => boolean;
  /** This process cannot connect. */
  brokenProcess?: { process: number; fromS: number; toS: number };
  want?: Wants;
  /** Is over once the last change is followed: where nothing else is wanted. */
  untilFollowed?: boolean;
};

type Request = {
  process: Process;
  epoch: number;
  sentAt: number;
  reply: ReturnType<Server['answer']> | null;
  next: Request | null;
};

const noSums = sums({ now: 0, most: 0, reports: 0 });
const callEveryMs = 100;
const maxLateMs = 40;

type Process = {
  index: number;
  from: number;
  to: number;
  known: TargetControl | null;
  holdUntil: number;
  inFlight: number;
  share: number;
  nextCall: number;
  pausedUntil: number;
  awayFrom: number;
  awayTo: number;
  freeAt: number;
  lateMs: number;
  backlog: Request[];
  detector: OutageDetector;
  alarm: Alarm | null;
  localMs: number; // the last local backoff
  report: Report;
  probes: number;
  lastHeaders: Headers | null;
};

type Tally = { epoch: number; accepted: number; refused: number; trouble: number };

type Report = {
  tallies: Tally[];
  sent: number;
  lost: number;
  latencies: number;
  latencySum: number;
  starved: boolean;
  holdMs: number;
};

const emptyReport = (): Report => ({
  tallies: [],
  sent: 0,
  lost: 0,
  latencies: 0,
  latencySum: 0,
  starved: false,
  holdMs: 0,
});

function tallyOf({ tallies }: Report, epoch: number): Tally {
  for (let at = tallies.length - 1; at >= 0; at--) if (tallies[at]!.epoch === epoch) return tallies[at]!;
  const tally = { epoch, accepted: 0, refused: 0, trouble: 0 };
  tallies.push(tally);
  return tally;
}

/** Numbers in [0, 1), the same for the same seed (mulberry32). */
export function seeded(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Who decides: `control`, or a player to compare it with. */
export type Player = typeof control;

/** The same row with so many seeds. */
export function playSeeds(scenario: Scenario, count: number): Result[] {
  const first = (scenario.seed ?? 0) * 100_000 + 1;
  return Array.from({ length: count }, (_, n) => simulate({ ...scenario, seed: first + n }));
}

/** What of a result is not as wanted: U share used, R refused, F time to follow, L latency; '' = nothing. */
export function missedBy({ used, refused, follow, latencyMs }: Result, wants: Wants = {}): string {
  return [
    used < (wants.used ?? 0) ? 'U' : '',
    refused > (wants.refused ?? 1) ? 'R' : '',
    (follow ?? 0) > (wants.follow ?? Number.POSITIVE_INFINITY) ? 'F' : '',
    latencyMs > (wants.latencyMs ?? Number.POSITIVE_INFINITY) ? 'L' : '',
  ].join('');
}

export function simulate(scenario: Scenario, trace?: (line: string) => void, player: Player = control): Result {
  return new World(scenario, player, trace).run();
}

/** A fleet, its Redis and its target, ms by ms. What Redis does is done by `Shared`. */
class World {
  readonly #scenario: Scenario;
  readonly #player: Player;
  readonly #random: () => number;
  readonly #server: Server;
  readonly #processes: Process[];
  readonly #arrivals = new Wire<Request>();
  readonly #answers = new Wire<Request>();
  readonly #measures: Measures;
  readonly #trace: ((line: string) => void) | undefined;
  /** Time goes on in steps of so many ms: hours need not be looked at in every one. */
  readonly #stepMs: number;
  /** Nothing but requests and calls happens between whole tenths of a second: the time between two of them is passed over. */
  readonly #isSimple: boolean;
  #quietUntil = 0;
  #nextCall = 0;
  /** No permit can be used before the next answer or call. */
  #isFull = false;
  #probes = 0;
  #spare: Request | null = null;
  /** The processes that are there, and the rate of all together, by what each knows. */
  #here: Process[] = [];
  #perSecond = 0;
  #nextPermit = 0;
  #nextPaced = 0;
  #turn = 0;
  #nextOther = 3;
  #othersAccepted = 0;

  // What Redis holds.
  #state: TargetControl | null = null;
  #sums: Sums = { ...noSums };
  #lookedAt = -1e9;
  #seenAt = 0;
  #holdUntil = 0;
  #answeredAt = 0;
  #probeAt = 0;
  #acceptedBy = -1;
  #acceptedAt = -1e9;

  constructor(scenario: Scenario, player: Player, trace?: (line: string) => void) {
    this.#scenario = scenario;
    this.#player = player;
    this.#trace = trace;
    this.#isSimple = !(
      scenario.others ||
      scenario.paced ||
      scenario.cpu ||
      scenario.pauses ||
      scenario.stay ||
      scenario.hasWork
    );
    this.#stepMs = scenario.seconds > 1_000 ? 10 : 1;
    this.#random = seeded(scenario.seed ?? 1);
    this.#server = scenario.server(this.#random);
    const count = scenario.stay?.length ?? scenario.processes ?? 4;
    this.#processes = Array.from({ length: count }, (_, index) => this.#process(index, count));
    this.#measures = new Measures(scenario);
  }

  #process(index: number, count: number): Process {
    const [fromS, toS] = this.#scenario.stay?.[index] ?? [0, Number.POSITIVE_INFINITY];
    const process: Process = {
      index,
      from: fromS * 1_000,
      to: toS * 1_000,
      known: null,
      holdUntil: 0,
      inFlight: 0,
      share: 1,
      nextCall: fromS * 1_000 + Math.floor((index * callEveryMs) / count),
      pausedUntil: 0,
      awayFrom: Number.POSITIVE_INFINITY,
      awayTo: 0,
      freeAt: 0,
      lateMs: 0,
      backlog: [],
      probes: 0,
      detector: new OutageDetector(),
      alarm: null,
      localMs: 250,
      report: emptyReport(),
      lastHeaders: null,
    };
    if (this.#scenario.cpu?.away) this.#planAway(process, 0);
    return process;
  }

  #planAway(process: Process, from: number): void {
    const { runMs, awayMs } = this.#scenario.cpu!.away!;
    const about = (mean: number) => -mean * Math.log(1 - this.#random());
    process.awayFrom = from + about(runMs);
    process.awayTo = process.awayFrom + about(awayMs);
  }

  run(): Result {
    const scenario = this.#scenario;
    const changes = [...(scenario.changes ?? [])];
    const pauses = [...(scenario.pauses ?? [])];
    const endMs = scenario.seconds * 1_000;
    for (let now = 0; now < endMs; now += this.#stepMs) {
      if (now < this.#quietUntil && !this.#arrivals.has(now) && !this.#answers.has(now)) continue;
      if (changes.length > 0 && now >= changes[0]![0] * 1_000) this.#server.setLimit(changes.shift()![1], now);
      if (pauses.length > 0 && now >= pauses[0]!.atS * 1_000)
        this.#processes[pauses[0]!.process]!.pausedUntil = now + pauses.shift()!.ms;
      if (scenario.others) this.#letOthers(now);
      this.#arrive(now);
      this.#answer(now);
      if (now === 0 || scenario.stay) this.#count(now);
      if (!this.#isSimple || now >= this.#nextCall) this.#liveAll(now);
      this.#send(now);
      if (now % binMs === 0) this.#measure(now);
      if (this.#trace && now % 1_000 === 0) this.#tell(now);
      if (scenario.untilFollowed && now % 1_000 === 0 && this.#measures.followed(now) !== null) break;
      this.#quietUntil = this.#isSimple ? this.#nextEvent(now) : now;
    }
    return this.#measures.result();
  }

  /** Until then nothing happens but what the rings hold. */
  #nextEvent(now: number): number {
    const next = Math.min(this.#nextCall, Math.floor(now / binMs + 1) * binMs);
    return this.#perSecond === 0 || this.#isFull ? next : Math.min(next, this.#nextPermit);
  }

  #count(now: number): void {
    if (now === 0 || this.#scenario.stay) {
      this.#here = this.#processes.filter(({ from, to }) => now >= from && now < to);
      this.#divide();
    }
    let [count, sum] = [0, 0];
    for (const { known } of this.#here) {
      if (known === null) continue;
      count++;
      sum += known.closed ? 0 : known.rate.rate;
    }
    if (this.#perSecond === 0) this.#nextPermit = Math.max(this.#nextPermit, now);
    this.#perSecond = count === 0 ? 0 : sum / count;
    // As a lease has it: a permit of a slower rate is not waited for.
    this.#nextPermit = Math.min(this.#nextPermit, now + callEveryMs + 2_000 / Math.max(1e-3, this.#perSecond));
  }

  // ---- the target ----

  #letOthers(now: number): void {
    while (this.#nextOther <= now) {
      const perSecond = this.#scenario.others!(now);
      if (perSecond > 0 && this.#server.answer(now, true).status === 204) this.#othersAccepted++;
      this.#nextOther += perSecond > 0 ? (-1_000 / perSecond) * Math.log(1 - this.#random()) : 20;
    }
  }

  #arrive(now: number): void {
    let next = this.#arrivals.take(now);
    while (next !== null) {
      const request = next;
      next = request.next;
      const reply = this.#server.answer(now);
      request.reply = reply;
      this.#measures.add(now, reply.status);
      this.#answers.add(request, now + reply.serviceMs + this.#halfWay(now), now, this.#stepMs);
    }
  }

  #halfWay(now: number): number {
    return halfWay(this.#scenario, now, this.#random);
  }

  // ---- the processes ----

  #answer(now: number): void {
    let next = this.#answers.take(now);
    while (next !== null) {
      const request = next;
      next = request.next;
      if (this.#isSimple) this.#take(request.process, request, now);
      else request.process.backlog.push(request);
    }
  }

  #isHere(process: Process, now: number): boolean {
    return now >= process.from && now < process.to;
  }

  /** Whether it gets any computing time now. */
  #runs(process: Process, now: number): boolean {
    if (now < process.pausedUntil || now + 1 <= process.freeAt) return false;
    if (now < process.awayFrom) return true;
    if (now < process.awayTo) return false;
    this.#planAway(process, now);
    return now < process.awayFrom;
  }

  #liveAll(now: number): void {
    this.#nextCall = Number.POSITIVE_INFINITY;
    for (const process of this.#processes) {
      this.#live(process, now);
      this.#nextCall = Math.min(this.#nextCall, process.nextCall);
    }
  }

  #live(process: Process, now: number): void {
    const isIdle = process.backlog.length === 0 && now < process.nextCall && now >= process.pausedUntil;
    if (isIdle && !this.#scenario.cpu) return;
    if (!this.#runs(process, now)) {
      process.lateMs += this.#stepMs;
      return;
    }
    if (process.backlog.length > 0) this.#handle(process, now);
    if (!this.#isHere(process, now)) return;
    if (now >= process.nextCall) {
      if (now - process.nextCall >= 15) process.lateMs = callEveryMs;
      process.nextCall = Math.max(process.nextCall + callEveryMs, now);
      this.#call(process, now);
    }
  }

  #handle(process: Process, now: number): void {
    const answerMs = this.#scenario.cpu?.answerMs ?? 0;
    let at = 0;
    while (at < process.backlog.length && process.freeAt < now + 1) {
      this.#take(process, process.backlog[at++]!, now);
      if (answerMs > 0) process.freeAt = Math.max(process.freeAt, now) + answerMs;
    }
    process.backlog.splice(0, at);
  }

  #take(process: Process, request: Request, now: number): void {
    const { epoch, sentAt, reply } = request;
    request.next = this.#spare;
    this.#spare = request;
    process.inFlight--;
    const { report } = process;
    const { status, headers, broken } = reply!;
    const tally = tallyOf(report, epoch);
    let signal: Signal = 'accepted';
    if (broken === 'refused') signal = 'unreachable';
    else if (broken === 'reset') signal = 'lost';
    else if (status === 429) signal = 'refused';
    else if (status >= 500) signal = 'trouble';
    const waitMs = status === 429 || status === 503 ? retryAfterMs(headers, epochMs + now) : null;
    if (waitMs !== null && waitMs > 0) {
      signal = status === 429 ? 'throttled' : 'unavailable';
      if (now + waitMs > process.holdUntil) {
        process.holdUntil = now + waitMs;
        report.holdMs = waitMs;
        this.#callAtOnce(process, now);
      }
    }
    if (signal === 'accepted') {
      const ms = now - sentAt;
      tally.accepted++;
      report.latencies++;
      report.latencySum += ms;
      this.#measures.addLatency(now, ms);
      process.alarm = null;
      process.localMs = 250;
    } else if (signal === 'refused' || signal === 'throttled' || signal === 'unavailable') tally.refused++;
    else tally.trouble++;
    if (signal === 'lost') report.lost++;
    if (hasAdvice(headers)) process.lastHeaders = headers;
    if (epoch > 0 && epoch !== process.known?.epoch) return;
    if (process.detector.observe(signal) || (process.known?.closed && isTrouble(signal))) {
      process.alarm = { kind: signal === 'unreachable' ? 'unreachable' : 'trouble', why: 'no request succeeds' };
      this.#callAtOnce(process, now);
    }
  }

  #callAtOnce(process: Process, now: number): void {
    process.nextCall = now;
    this.#nextCall = now;
  }

  #send(now: number): void {
    const scenario = this.#scenario;
    if (this.#probes > 0) this.#sendProbes(now);
    if (scenario.hasWork && !scenario.hasWork(now)) {
      this.#nextPermit = Math.max(this.#nextPermit, now);
      return;
    }
    this.#isFull = false;
    if (this.#perSecond === 0) return;
    this.#nextPermit = Math.max(this.#nextPermit, now - maxLateMs);
    const pacedMs = 1_000 / (scenario.paced?.(now) ?? Number.POSITIVE_INFINITY);
    this.#nextPaced = Math.max(this.#nextPaced, now - maxLateMs);
    while (this.#nextPermit <= now && this.#nextPaced <= now) {
      const process = this.#next(now);
      this.#isFull = process === null;
      if (process === null) return;
      this.#nextPermit += 1_000 / this.#perSecond;
      this.#nextPaced += pacedMs;
      if (process !== 'lost') this.#put(process, now);
    }
  }

  #sendProbes(now: number): void {
    for (const process of this.#here)
      while (process.probes > 0) {
        process.probes--;
        this.#probes--;
        this.#put(process, now);
      }
  }

  /** The process that has the next permit; null: it waits; lost: it cannot be used. */
  #next(now: number): Process | 'lost' | null {
    let wasFull = false;
    for (let tried = 0; tried < this.#here.length; tried++) {
      const process = this.#here[this.#turn++ % this.#here.length]!;
      if (process.known === null || process.known.closed) continue;
      if (now < process.pausedUntil || now < process.holdUntil) return 'lost';
      if (!this.#runs(process, now)) {
        wasFull = true;
        continue;
      }
      if (process.inFlight < process.share) return process;
      process.report.starved = true;
      wasFull = true;
    }
    return wasFull ? null : 'lost';
  }

  /** What each may have in flight. */
  #divide(): void {
    const { connections = 64 } = this.#scenario;
    const here = this.#here.length;
    const limit = Math.min(Math.round(this.#state?.inFlight.limit ?? 1), connections * here);
    for (const process of this.#here) {
      const place = process.index % here;
      process.share = Math.max(1, Math.floor((limit * (place + 1)) / here) - Math.floor((limit * place) / here));
    }
  }

  #put(process: Process, now: number): void {
    const { cpu, brokenProcess: broken } = this.#scenario;
    if (cpu) process.freeAt = Math.max(process.freeAt, now) + cpu.sendMs;
    process.inFlight++;
    process.report.sent++;
    const known = process.known!;
    const epoch = now < known.rate.validFromMs ? 0 : known.epoch;
    const request = this.#request(process, epoch, now);
    if (broken && broken.process === process.index && now >= broken.fromS * 1_000 && now < broken.toS * 1_000) {
      request.reply = { status: 0, headers: {}, serviceMs: 0, broken: 'refused' };
      this.#answers.add(request, now + 1, now, this.#stepMs);
    } else this.#arrivals.add(request, now + this.#halfWay(now), now, this.#stepMs);
  }

  /** Those that were answered are used again: there are millions. */
  #request(process: Process, epoch: number, now: number): Request {
    const request = this.#spare;
    if (request === null) return { process, epoch, sentAt: now, reply: null, next: null };
    this.#spare = request.next;
    request.process = process;
    request.epoch = epoch;
    request.sentAt = now;
    return request;
  }

  // ---- what Redis does ----

  #call(process: Process, now: number): void {
    const { report } = process;
    process.report = emptyReport();
    const sums = this.#sums;
    const state = this.#state;
    if (report.holdMs > 0) this.#holdUntil = Math.max(this.#holdUntil, now + report.holdMs);
    const closed = state?.closed ? now : Math.min(now, this.#holdUntil);
    sums.blockedMs += Math.max(0, closed - this.#seenAt);
    if (this.#holdUntil > now) this.#answeredAt = now;
    if (this.#answeredAt > 0 && now - this.#answeredAt > 60_000 + (state?.closed?.probeGapMs ?? 0)) {
      sums.recall = 1;
      this.#answeredAt = now;
    }
    this.#seenAt = now;
    let accepted = 0;
    for (const counts of report.tallies) {
      accepted += counts.accepted;
      sums.accepted += counts.accepted;
      sums.refused += counts.refused;
      sums.trouble += counts.trouble;
      if (counts.epoch !== state?.epoch) continue;
      sums.currentAccepted += counts.accepted;
      sums.currentRefused += counts.refused;
      sums.currentTrouble += counts.trouble;
    }
    if (report.tallies.length > 0) this.#answeredAt = now;
    sums.sent += report.sent;
    sums.lost += report.lost;
    sums.latencies += report.latencies;
    sums.latencySum += report.latencySum;
    sums.reports++;
    sums.starved += report.starved ? 1 : 0;
    sums.busy += process.lateMs >= 0.85 * callEveryMs ? 1 : 0;
    process.lateMs = 0;
    if (process.lastHeaders !== null) {
      const advice = readRateAdvice(process.lastHeaders, epochMs + now);
      if (advice !== null) {
        const { remaining, quota, resetMs } = advice;
        sums.claim = { remaining, endsAt: now + resetMs, ...(quota === null ? {} : { quota }) };
      }
      process.lastHeaders = null;
    }
    const others = this.#acceptedBy !== -1 && this.#acceptedBy !== process.index && now - this.#acceptedAt < 500;
    if (process.alarm !== null && !state?.closed && others) {
      process.localMs = Math.min(4_000, 2 * process.localMs);
      process.holdUntil = Math.max(process.holdUntil, now + process.localMs);
      process.alarm = null;
    } else if (process.alarm !== null) sums.alarm = process.alarm;
    if (accepted > 0 && process.alarm === null) [this.#acceptedBy, this.#acceptedAt] = [process.index, now];
    const isUrgent = sums.alarm != null || (state?.closed && accepted > 0);
    if (now - this.#lookedAt >= 80 || isUrgent) this.#control(now);
    this.#reply(process, now);
  }

  #control(now: number): void {
    const { connections = 64 } = this.#scenario;
    const most = connections * this.#here.length;
    const holdUntil = this.#holdUntil > now ? this.#holdUntil : 0;
    const before = this.#state;
    this.#state = this.#player(
      before,
      Object.assign(this.#sums, { now, most, holdUntil, ceiling: this.#scenario.ceiling?.(now) ?? 0 }),
    );
    this.#divide();
    if (this.#state.closed && !before?.closed) this.#probeAt = now + this.#state.closed.probeGapMs;
    this.#sums = { ...noSums };
    this.#lookedAt = now;
  }

  #reply(process: Process, now: number): void {
    const state = this.#state!;
    if (process.known?.epoch !== state.epoch) process.detector.reset();
    if (!state.closed) process.alarm = null;
    if (process.known !== state) {
      process.known = state;
      this.#count(now);
    }
    process.holdUntil = Math.max(process.holdUntil, this.#holdUntil);
    if (state.closed) {
      process.alarm = null;
      if (now >= this.#probeAt && now >= this.#holdUntil) {
        process.probes++;
        this.#probes++;
        this.#probeAt = now + state.closed.probeGapMs;
      }
    }
  }

  // ---- what came of it ----

  #measure(now: number): void {
    this.#measures.allow(now, this.#server.perSecond(now), this.#othersAccepted);
    this.#othersAccepted = 0;
  }

  #tell(now: number): void {
    const state = this.#state;
    const { accepted, refused } = this.#measures.lastSecond(now);
    const inFlight = this.#processes.reduce((n, one) => n + one.inFlight, 0);
    this.#trace!(
      `${String(now / 1_000).padStart(6)} ok ${String(accepted).padStart(6)} no ${String(refused).padStart(5)} wire ${String(inFlight).padStart(4)}/${state?.inFlight.limit.toFixed(0)} ${state?.inFlight.trend} ${describe(state)}`,
    );
  }
}

/** How long a request or an answer is on its way, in ms. */
export function halfWay({ latencyMs, jitter = 0.1 }: Scenario, now: number, random: () => number): number {
  const base = typeof latencyMs === 'number' ? latencyMs : latencyMs(now, random);
  return (base / 2) * (1 + jitter * (random() + random() - 1)) + 0.5;
}

function describe(state: TargetControl | null) {
  if (state === null) return null;
  const { rate: r, closed } = state;
  const round = (x: number) => Math.round(x * 10) / 10;
  const b = state.blame;
  const t = b.trial && `trial ${b.trial.cause} ${b.trial.answers} ${b.trial.refused} ${round(100 * b.trial.share)}%`;
  return [
    r.phase,
    round(r.rate),
    round(r.low),
    round(r.high),
    'ramp',
    round(r.rampedMs / 1_000),
    round(r.rampMs / 1_000),
    closed ? `CLOSED ${closed.kind} ${closed.probeGapMs.toFixed(0)}` : '',
    'bg',
    round(100 * b.background),
    round(b.forgivable),
    'early',
    b.earlyEnds.ramps,
    t ?? '',
    'cyc',
    round(state.cycle.windowMs / 1000),
    state.cycle.accepted,
    'held',
    JSON.stringify(state.cycle.lastWaitCycle),
    'demand',
    round(r.demand.sent),
    round(r.demand.allowed),
  ].join(' ');
}
