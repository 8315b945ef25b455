import { until } from './processes.ts';
import { annotations, makeIds, openScene } from './scene.ts';

const latencyMs = 100;

/** Kills the worker that has the only chunk of a run; returns how many ms pass until another worker sends for that chunk. */
export async function takeoverMs(atEnd: Parameters<typeof openScene>[0], afterRequests: number): Promise<number> {
  const ids = makeIds('t', 250);
  const scene = await openScene(atEnd, { objects: annotations(ids), latencyMs });
  const settings = { EXPUNGE_MAX_CONCURRENCY: '4' };
  const victim = await scene.worker([], settings);
  const run = scene.expunge(['run', scene.list(ids), '--resource', 'annotations', '--yes', '--detach']);
  await run.ended;
  await until('the worker is in the middle of the chunk', () => scene.arrivals.length >= afterRequests);
  const heir = await scene.worker([], settings);
  victim.signal('SIGKILL');
  await victim.ended;
  const killedAt = performance.now();
  // What the dead worker had on the wire is looked at by the sandbox a little later.
  const isHeirs = (at: number) => at > killedAt + 3 * latencyMs;
  const tookOverAt = await until('the other worker has taken over', () => scene.arrivals.find(isHeirs), 60_000);
  const { counts } = await scene.runIs('completed', ({ state }) => state === 'completed', 60_000);
  if (counts.deleted + counts.gone_unconfirmed !== ids.length) throw new Error('the run is not whole');
  heir.signal('SIGKILL');
  return tookOverAt - killedAt;
}
