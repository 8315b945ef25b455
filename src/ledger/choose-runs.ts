import type { RedisClient } from '../redis/client.ts';
import { type ListedRun, runPages } from './list-runs.ts';
import { pendingOf, type RunState } from './run.ts';

/** Which runs somebody wants to see, and in which order. What is missing lets every run pass. */
export type RunChoice = {
  states?: readonly RunState[];
  since?: number; // made then or later; ms since 1970
  target?: string; // a part of its base URL or account
  list?: string; // a part of a file's name
  by?: string; // a part of who submitted it
  sort: RunOrder;
  limit: number;
};

/** `hasMore`: there are runs that fit beyond `limit`. */
export type ChosenRuns = { runs: ListedRun[]; hasMore: boolean };

const orders = {
  created: null, // the order of the registry
  changed: (run: ListedRun) => Math.max(run.changedAt, run.endedAt, run.createdAt),
  rows: (run: ListedRun) => run.rows,
  pending: pendingOf,
  failed: (run: ListedRun) => run.counts.failed + run.counts.unknown,
} satisfies Record<string, ((run: ListedRun) => number) | null>;

export type RunOrder = keyof typeof orders;
export const runOrders = Object.keys(orders) as RunOrder[];

/** The newest first, or the largest. In the order of their making no more is read than is wanted. */
export async function chooseRuns(redis: RedisClient, choice: RunChoice): Promise<ChosenRuns> {
  const measure = orders[choice.sort];
  const runs: ListedRun[] = [];
  for await (const page of runPages(redis, choice.since)) {
    for (const run of page) if (fits(run, choice)) runs.push(run);
    if (measure === null && runs.length > choice.limit) break;
  }
  if (measure !== null) runs.sort((a, b) => measure(b) - measure(a));
  return { runs: runs.slice(0, choice.limit), hasMore: runs.length > choice.limit };
}

function fits(run: ListedRun, { states, target, list, by }: RunChoice): boolean {
  if (states !== undefined && !states.includes(run.state)) return false;
  if (target !== undefined && !holds(`${run.baseUrl} ${run.account}`, target)) return false;
  if (list !== undefined && !run.files.some((file) => holds(file, list))) return false;
  return by === undefined || holds(run.createdBy, by);
}

function holds(text: string, part: string): boolean {
  return text.toLowerCase().includes(part.toLowerCase());
}
