import { never, until } from './processes.ts';
import type { Scene } from './scene.ts';

/** When the requests for ids with this beginning arrived. */
export function arrivalsOf({ sandbox }: Scene, name: string): number[] {
  const { seen, arrivals } = sandbox;
  return arrivals.atMs.filter((_, n) => seen[n]!.includes(`/${name}-`));
}

/** The part of all requests of a stretch of time that was for ids with this beginning. */
export function partOf(scene: Scene, name: string, fromMs: number, toMs: number): number {
  const within = (at: number) => at >= fromMs && at < toMs;
  return arrivalsOf(scene, name).filter(within).length / scene.sandbox.arrivals.atMs.filter(within).length;
}

/** Runs a command to its end; returns when it ended. */
export async function steered(scene: Scene, args: string[]): Promise<number> {
  const command = scene.expunge(args);
  const { code } = await command.ended;
  if (code !== 0) throw new Error(`${args.join(' ')} failed: ${command.stderr}`);
  return performance.now();
}

const promisedMs = 1_000;

/** Nothing for ids with this beginning arrives later than a second after `at`. */
export async function falls(scene: Scene, name: string, at: number): Promise<void> {
  const last = () => arrivalsOf(scene, name).at(-1) ?? 0;
  await until('the second has passed', () => performance.now() > at + promisedMs);
  await never('a request after a second', () => last() > at + promisedMs, promisedMs);
}
