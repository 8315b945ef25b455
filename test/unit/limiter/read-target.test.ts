import { describe, expect, it } from 'vitest';
import { firstInFlight } from '../../../src/limiter/learning/learn-in-flight.ts';
import { firstRate } from '../../../src/limiter/learning/learned-rate.ts';
import { learnedStart, toTargetState } from '../../../src/limiter/read-target.ts';

const now = 1_800_000_000_000;
const ramp = { ...firstRate(now, null), phase: 'ramp', rate: 412, low: 410, answered: 411, high: 430 } as const;

function limiter(rate: object = {}, inFlight: object = {}) {
  const learned = { rate: { ...ramp, ...rate }, inFlight: { ...firstInFlight(now, 64), ...inFlight } };
  return {
    seenAt: String(now - 40),
    phase: 'ramp',
    rate: '412',
    high: '430',
    inFlight: '20',
    holdUntil: '0',
    holdWhy: 'asked for',
    state: JSON.stringify(learned),
  };
}

const members = (count: number) =>
  Object.fromEntries(Array.from({ length: count }, (_, i) => [`p${i}`, `${(now - 60).toFixed(3)} 64`]));

const read = (hash: Record<string, string>, fleet = members(1)) => toTargetState(hash, fleet, now);

describe('the state of a limiter', () => {
  it('is none where nobody ever sent anything', () => {
    expect(toTargetState({}, {}, now)).toBeNull();
  });

  it('tells the rate, the limit and how much is used', () => {
    expect(read(limiter({ demand: { sent: 300, allowed: 400 } }))).toMatchObject({
      at: now,
      silentMs: 40,
      processes: 1,
      phase: 'ramp',
      rate: 412,
      use: 0.75,
      limitMet: 430,
      ceiling: null,
      advised: null,
      inFlight: 20,
      isStarved: false,
      hold: null,
      outage: null,
    });
  });

  it('has defaults for whatever is not there yet', () => {
    expect(toTargetState({ seenAt: String(now) }, {}, now)).toMatchObject({
      processes: 0,
      phase: '',
      rate: 0,
      use: 1,
      limitMet: 0,
      learned: null,
      inFlight: 0,
    });
  });

  it('tells for how long nothing may leave, and why, until that is over', () => {
    const held = { ...limiter(), holdUntil: String(now + 21_000) };
    expect(read(held)?.hold).toEqual({ kind: 'retry_after', reason: 'asked for', leftMs: 21_000, since: null });
    expect(read({ ...held, holdUntil: String(now) })?.hold).toBeNull();
  });

  it('tells for how long nothing was accepted, once it is a quarter of an hour', () => {
    const dry = (minutes: number, more: Record<string, string> = {}) =>
      read({
        ...limiter(),
        dryMs: String(minutes * 60_000),
        drySince: '1000',
        dryAnswers: '7',
        wantedAt: String(now - 40),
        ...more,
      })?.stalled;
    expect(dry(15)).toEqual({ since: 1_000, ms: 900_000 });
    expect(dry(14.9)).toBeNull();
    expect(dry(15, { dryAnswers: '0' })).toBeNull(); // nothing was refused: there was only nothing to send
    expect(dry(15, { wantedAt: String(now - 61_000) })).toBeNull(); // nobody works on it any more
  });

  it('tells of an outage since when', () => {
    const closedWhy = 'the API answers 503 to everything';
    const out = { ...limiter(), closed: 'trouble', closedWhy, closedAt: String(now - 5_000) };
    expect(read(out)?.outage).toMatchObject({ kind: out.closed, reason: closedWhy, since: now - 5_000 });
    expect(read({ ...out, closed: 'refused' })?.outage).toMatchObject({ kind: 'refused', reason: closedWhy });
    const wait = { ...out, closed: 'held', holdWhy: 'the server answered 429 and sent Retry-After 60' };
    expect(read({ ...wait, holdUntil: `${now + 60_000}` })?.outage).toBeNull(); // it is told as a hold
    const reason = 'the wait that the API asked for is over';
    expect(read({ ...wait, holdUntil: `${now - 1_000}` })?.outage).toEqual({
      kind: 'held',
      reason,
      since: now - 1_000,
      countsTries: false,
    });
  });

  it('tells when the tries of an outage begin to count, for which the time of a stop does not', () => {
    const out = { ...limiter(), closed: 'trouble', outageSince: String(now - 3_600_000) };
    const closedFor = (ms: number) => read({ ...out, closedAt: String(now - ms) })?.outage;
    expect(closedFor(899_999)).toMatchObject({ since: now - 3_600_000, countsTries: false });
    expect(closedFor(900_000)).toMatchObject({ since: now - 3_600_000, countsTries: true });
  });

  it('tells what the headers of the server leave, once they are believed', () => {
    expect(read({ ...limiter(), announced: '50' })?.advised).toBe(50);
    expect(read({ ...limiter(), announced: '' })?.advised).toBeNull();
    expect(read(limiter())?.advised).toBeNull();
  });

  it('counts the processes that want permits and their connections', () => {
    const fleet = { ...members(3), old: `${now - 1_000} 64` };
    expect(read({ ...limiter(), inFlight: '500' }, fleet)).toMatchObject({ processes: 3, inFlight: 192 });
  });

  it('is starved when permits wait for free connections', () => {
    const window = { openMs: 0, count: 0, sumMs: 0, reports: 10, starved: 5 };
    expect(read(limiter({}, { window }))?.isStarved).toBe(true);
    expect(read(limiter({}, { window: { ...window, starved: 3 } }))?.isStarved).toBe(false);
  });
});

describe('where a run begins', () => {
  it('is what was learned, and a little under it after a minute of silence', () => {
    expect(read(limiter())?.learned).toBe(412);
    const silent = { ...limiter(), seenAt: String(now - 3_600_000) };
    expect(read(silent)?.learned).toBeCloseTo(410 * 0.9 * 0.98, 0);
  });

  it('is the most that was answered, until something was refused', () => {
    const seek = { phase: 'seek', rate: 160, low: 80, high: 0, answered: 49 };
    const fresh = { ...limiter(seek), high: '0' };
    expect(read(fresh)?.learned).toBe(49);
    expect(read({ ...fresh, seenAt: String(now - 3_600_000) })?.learned).toBe(49);
    expect(learnedStart(read(fresh)!)).toMatchObject({ perSecond: 49, wasRefused: false });
    expect(learnedStart(read(limiter())!)).toMatchObject({ perSecond: 412, wasRefused: true });
  });

  it('is low after refusals that made it less than half of what was accepted before', () => {
    const refusals = { refused: 2, answers: 583, atMs: now - 40_000, acceptedSince: 9 };
    const low = (answered: number, seen: object = refusals) => {
      const state = { ...JSON.parse(limiter({ answered }).state), refusals: seen };
      return read({ ...limiter(), state: JSON.stringify(state) })?.lowAfter;
    };
    expect(low(900)).toEqual({ refused: 2, answers: 583, agoMs: 40_000 });
    expect(low(800)).toBeNull();
    expect(low(900, { ...refusals, refused: 0 })).toBeNull();
  });

  it('is unknown before anything was accepted', () => {
    expect(read(limiter({ low: 0 }))?.learned).toBeNull();
    expect(learnedStart(read(limiter({ low: 0 }))!)).toBeNull();
    expect(learnedStart(null)).toBeNull();
  });

  it('is the limit of the target, unless less was learned', () => {
    const of200 = { perSecond: 200, spent: null };
    const start = (hash: Record<string, string>) => learnedStart(toTargetState(hash, {}, now, of200)!, 200);
    const silent = { ...limiter({ rate: 150, low: 150, high: 150 }), seenAt: String(now - 3_600_000) };
    expect(start(limiter())).toMatchObject({ perSecond: 200, isCapped: true, wasRefused: true });
    expect(start(limiter({ rate: 150, low: 150 }))).toMatchObject({ perSecond: 150, isCapped: false });
    expect(start(silent)).toMatchObject({ perSecond: expect.closeTo(150 * 0.9 * 0.98, 0), isCapped: false });
    const capped = { perSecond: 200, silentMs: 0, isCapped: true, wasRefused: false, lowAfter: null };
    expect(start(limiter({ low: 0 }))).toEqual(capped);
    expect(learnedStart(null, 200)).toEqual(capped);
  });

  it('is bounded by the limit of now, whatever it was at the last call', () => {
    const bounded = (ceiling: string, perSecond: number | null) =>
      toTargetState({ ...limiter(), ceiling }, members(1), now, { perSecond, spent: null });
    expect(bounded('300', 200)).toMatchObject({ rate: 200, ceiling: 200 });
    expect(bounded('100', 200)).toMatchObject({ rate: 200, ceiling: 200 });
    expect(bounded('0', 200)).toMatchObject({ rate: 200, ceiling: 200 });
    expect(bounded('100', null)).toMatchObject({ rate: 412, ceiling: null });
  });
});
