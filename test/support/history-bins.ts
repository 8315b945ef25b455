import { readHistory } from '../../src/ledger/history.ts';
import { closedPoints, type HistoryPoint } from '../../src/ledger/history-points.ts';
import { readRun } from '../../src/ledger/run.ts';
import type { FaultTable } from '../../src/sandbox/faults.ts';
import { passed, startFleet } from './fleet.ts';
import { type AtEnd, type Harness, openHarness } from './harness.ts';
import { annotations, makeIds } from './ids.ts';
import { until } from './processes.ts';
import { percent, takenIn } from './rate-measures.ts';

/** What happens to a run for a few seconds: how its server behaves, or the rate that an operator sets. */
type Phase = { faults: FaultTable; latencyMs: number; rate: string | null; seconds: number };

/** How far a bin is from what the server saw. `share`: of that, beyond what was on its way at the edges of the bin. */
export type BinError = { of: string; point: HistoryPoint; shown: number; seen: number; share: number };

export type BinsResult = { points: HistoryPoint[]; errors: BinError[]; sent: number; words: string };

type BinsRun = {
  seed: number;
  phases: number;
  /** How long a request may be on its way from the process to the server. */
  onTheirWayMs: number;
  atEnd: AtEnd;
};

/**
 * Deletes for some seconds with faults, outages and changes of the rate, ends by cancelling, and holds each closed bin of the history against
 * what arrived at the server in the same time.
 */
export async function measureBins({ seed, phases, onTheirWayMs, atEnd }: BinsRun): Promise<BinsResult> {
  const draw = drawFrom(seed);
  const ids = makeIds('b', 40_000);
  const harness = await openHarness(atEnd, { objects: annotations(ids), latencyMs: 5 });
  const workers = draw(3);
  await startFleet(atEnd, harness, ids, { workers, runArgs: ['--rate', `${60 + 30 * draw(8)}/s`] });
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
  const errors = closedPoints(points).flatMap((point) => errorsOf(harness, point, onTheirWayMs));
  const worst = (edgeMs: number) =>
    Math.max(
      ...closedPoints(points)
        .flatMap((point) => errorsOf(harness, point, edgeMs))
        .map(({ share }) => share),
    );
  const words = `seed ${seed}: ${points.length} bins, ${sent} requests of ${Math.max(1, workers)} processes, worst bin ${percent(worst(onTheirWayMs))} off, ${percent(worst(0))} with what was on its way; ${told.join(' ')}`;
  return { points, errors, sent, words };
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

/** What a bin shows and what arrived in its time, by the clock of Redis, which is that of this machine. */
function errorsOf({ sandbox }: Harness, point: HistoryPoint, edgeMs: number): BinError[] {
  const toOwnClock = performance.now() - Date.now();
  const [fromMs, toMs] = [point.from + toOwnClock, point.to + toOwnClock];
  const seen = takenIn(sandbox.arrivals, { fromMs, toMs });
  const edges = [fromMs, toMs].map((at) => takenIn(sandbox.arrivals, { fromMs: at - 1, toMs: at + edgeMs }));
  const figures = [
    { of: 'requests', shown: point.requests, field: 'requests' },
    { of: '429s', shown: point.refused, field: 'refused' },
    { of: 'deleted', shown: point.counts.deleted!, field: 'accepted' },
  ] as const;
  return figures.map(({ of, shown, field }) => {
    const onTheirWay = edgeMs === 0 ? 0 : Math.max(...edges.map((edge) => edge[field]));
    const off = Math.max(0, Math.abs(shown - seen[field]) - onTheirWay);
    return { of, point, shown, seen: seen[field], share: off / Math.max(1, seen[field]) };
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
