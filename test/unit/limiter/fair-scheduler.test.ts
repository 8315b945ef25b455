import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { FairScheduler, RunQueue } from '../../../src/limiter/fair-scheduler.ts';
import { Permits } from '../../../src/limiter/permits.ts';

/** Turns in a time of their own: `gone` says who left when. */
function openTurns({ room = (): boolean => true } = {}) {
  let now = 0;
  const gone: string[] = [];
  const unwilling = new Set<string>();
  const permits = new Permits();
  const turns = new FairScheduler<string>({
    permits,
    hasRoom: room,
    send: (who) => gone.push(`${who}@${now}`),
    clock: () => now,
  });
  onTestFinished(() => turns.close());
  const line = (own: Permits | null) =>
    new RunQueue<string>({ permits: () => own, stillWants: (who) => !unwilling.has(who) });
  const at = (ms: number) => {
    now = ms;
    turns.pump();
  };
  return { turns, permits, gone, unwilling, line, at };
}

function lease(firstMs: number, gapMs: number, count: number): Permits {
  const permits = new Permits();
  permits.add({ firstMs, gapMs, count, leasedAt: 0 }, 0);
  return permits;
}

describe('the fair scheduler', () => {
  it('never catches up with permits of the target for permits of the run that expired', () => {
    const { turns, permits, gone, line, at } = openTurns();
    const own = line(lease(0, 10, 100));
    for (let n = 0; n < 40; n++) turns.add(own, `${n}`);
    permits.add({ firstMs: 200, gapMs: 1, count: 50, leasedAt: 0 }, 0);
    for (let ms = 0; ms <= 240; ms++) at(ms);
    // Four of the last 40 ms before the target let somebody go, one in that moment, and four in the 40 ms after it.
    expect(gone).toHaveLength(9);
  });

  it('serves queues in turn: a long one does not delay a short one', () => {
    const { turns, permits, gone, line, at } = openTurns();
    const [long, short] = [line(null), line(null)];
    for (const who of ['a1', 'a2', 'a3', 'a4']) turns.add(long, who);
    for (const who of ['b1', 'b2']) turns.add(short, who);
    permits.add({ firstMs: 1, gapMs: 1, count: 10, leasedAt: 0 }, 0);
    for (let ms = 1; ms <= 6; ms++) at(ms);
    expect(gone).toEqual(['a1@1', 'b1@2', 'a2@3', 'b2@4', 'a3@5', 'a4@6']);
  });

  it('gives a single queue everything', () => {
    const { turns, permits, gone, line, at } = openTurns();
    const single = line(null);
    for (let n = 0; n < 5; n++) turns.add(single, `${n}`);
    turns.add(line(lease(100, 1, 1)), 'not yet');
    permits.add({ firstMs: 1, gapMs: 1, count: 10, leasedAt: 0 }, 0);
    for (let ms = 1; ms <= 5; ms++) at(ms);
    expect(gone).toEqual(['0@1', '1@2', '2@3', '3@4', '4@5']);
  });

  it('skips a queue whose own rate has no permit yet', () => {
    const { turns, permits, gone, line, at } = openTurns();
    turns.add(line(lease(5, 10, 10)), 'slow');
    const fast = line(null);
    for (const who of ['f1', 'f2', 'f3']) turns.add(fast, who);
    permits.add({ firstMs: 4, gapMs: 1, count: 10, leasedAt: 0 }, 0);
    for (let ms = 4; ms <= 7; ms++) at(ms);
    expect(gone).toEqual(['f1@4', 'slow@5', 'f2@6', 'f3@7']);
  });

  it('uses no permit for a request that may not be sent any more', () => {
    const { turns, permits, gone, unwilling, line, at } = openTurns();
    const own = line(null);
    for (const who of ['a', 'b', 'c']) turns.add(own, who);
    unwilling.add('a').add('b');
    permits.add({ firstMs: 1, gapMs: 1, count: 1, leasedAt: 0 }, 0);
    at(1);
    expect([gone, turns.length]).toEqual([['c@1'], 0]);
  });

  it('reports that a permit was due and no connection was free', () => {
    let room = false;
    const { turns, permits, gone, line, at } = openTurns({ room: () => room });
    permits.add({ firstMs: 10, gapMs: 1, count: 5, leasedAt: 0 }, 0);
    turns.add(line(null), 'a');
    expect(turns.takeStarved()).toBe(false);
    at(10);
    expect([turns.takeStarved(), turns.takeStarved()]).toEqual([true, false]);
    room = true;
    at(11);
    expect(gone).toEqual(['a@11']);
  });

  it('wakes up for a permit that is due later', () => {
    vi.useFakeTimers();
    onTestFinished(() => void vi.useRealTimers());
    const permits = new Permits();
    const gone: string[] = [];
    const clock = () => Date.now();
    const turns = new FairScheduler<string>({ permits, hasRoom: () => true, send: (who) => gone.push(who), clock });
    permits.add({ firstMs: Date.now() + 30, gapMs: 10, count: 2, leasedAt: 0 }, 0);
    const line = new RunQueue<string>({ permits: () => null, stillWants: () => true });
    turns.add(line, 'a');
    turns.add(line, 'b');
    vi.advanceTimersByTime(30);
    expect(gone).toEqual(['a']);
    vi.advanceTimersByTime(10);
    expect(gone).toEqual(['a', 'b']);
  });

  it('gives a queue no second share because more comes into it during its turn', () => {
    const { turns, permits, gone, line, at } = openTurns();
    const [busy, other] = [line(null), line(null)];
    for (const who of ['a', 'a']) turns.add(busy, who);
    for (const who of ['b', 'b']) turns.add(other, who);
    permits.add({ firstMs: 1, gapMs: 1, count: 10, leasedAt: 0 }, 0);
    for (let ms = 1; ms <= 4; ms++) {
      turns.add(busy, 'a');
      at(ms);
    }
    expect(gone).toEqual(['a@1', 'b@2', 'a@3', 'b@4']);
  });

  it('knows how many wait, also when some have left or may not be sent any more', () => {
    const { turns, permits, unwilling, line, at } = openTurns();
    const [one, two] = [line(null), line(null)];
    for (const who of ['a', 'b', 'c', 'd']) turns.add(one, who);
    for (const who of ['x', 'y']) turns.add(two, who);
    expect(turns.length).toBe(6);
    permits.add({ firstMs: 1, gapMs: 1, count: 3, leasedAt: 0 }, 0);
    for (let ms = 1; ms <= 3; ms++) at(ms);
    expect([turns.length, one.length, two.length]).toEqual([3, 2, 1]);
    for (const who of ['c', 'y']) unwilling.add(who);
    turns.revalidate();
    expect([turns.length, one.length, two.length]).toEqual([1, 1, 0]);
  });

  it('sleeps until the next permit, is woken for an earlier one, and no more once it is closed', () => {
    vi.useFakeTimers({ now: 1_000 });
    onTestFinished(() => void vi.useRealTimers());
    const gone: string[] = [];
    const permits = lease(1_000, 1, 1_000);
    const turns = new FairScheduler<string>({
      permits,
      hasRoom: () => true,
      clock: () => Date.now(),
      send: (who) => void gone.push(`${who}@${Date.now()}`),
    });
    const line = (own: Permits) => new RunQueue<string>({ permits: () => own, stillWants: () => true });
    turns.add(line(lease(1_500, 1, 1)), 'later');
    turns.add(line(lease(1_100, 1, 1)), 'soon');
    expect(vi.getTimerCount()).toBe(1);
    vi.advanceTimersToNextTimer();
    expect(gone).toEqual(['soon@1100']);
    vi.advanceTimersToNextTimer();
    expect(gone).toEqual(['soon@1100', 'later@1500']);
    expect(vi.getTimerCount()).toBe(0); // nobody waits
    turns.add(line(lease(1_900, 1, 1)), 'never');
    turns.close();
    expect(vi.getTimerCount()).toBe(0);
  });
});
