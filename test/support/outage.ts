import type { Run } from '../../src/ledger/run.ts';
import { type Sandbox, startSandbox } from '../../src/sandbox/server.ts';
import { openFleet, passed } from './fleet.ts';
import type { AtEnd } from './harness.ts';
import { annotations } from './ids.ts';
import { until } from './processes.ts';
import { takenIn } from './rate-measures.ts';

export type Outage = {
  /** What is wrong: every answer is a 503, every connection is reset, or nobody listens. */
  kind: 'status-503' | 'reset' | 'refused';
  seconds: number;
  workers: number;
  ids: number;
  atEnd: AtEnd;
};

export type OutageResult = {
  /** Requests of the first second, and per second of the rest; null where nobody could count them. */
  wasted: number | null;
  probesPerSecond: number | null;
  /** From the recovery to the first answer that let an id through. */
  resumedAfterMs: number;
  run: Run;
  words: string;
};

/** In the middle of a run nothing gets through for so long, and then everything again: what that costs. */
export async function measureOutage(outage: Outage): Promise<OutageResult> {
  const { kind, seconds, workers, ids, atEnd } = outage;
  const { harness, ids: list } = await openFleet(atEnd, { ids, workers, sandbox: { latencyMs: 20 } });
  const { sandbox } = harness;
  await until('the run is in the middle', () => sandbox.executed.size > ids / 4);
  const brokenAt = performance.now();
  if (kind === 'refused') await sandbox.close();
  else sandbox.faults = { [kind]: 1 };
  await passed(brokenAt, 1_000 * seconds);
  const mended = kind === 'refused' ? await reopen(sandbox, list, atEnd) : mend(sandbox);
  const mendedAt = performance.now();
  const before = mended.confirmed.size;
  await until('something gets through', () => mended.confirmed.size > before);
  const resumedAfterMs = performance.now() - mendedAt;
  const run = await harness.runIs('completed', ({ state }) => state === 'completed', 120_000);
  const requestsIn = (fromMs: number, toMs: number) => takenIn(sandbox.arrivals, { fromMs, toMs }).requests;
  const wasted = kind === 'refused' ? null : requestsIn(brokenAt, brokenAt + 1_000);
  const probes = requestsIn(brokenAt + 1_000, brokenAt + 1_000 * seconds);
  const probesPerSecond = kind === 'refused' ? null : probes / (seconds - 1);
  const costs = `${wasted ?? '?'} requests in its first second, then ${probesPerSecond?.toFixed(2) ?? '?'}/s`;
  const { failed, unknown } = run.counts;
  const end = `resumed after ${Math.round(resumedAfterMs)} ms; ${failed} failed, ${unknown} unknown, ${run.attempts - ids} attempts beyond the first`;
  return {
    wasted,
    probesPerSecond,
    resumedAfterMs,
    run,
    words: `${kind} for ${seconds} s, ${workers} workers: ${costs}, ${end}`,
  };
}

function mend(sandbox: Sandbox): Sandbox {
  sandbox.faults = {};
  return sandbox;
}

/** Another sandbox in the same place with what the first one still held. */
async function reopen(sandbox: Sandbox, list: readonly string[], atEnd: Outage['atEnd']): Promise<Sandbox> {
  const objects = annotations(list.filter((id) => sandbox.exists('annotations', id)));
  const port = Number(new URL(sandbox.url).port);
  const again = await startSandbox({ objects, port, latencyMs: 20, record: true });
  atEnd(() => again.close());
  return again;
}
