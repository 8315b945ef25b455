import { duration } from '../format.ts';
import { type RedisClient, readClock } from './client.ts';

/** What is added to usual times because of the distance of Redis, in ms; see `Distance`. */
export type Spans = Readonly<Record<'answerMs' | 'leadMs' | 'aheadMs', number>>;

/** Those of a near Redis. */
export const near: Spans = { answerMs: 0, leadMs: 0, aheadMs: 0 };

/** Round trips up to this many ms are those of a near Redis, for which all usual times are made. */
const nearMs = 20;
const kept = 20; // the number of round trips that are remembered
const usualShare = 0.5;
const slowShare = 0.8; // of them: a stall of this process or of Redis is not the distance …
const inARow = 2; // … but so many in a row may be
const movedShare = 0.25; // part of a distance by which it has to change before it is said again

/**
 * The distance of Redis, measured by the round trips of this process, and how much longer everything takes because of it. All times that depend on
 * it are derived here: each is added to a usual time, and is 0 while Redis is near.
 */
export class Distance implements Spans {
  readonly #roundTrips: number[] = [];
  #usualMs = 0;
  #saidMs = 0;
  #farMs = 0; // the round trip, or 0 if it is near, and between these from 20 to 30 ms

  /** Records how long Redis took to answer one call, in ms. */
  observe(ms: number): void {
    this.#roundTrips.push(ms);
    if (this.#roundTrips.length > kept) this.#roundTrips.shift();
    const sorted = [...this.#roundTrips].sort((one, other) => one - other);
    const at = (share: number) => sorted[Math.floor(share * (sorted.length - 1))]!;
    this.#usualMs = at(usualShare);
    const latest = Math.min(...this.#roundTrips.slice(-inARow));
    const slowMs = this.#roundTrips.length < inARow ? at(slowShare) : Math.max(at(slowShare), latest);
    if (this.#hasMoved) this.#saidMs = isFar(this.#usualMs) ? Number(this.#usualMs.toPrecision(2)) : 0;
    this.#farMs = Math.min(slowMs, 3 * Math.max(0, slowMs - nearMs));
  }

  /** The round trip for people, in ms; 0 if it need not be said. A small change is not said. */
  get saidMs(): number {
    return this.#saidMs;
  }

  get #hasMoved(): boolean {
    if (this.#saidMs === 0) return isFar(this.#usualMs);
    return Math.abs(this.#usualMs - this.#saidMs) > movedShare * this.#saidMs;
  }

  /** How much later an answer of Redis is used than from a near one, if the question had to wait for the answer before it. */
  get answerMs(): number {
    return 2 * this.#farMs;
  }

  /**
   * How long before its time a permit has to be leased, so that its request is marked by then: the lease travels here, its chunk waits for the answer
   * to an update, and the mark travels there and back.
   */
  get leadMs(): number {
    return 2.5 * this.#farMs;
  }

  /** How much further ahead permits are leased: there are enough until the next lease. A mark may have to wait as long for its permit. */
  get aheadMs(): number {
    return 3.5 * this.#farMs;
  }
}

const farMs = 30;
const roundTripsToBegin = 50; // counted: from the start of a command to its first request
const stopMs = 1_000; // in which a stop takes effect if Redis is near

/** Whether people should know how far Redis is. */
export function isFar(roundTripMs: number): boolean {
  return roundTripMs >= farMs;
}

/** A round trip for people: `0.4 ms`, `62 ms`, `1.5 s`. */
export function roundTripText(ms: number): string {
  if (ms >= 1_000) return duration(ms);
  return `${ms < 10 ? ms.toFixed(1) : Math.round(ms)} ms`;
}

/** How long sending may go on after a pause or a stop. */
export function stopTime(roundTripMs: number): string {
  return isFar(roundTripMs) ? duration(stopMs + 2 * roundTripMs) : 'a second';
}

/** What to do about a far Redis. */
export const nearer = 'run expunge nearer to it';

/** What a far Redis costs: a part of a sentence after `Redis is 62 ms away`. */
export function costOfDistance(roundTripMs: number): string {
  const later = duration(roundTripsToBegin * roundTripMs);
  return `a run begins about ${later} later, and a pause or a stop takes up to ${stopTime(roundTripMs)}`;
}

/** `Redis is 62 ms away: a run begins …`; '' for a near one. */
export function distanceText(roundTripMs: number): string {
  return isFar(roundTripMs)
    ? `Redis is ${roundTripText(roundTripMs)} away: ${costOfDistance(roundTripMs)}; ${nearer}`
    : '';
}

const asked = 3;

/** Measures the round trip to the server that holds this key, in ms: the shortest of three. */
export async function measureRoundTrip(redis: RedisClient, key: string): Promise<number> {
  let shortestMs = Number.POSITIVE_INFINITY;
  for (let n = 0; n < asked; n++) {
    const askedAt = performance.now();
    await readClock(redis, key);
    shortestMs = Math.min(shortestMs, performance.now() - askedAt);
  }
  return shortestMs;
}
