import { readHistory } from '../../src/history/history.ts';
import { closedPoints, type HistoryPoint } from '../../src/history/history-points.ts';
import { readRun } from '../../src/ledger/run.ts';
import type { FaultTable } from '../../src/sandbox/faults.ts';
import { passed, startFleet } from './fleet.ts';
import { type AtEnd, type Harness, openHarness } from './harness.ts';
import { annotations, makeIds } from './ids.ts';
import { until } from './processes.ts';
import { type Arrivals, percent, takenIn } from './rate-measures.ts';

/** What happens to a run for a few seconds: how its server behaves, or the rate that an operator sets. */
type Phase = { faults: FaultTable; latencyMs: number; rate: string | null; seconds: number };

/** How far a bin is from what the server saw, as a share of that: `plain`, and beyond what was on its way at the edges of the bin. */
type BinError = { of: string; from: number; shown: number; seen: number; share: number; plain: number };

/** `shifted`: the errors if each bin were a second later, which a test that sees anything finds. */
export type BinsResult = {
  points: HistoryPoint[];
  errors: BinError[];
  shifted: BinError[];
  sent: number;
  words: string;
};

type BinsRun = {
  seed: number;
  phases: number;
  atEnd: AtEnd;
};

/**
 * Deletes for some seconds with faults, outages and changes of the rate, ends by cancelling, and holds each closed bin of the history against
 * what arrived at the server in the same time.
 */
export async function measureBins({ seed, phases, atEnd }: BinsRun): Promise<BinsResult> {
  const draw = drawFrom(seed);
  const ids = makeIds('b', 40_000);
  const harness = await openHarness(atEnd, { objects: annotations(ids), latencyMs: 5 });
  const workers = draw(3);
  const { ticks } = await startFleet(atEnd, harness, ids, { workers, runArgs: ['--rate', `${60 + 30 * draw(8)}/s`] });
  const { id } = await harness.onlyRun();
  const told: string[] = [];
  for (let n = 0; n < phases; n++) {
    const phase = drawPhase(draw);
    told.push(JSON.stringify(phase));
    await begin(harness, id, phase);
    await passed(performance.now(), 1_000 * phase.seconds);
  }
  await harness.spawn(['cancel', id, '--yes']).ended;
  await harness.runIs('cancelled', ({ state }) => state === 'cancelled', 60_000);
  const sent = harness.sandbox.arrivals.atMs.length;
  const points = await until('all is recorded', async () => {
    const found = (await readHistory(harness.redis, (await readRun(harness.redis, id))!)).points;
    return found.reduce((sum, { requests }) => sum + requests, 0) >= sent && found;
  });
  const errors = errorsOf(harness.sandbox.arrivals, { points: closedPoints(points), ticks });
  const later = closedPoints(points).map((point) => ({ ...point, from: point.from + 1_000, to: point.to + 1_000 }));
  const shifted = errorsOf(harness.sandbox.arrivals, { points: later, ticks });
  const large = errors.filter(({ of, seen }) => of === 'requests' && seen >= 50);
  const plain = Math.max(0, ...large.map(({ plain }) => plain));
  const worst = Math.max(...errors.map(({ share }) => share));
  const words = `seed ${seed}: ${points.length} bins, ${sent} requests of ${Math.max(1, workers)} processes, worst bin ${percent(worst)} off; with what was on its way ${percent(plain)} of at least 50 requests (${large.length} bins); ${told.join(' ')}`;
  return { points, errors, shifted, sent, words };
}

async function begin({ sandbox, spawn }: Harness, run: string, { faults, latencyMs, rate }: Phase): Promise<void> {
  sandbox.faults = faults;
  sandbox.latencyMs = latencyMs;
  if (rate !== null) await spawn(['rate', run, rate]).ended;
}

function drawPhase(draw: (below: number) => number): Phase {
  const seconds = 3 + draw(3);
  const calm = { faults: {}, latencyMs: 5, rate: null, seconds };
  const all: Phase[] = [
    { ...calm, faults: { 'status-503': 0.05, reset: 0.02, 'status-500-executed': 0.03 } },
    { ...calm, faults: { 'status-429-seconds': 0.01 } },
    { ...calm, faults: { rate: { perSecond: 40 } } },
    { ...calm, faults: { 'status-503': 1 } },
    { ...calm, faults: { reset: 1 } },
    { ...calm, latencyMs: 300 },
    { ...calm, rate: `${30 + 30 * draw(10)}/s` },
    { ...calm, rate: 'none', faults: { rate: { perSecond: 200 } } },
    calm,
  ];
  return all[draw(all.length)]!;
}

const oneRequest = 1; // clocks differ by a millisecond, and 2 % of a small bin are less than a request

type Held = { points: readonly HistoryPoint[]; ticks: readonly number[] };

/** How long a request may be on its way to a server that is awake. */
const onTheirWayMs = 50;

const figures = [
  { of: 'requests', shownIn: (point: HistoryPoint) => point.requests, field: 'requests' },
  { of: '429s', shownIn: (point: HistoryPoint) => point.refused, field: 'refused' },
  { of: 'deleted', shownIn: (point: HistoryPoint) => point.counts.deleted!, field: 'accepted' },
] as const;

/** What each bin shows beside what arrived in its time, by the clock of Redis, which is that of this machine. */
function errorsOf(arrivals: Arrivals, { points, ticks }: Held): BinError[] {
  const toOwnClock = performance.now() - Date.now();
  // A server that stood still reads at once all that came meanwhile: a request may have come as early as the tick before.
  const wayTo = (atMs: number) => {
    const nextTick = ticks.find((tick) => tick >= atMs) ?? atMs;
    return takenIn(arrivals, { fromMs: atMs - 1, toMs: nextTick + onTheirWayMs });
  };
  return points.flatMap((point) => {
    const span = { fromMs: point.from + toOwnClock, toMs: point.to + toOwnClock };
    const [seen, before, after] = [takenIn(arrivals, span), wayTo(span.fromMs), wayTo(span.toMs)];
    return figures.map(({ of, shownIn, field }) => {
      const shown = shownIn(point);
      const more = shown - seen[field];
      const off = Math.abs(more) - (more > 0 ? after[field] : before[field]);
      const whole = Math.max(1, seen[field]);
      return {
        of,
        from: point.from,
        shown,
        seen: seen[field],
        share: off <= oneRequest ? 0 : off / whole,
        plain: Math.abs(more) / whole,
      };
    });
  });
}

/** Whole numbers below a bound, the same for the same seed. */
function drawFrom(seed: number): (below: number) => number {
  let state = seed * 2_654_435_761 + 1;
  return (below) => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
    return Math.floor((state / 2_147_483_648) * below);
  };
}
