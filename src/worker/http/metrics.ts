import { collectDefaultMetrics, type Metric, Registry } from '@prometheus-io/client';
import { families } from './families.ts';
import type { Seen } from './seen.ts';

/** The Prometheus text of this process. */
export type Metrics = { contentType: string; text(): Promise<string> };

/**
 * Counts nothing by itself: what the parts of the process count anyway is read when somebody asks. `look` gathers it, and takes a second at
 * most.
 */
export function openMetrics(look: () => Promise<Seen>): Metrics {
  const registry = new Registry();
  let seen: Seen | null = null;
  collectDefaultMetrics({ register: registry });
  for (const { name, type, help, read } of families) {
    const get = async () => ({ name, type, help, values: seen === null ? [] : read(seen) });
    // The registry asks no more of a metric than this; it makes such ones itself when it aggregates.
    registry.registerMetric({ name, type, help, get } as unknown as Metric);
  }
  return {
    contentType: registry.contentType,
    text: async () => {
      seen = await look();
      return registry.metrics();
    },
  };
}
