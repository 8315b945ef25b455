import type { Run } from '../../src/ledger/run.ts';
import { findBroken } from './checker.ts';
import { type AtEnd, openHarness } from './harness.ts';
import { annotations, makeIds } from './ids.ts';
import { openLocalWorkers } from './local-workers.ts';
import { until } from './processes.ts';

/** An API that now and then refuses everything with one status. */
export type Spell = {
  ids: number;
  /** The share of ids that are truly not there, in random order. */
  absent: number;
  /** Answers that are false: from which request on, and how many. */
  bursts: readonly { from: number; length: number }[];
  /** Worker processes; 1 is a run that deletes by itself. */
  workers: number;
  latencyMs: number;
  status: number;
  expectAbsent?: boolean;
};

/** What became of it. `wrong`: the ids that were settled by a false answer; `broken`: a promise that a completed run broke. */
export type SpellResult = { run: Run; wrong: number; broken: string | null; requests: number };

const isOver = ({ state }: Run) => state === 'completed' || state === 'halted';

/** A run through such a time, from its start to its end or its halt. `random`: from 0 to 1. */
export async function runThrough(atEnd: AtEnd, spell: Spell, random: () => number): Promise<SpellResult> {
  const ids = makeIds('s', spell.ids);
  const there = ids.filter(() => random() >= spell.absent);
  let n = 0;
  const script = () => {
    n++;
    return spell.bursts.some(({ from, length }) => n > from && n <= from + length)
      ? (`status-${spell.status}` as const)
      : null;
  };
  const server = { objects: annotations(there), latencyMs: spell.latencyMs, record: true, faults: { script } };
  const { sandbox, redis, run } = await (spell.workers === 1 ? alone : together)(atEnd, ids, server, spell);
  const evidence = { redis, run, sandbox, resource: 'annotations' as const, ids, bystanders: [] };
  const broken = run.state === 'completed' ? await findBroken(evidence) : null;
  // Recorded as absent, though it is there, or was there until this run deleted it.
  const falselyAbsent = Math.max(0, run.counts.absent - (spell.ids - there.length));
  return { run, wrong: falselyAbsent + run.counts.failed, broken, requests: n };
}

type Server = Parameters<typeof openLocalWorkers>[1];

async function alone(atEnd: AtEnd, ids: string[], server: Server, { expectAbsent }: Spell) {
  const harness = await openHarness(atEnd, server);
  harness.env.EXPUNGE_RETRY_DELAYS = '100ms,500ms,500ms,500ms,500ms';
  const flags = expectAbsent ? ['--expect-absent'] : [];
  await harness.run([harness.list(ids), '--resource', 'annotations', '--yes', ...flags]);
  return { sandbox: harness.sandbox, redis: harness.redis, run: await harness.onlyRun() };
}

const retries = { retryDelaysMs: [100, 500, 500, 500, 500] };

async function together(atEnd: AtEnd, ids: string[], server: Server, { workers, expectAbsent = false }: Spell) {
  const local = await openLocalWorkers(atEnd, server, retries);
  for (let n = 1; n < workers; n++) await local.add(retries);
  const id = await local.submit(ids, { expectAbsent });
  const run = await until('the run has ended', async () => {
    const found = await local.run(id);
    return isOver(found) && found;
  });
  return { sandbox: local.sandbox, redis: local.redis, run };
}
