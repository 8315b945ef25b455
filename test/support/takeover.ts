import { type AtEnd, openHarness } from './harness.ts';
import { annotations, makeIds } from './ids.ts';
import { until } from './processes.ts';

const latencyMs = 100;

/** Kills the worker that has the only chunk of a run; returns how many ms pass until another worker sends for that chunk. */
export async function takeoverMs(atEnd: AtEnd, afterRequests: number): Promise<number> {
  const ids = makeIds('t', 250);
  const harness = await openHarness(atEnd, { objects: annotations(ids), latencyMs });
  const settings = { EXPUNGE_MAX_CONCURRENCY: '4' };
  const victim = await harness.spawnWorker([], settings);
  const run = harness.spawn(['run', harness.list(ids), '--resource', 'annotations', '--yes', '--detach']);
  await run.ended;
  await until('the worker is in the middle of the chunk', () => harness.arrivals.length >= afterRequests);
  const successor = await harness.spawnWorker([], settings);
  victim.signal('SIGKILL');
  await victim.ended;
  const killedAt = performance.now();
  // What the dead worker had on the wire is looked at by the sandbox a little later.
  const isSuccessors = (at: number) => at > killedAt + 3 * latencyMs;
  const tookOverAt = await until('the other worker has taken over', () => harness.arrivals.find(isSuccessors));
  const { counts } = await harness.runIs('completed', ({ state }) => state === 'completed');
  if (counts.deleted + counts.gone_unconfirmed !== ids.length) throw new Error('the run is not whole');
  successor.signal('SIGKILL');
  return tookOverAt - killedAt;
}
