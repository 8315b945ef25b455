import type { Harness } from './harness.ts';
import { until } from './processes.ts';
import { promised } from './size.ts';

/** When the requests for ids with this beginning arrived. */
export function arrivalsOf({ sandbox }: Harness, name: string): number[] {
  const { seen, arrivals } = sandbox;
  return arrivals.atMs.filter((_, n) => seen[n]!.includes(`/${name}-`));
}

/** The part of the next so many requests that is for ids with this beginning. */
export async function partOfNext(harness: Harness, requests: number, name: string): Promise<number> {
  const { seen } = harness.sandbox;
  const from = seen.length;
  await until(`${requests} more requests have arrived`, () => seen.length >= from + requests);
  const next = seen.slice(from, from + requests);
  return next.filter((request) => request.includes(`/${name}-`)).length / requests;
}

/** Runs a command to its end; returns when it ended. */
export async function steered(harness: Harness, args: string[]): Promise<number> {
  const command = harness.spawn(args);
  const { code } = await command.ended;
  if (code !== 0) throw new Error(`${args.join(' ')} failed: ${command.stderr}`);
  return performance.now();
}

const quietMs = 1_000;

/** Nothing for ids with this beginning arrives any more, from a second after `at` on. */
export async function stopsWithinASecond(harness: Harness, name: string, at: number): Promise<void> {
  const last = () => arrivalsOf(harness, name).at(-1) ?? 0;
  await until('nothing arrives any more', () => performance.now() > Math.max(at, last()) + quietMs);
  if (last() > at + promised(1_000)) throw new Error('a request came later than a second');
}
