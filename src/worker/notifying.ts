import type { Log } from '../logger.ts';
import type { Target } from '../model/target.ts';
import type { NamedReceiver } from '../notify/receivers.ts';
import type { RedisClient } from '../redis/client.ts';
import { tellOutages, tellWaits } from './event-sources.ts';
import { Notifier } from './notifier.ts';
import { type Part, repeat } from './parts.ts';

/** Who is told of a target. */
export type Notifying = {
  redis: RedisClient;
  target: Target;
  receivers: readonly NamedReceiver[];
  /** The runs of which it is told that they make no progress. */
  runs: () => Promise<readonly string[]>;
  log: Log;
};

const lookEveryMs = 3_000;
const lookForWaitsEveryMs = 30_000;

/** The parts that tell what happens at a target, and post it to each receiver on its own, so that none waits for another; none without receivers. */
export function notifyingParts(notifying: Notifying): Part[] {
  const { redis, target, receivers, runs, log } = notifying;
  if (receivers.length === 0) return [];
  return [
    repeat('outages', lookEveryMs, () => tellOutages(redis, target), log),
    repeat('waits', lookForWaitsEveryMs, async () => tellWaits(redis, target, await runs(), Date.now()), log),
    ...notifiersOf(notifying).map(({ part }) => part),
  ];
}

/** One for each receiver. */
export function notifiersOf({ redis, target: { fp }, receivers, log }: Notifying): Notifier[] {
  const shared = { redis, fp, log, now: Date.now, random: Math.random };
  return receivers.map((receiver) => new Notifier({ ...shared, receiver }));
}
