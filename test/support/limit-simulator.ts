import { firstInFlight, type InFlight, learnInFlight } from '../../src/limiter/learn-in-flight.ts';
import { learnRate } from '../../src/limiter/learn-rate.ts';
import { firstRate, type LearnedRate, type Observation } from '../../src/limiter/learned-rate.ts';
import { EventQueue } from './event-queue.ts';
import type { LimitedServer } from './limited-servers.ts';

/** One simulated run: a fleet with work to do, a server with a limit, and the time between them. */
export type Scenario = {
  server: (random: () => number) => LimitedServer;
  seconds: number;
  processes?: number;
  seed?: number;
  /** There and back, without the server's own time; the second form may change with time. */
  latencyMs?: number | ((nowMs: number) => number);
  ceiling?: number | null;
  mostInFlight?: number;
  /** Time between the calls of one process, and so between two looks of the controllers. */
  callMs?: number;
  /** Whether there is something to send. */
  hasWork?: (nowMs: number, random: () => number) => boolean;
  /** Share of answers that are an error which says nothing about a limit. */
  noise?: number;
  /** Requests a second that another client sends. */
  otherClient?: (nowMs: number) => number;
  /** [at second, new limit] */
  changes?: [number, number][];
  trace?: (nowMs: number, rate: LearnedRate, inFlight: InFlight, seen: Observation) => void;
};

/** What the server saw, counted by tenths of a second. */
export type Simulated = {
  accepted: number[];
  refused: number[];
  limit: number[];
  inFlight: number[];
  rate: LearnedRate;
  inFlightState: InFlight;
};

/** Numbers in [0, 1) that are the same for the same seed (mulberry32). */
export function seededRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Runs a scenario in virtual time. The same scenario gives the same numbers. */
export function simulate(scenario: Scenario): Simulated {
  return new Simulation(scenario).run();
}

type Lease = { nextMs: number; gapMs: number; left: number; epoch: number };
type Tally = { accepted: number; refused: number };
type Process = {
  leases: Lease[];
  leaseEndMs: number;
  epoch: number;
  validFromMs: number;
  blockedUntilMs: number;
  slots: number;
  busy: number;
  wakesAtMs: number;
  calledForBlockMs: number;
  report: Report;
};
type Report = {
  tallies: Map<number, Tally>;
  sent: number;
  unused: number;
  starved: boolean;
  blockedUntilMs: number;
  latency: { count: number; sumMs: number; squares: number };
};

const aheadMs = 20; // a lease reaches this far past the next call
const burstMs = 50; // what the fleet may catch up after a gap
const forgottenMs = 350; // a process that did not call for so long gets no share
const staleMs = 100; // a permit that is so late is handed back unused
const bucketMs = 100;

const emptyReport = (): Report => ({
  tallies: new Map(),
  sent: 0,
  unused: 0,
  starved: false,
  blockedUntilMs: 0,
  latency: { count: 0, sumMs: 0, squares: 0 },
});

const emptySums = (): Omit<Observation, 'now' | 'blockedMs' | 'blockedUntilMs'> => ({
  accepted: 0,
  refused: 0,
  currentAccepted: 0,
  currentRefused: 0,
  sent: 0,
  tripped: false,
  latency: { count: 0, sumMs: 0, squares: 0 },
  reports: 0,
  starved: 0,
  lost: 0,
  busy: 0,
});

class Simulation {
  private readonly scenario: Scenario;
  private readonly random: () => number;
  private readonly server: LimitedServer;
  private readonly events = new EventQueue();
  private readonly processes: Process[];
  private readonly callMs: number;
  private readonly endMs: number;

  // What Redis holds.
  private rate: LearnedRate;
  private inFlight: InFlight;
  private sums = emptySums();
  private lookedAtMs = 0;
  private blockedUntilMs = 0;
  private blockedMs = 0;
  private blockCountedMs = 0;
  private nextSlotMs = 0;
  private readonly lastCallMs = new Map<Process, number>();

  private onTheWire = 0;
  private readonly seen: Simulated;

  constructor(scenario: Scenario) {
    this.scenario = scenario;
    this.random = seededRandom(scenario.seed ?? 1);
    this.server = scenario.server(this.random);
    this.callMs = scenario.callMs ?? 100;
    this.endMs = scenario.seconds * 1000;
    this.rate = firstRate(0, scenario.ceiling ?? null);
    this.inFlight = firstInFlight(0, this.mostInFlight());
    this.processes = Array.from({ length: scenario.processes ?? 1 }, () => ({
      leases: [],
      leaseEndMs: 0,
      epoch: 0,
      validFromMs: 0,
      blockedUntilMs: 0,
      slots: 1,
      busy: 0,
      wakesAtMs: Number.POSITIVE_INFINITY,
      calledForBlockMs: -1000,
      report: emptyReport(),
    }));
    const buckets = () => new Array<number>(scenario.seconds * 10).fill(0);
    this.seen = {
      accepted: buckets(),
      refused: buckets(),
      limit: buckets(),
      inFlight: buckets(),
      rate: this.rate,
      inFlightState: this.inFlight,
    };
  }

  run(): Simulated {
    for (const [index, process] of this.processes.entries())
      this.events.at((index * this.callMs) / this.processes.length + this.random() * 10, (now) =>
        this.tick(now, process),
      );
    for (const [second, limit] of this.scenario.changes ?? [])
      this.events.at(second * 1000, (now) => this.server.setLimit(limit, now));
    if (this.scenario.otherClient) this.events.at(5, (now) => this.otherClient(now));
    this.events.at(0, (now) => this.watch(now));
    this.events.runUntil(this.endMs);
    return { ...this.seen, rate: this.rate, inFlightState: this.inFlight };
  }

  // ---- a process ----

  private tick(now: number, process: Process): void {
    this.call(now, process);
    this.events.at(now + this.callMs * (0.97 + 0.06 * this.random()), (next) => this.tick(next, process));
  }

  /** The one call: reports what was answered, brings back the next lease. */
  private call(now: number, process: Process): void {
    const report = process.report;
    process.report = emptyReport();
    const halfTripMs = 0.2 * (1 + this.random());
    this.events.at(now + halfTripMs, (there) => {
      const reply = this.script(there, process, report);
      this.events.at(there + halfTripMs, (back) => {
        process.slots = reply.slots;
        process.blockedUntilMs = Math.max(process.blockedUntilMs, reply.blockedUntilMs);
        if (process.epoch < reply.dropEpoch) process.leases = [];
        process.epoch = reply.epoch;
        process.validFromMs = reply.validFromMs;
        if (reply.lease) process.leases.push(reply.lease);
        this.sendDue(back, process);
      });
    });
  }

  /** Sends what is due and sleeps until the next permit is. */
  private sendDue(now: number, process: Process): void {
    if (now < process.blockedUntilMs) process.leases = [];
    while (process.leases.length > 0) {
      const lease = process.leases[0]!;
      if (lease.left === 0) {
        process.leases.shift();
      } else if (now < lease.nextMs - 1e-6) {
        this.wakeAt(lease.nextMs, process);
        return;
      } else if (now > lease.nextMs + staleMs || !(this.scenario.hasWork?.(now, this.random) ?? true)) {
        usePermit(lease);
        process.report.unused += 1;
      } else if (process.busy >= process.slots) {
        process.report.starved = true;
        return;
      } else {
        usePermit(lease);
        this.send(now, process, now < process.validFromMs ? lease.epoch - 0.5 : lease.epoch);
      }
    }
  }

  private wakeAt(dueMs: number, process: Process): void {
    if (process.wakesAtMs <= dueMs) return;
    process.wakesAtMs = dueMs;
    const lateMs = this.random() * 0.8 + (this.random() < 0.0005 ? this.random() * 20 : 0);
    this.events.at(dueMs + lateMs, (now) => {
      process.wakesAtMs = Number.POSITIVE_INFINITY;
      this.sendDue(now, process);
    });
  }

  private send(sentMs: number, process: Process, epoch: number): void {
    process.busy += 1;
    process.report.sent += 1;
    this.onTheWire += 1;
    const { latencyMs = 10 } = this.scenario;
    const base = typeof latencyMs === 'number' ? latencyMs : latencyMs(sentMs);
    const halfTripMs = (base / 2) * (1 + 0.08 * (this.random() + this.random() + this.random() - 1.5)) + 0.1;
    this.events.at(sentMs + halfTripMs, (there) => {
      const failed = this.random() < (this.scenario.noise ?? 0);
      const answer = failed ? { accepted: true, serviceMs: 0, blockedUntilMs: 0 } : this.server.answer(there);
      if (!failed) this.count(answer.accepted ? this.seen.accepted : this.seen.refused, there);
      this.events.at(there + answer.serviceMs + halfTripMs, (now) => {
        process.busy -= 1;
        this.onTheWire -= 1;
        const { report } = process;
        const tally = report.tallies.get(epoch) ?? { accepted: 0, refused: 0 };
        report.tallies.set(epoch, tally);
        if (answer.accepted) {
          tally.accepted += 1;
          addLatency(report.latency, { count: 1, sumMs: now - sentMs, squares: (now - sentMs) ** 2 });
        } else {
          tally.refused += 1;
          this.obey(now, process, answer.blockedUntilMs);
        }
        this.sendDue(now, process);
      });
    });
  }

  /** A Retry-After stops this process now and is reported at once, so that it stops the fleet. */
  private obey(now: number, process: Process, untilMs: number): void {
    if (untilMs <= now) return;
    process.blockedUntilMs = Math.max(process.blockedUntilMs, untilMs);
    process.report.blockedUntilMs = Math.max(process.report.blockedUntilMs, untilMs);
    if (now - process.calledForBlockMs < 20) return;
    process.calledForBlockMs = now;
    this.call(now, process);
  }

  // ---- Redis ----

  private script(now: number, process: Process, report: Report) {
    this.sum(now, report);
    if (now - this.lookedAtMs >= this.callMs * 0.95) this.look(now);
    this.nextSlotMs -= (report.unused * 1000) / this.rate.rate;
    this.lastCallMs.set(process, now);
    const alive = this.processes.filter(
      (each) => now - (this.lastCallMs.get(each) ?? -1000) < Math.max(forgottenMs, 3 * this.callMs),
    );
    const { epoch, dropEpoch, validFromMs } = this.rate;
    const lease = now < this.blockedUntilMs ? null : this.lease(now, process, alive.length);
    const slots = share(this.inFlight.limit, alive.length, alive.indexOf(process));
    return { lease, slots, epoch, dropEpoch, validFromMs, blockedUntilMs: this.blockedUntilMs };
  }

  private sum(now: number, report: Report): void {
    const { sums } = this;
    for (const [epoch, { accepted, refused }] of report.tallies) {
      sums.accepted += accepted;
      sums.refused += refused;
      if (epoch !== this.rate.epoch) continue;
      sums.currentAccepted += accepted;
      sums.currentRefused += refused;
    }
    sums.sent += report.sent;
    sums.reports += 1;
    sums.starved += report.starved ? 1 : 0;
    addLatency(sums.latency, report.latency);
    this.countBlocked(now);
    this.blockedUntilMs = Math.max(this.blockedUntilMs, report.blockedUntilMs);
  }

  private countBlocked(now: number): void {
    this.blockedMs += Math.max(0, Math.min(now, this.blockedUntilMs) - this.blockCountedMs);
    this.blockCountedMs = now;
  }

  /** One process of the fleet gets the turn to learn from the sums of all. */
  private look(now: number): void {
    const blockedUntilMs = this.blockedUntilMs > now ? this.blockedUntilMs : 0;
    const seen: Observation = { now, blockedMs: this.blockedMs, blockedUntilMs, ...this.sums };
    this.sums = emptySums();
    this.blockedMs = 0;
    this.lookedAtMs = now;
    const before = this.rate;
    this.rate = learnRate(JSON.parse(JSON.stringify(before)), seen, this.scenario.ceiling ?? null);
    this.inFlight = learnInFlight(JSON.parse(JSON.stringify(this.inFlight)), seen, this.mostInFlight());
    if (this.rate.epoch !== before.epoch) this.restartComb(now, before);
    this.scenario.trace?.(now, this.rate, this.inFlight, seen);
  }

  private restartComb(now: number, before: LearnedRate): void {
    if (this.rate.dropEpoch > before.dropEpoch) this.nextSlotMs = Math.min(this.nextSlotMs, now);
    else if (this.rate.rate > before.rate) this.nextSlotMs = Math.min(this.nextSlotMs, now + aheadMs);
  }

  /** GCRA: with three or more permits a lease a comb of the process's own, else exact slots of the fleet's one sequence. */
  private lease(now: number, process: Process, fleet: number): Lease | null {
    const gapMs = 1000 / this.rate.rate;
    const horizonMs = now + this.callMs + aheadMs;
    const epoch = this.rate.epoch;
    this.nextSlotMs = Math.max(Math.min(this.nextSlotMs, horizonMs + 2 * gapMs), now - burstMs, this.blockedUntilMs);
    if (fleet === 1 || this.callMs / gapMs / fleet >= 3) {
      const nextMs = process.epoch < this.rate.dropEpoch ? now : Math.max(now, process.leaseEndMs);
      const wanted = Math.ceil((horizonMs - nextMs) / (gapMs * fleet) - 1e-9);
      const left = Math.min(wanted, Math.floor((horizonMs + aheadMs - this.nextSlotMs) / gapMs) + 1);
      if (left <= 0) return null;
      this.nextSlotMs += left * gapMs;
      process.leaseEndMs = nextMs + left * gapMs * fleet;
      return { nextMs, gapMs: gapMs * fleet, left, epoch };
    }
    const nextMs = Math.max(this.nextSlotMs, now + 0.5);
    const left = Math.min(Math.floor((horizonMs - nextMs) / gapMs) + 1, Math.ceil(this.callMs / gapMs / fleet) + 1);
    if (left <= 0) return null;
    this.nextSlotMs = nextMs + left * gapMs;
    process.leaseEndMs = this.nextSlotMs;
    return { nextMs, gapMs, left, epoch };
  }

  // ---- the world ----

  private otherClient(now: number): void {
    const perSecond = this.scenario.otherClient?.(now) ?? 0;
    if (perSecond > 0) this.server.answer(now);
    this.events.at(now + (perSecond > 0 ? (1000 / perSecond) * (0.5 + this.random()) : 50), (next) =>
      this.otherClient(next),
    );
  }

  private watch(now: number): void {
    const bucket = Math.round(now / bucketMs);
    this.seen.limit[bucket] = (this.server.limit() - (this.scenario.otherClient?.(now) ?? 0)) * (bucketMs / 1000);
    this.seen.inFlight[bucket] = this.onTheWire;
    if (now + bucketMs < this.endMs) this.events.at(now + bucketMs, (next) => this.watch(next));
  }

  private count(counts: number[], now: number): void {
    const bucket = Math.floor(now / bucketMs);
    if (bucket < counts.length) counts[bucket]! += 1;
  }

  private mostInFlight(): number {
    return this.scenario.mostInFlight ?? 1024;
  }
}

function usePermit(lease: Lease): void {
  lease.nextMs += lease.gapMs;
  lease.left -= 1;
}

function share(limit: number, fleet: number, index: number): number {
  return Math.max(1, Math.floor((limit * (index + 1)) / fleet) - Math.floor((limit * index) / fleet));
}

function addLatency(sum: Observation['latency'], more: Observation['latency']): void {
  sum.count += more.count;
  sum.sumMs += more.sumMs;
  sum.squares += more.squares;
}
