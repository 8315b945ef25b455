import { describe, expect, it } from 'vitest';
import { Live } from '../../../src/api/live.ts';

/** A reading whose laps the test starts. */
function openLive(read: () => Promise<unknown>) {
  const laps: (() => void)[] = [];
  let reads = 0;
  const live = new Live({
    event: 'snapshot',
    everyMs: 1_000,
    problem: (error) => ({ detail: String(error) }),
    wait: () => new Promise((resolve) => laps.push(resolve)),
    read: () => {
      reads += 1;
      return read();
    },
  });
  return { live, lap: () => laps.splice(0).forEach((next) => void next()), reads: () => reads };
}

async function settled(): Promise<void> {
  for (let turn = 0; turn < 20; turn++) await Promise.resolve();
}

describe('one reading for all who look', () => {
  it('reads once a lap, however many look', async () => {
    const { live, lap, reads } = openLive(async () => 'all');
    const stop = new AbortController();
    const viewers = Array.from({ length: 50 }, () => live.follow(stop.signal));
    const first = await Promise.all(viewers.map((viewer) => viewer.next()));
    expect([reads(), new Set(first.map(({ value }) => value.id)).size]).toEqual([1, 1]);
    const second = viewers.map((viewer) => viewer.next());
    await settled();
    lap();
    await Promise.all(second);
    expect([reads(), live.viewers]).toEqual([2, 50]);
  });

  it('reads nothing while nobody looks', async () => {
    const { live, lap, reads } = openLive(async () => 'all');
    const stop = new AbortController();
    const viewer = live.follow(stop.signal);
    await viewer.next();
    const next = viewer.next();
    await settled();
    stop.abort();
    expect((await next).done).toBe(true);
    lap();
    await settled();
    lap();
    await settled();
    expect([reads(), live.viewers]).toEqual([1, 0]);
  });

  it('shows who comes back what they have not seen, and nothing twice', async () => {
    const { live, lap } = openLive(async () => 'all');
    const stop = new AbortController();
    const { id } = await live.current();
    const viewer = live.follow(stop.signal, id);
    const next = viewer.next();
    await settled();
    lap();
    expect((await next).value.id).toBeGreaterThan(id);
  });

  it('tells that it cannot read, and goes on when it can', async () => {
    let isAway = true;
    const { live, lap } = openLive(async () => {
      if (isAway) throw new Error('away');
      return 'back';
    });
    const viewer = live.follow(new AbortController().signal);
    expect((await viewer.next()).value).toMatchObject({ event: 'problem', text: '{"detail":"Error: away"}' });
    isAway = false;
    const next = viewer.next();
    await settled();
    lap();
    expect((await next).value).toMatchObject({ event: 'snapshot', text: '"back"' });
  });
});
