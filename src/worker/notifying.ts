import { readCursor } from '../ledger/outbox.ts';
import type { Log } from '../logger.ts';
import type { Target } from '../model/target.ts';
import type { NamedReceiver } from '../notify/receivers.ts';
import type { RedisClient } from '../redis/client.ts';
import { describeRedisError } from '../redis/errors.ts';
import { withTimeout } from '../wait.ts';
import { publishNewChanges, publishOutages, publishWaits, skipOldChanges } from './event-sources.ts';
import { Notifier } from './notifier.ts';
import { type Part, repeat } from './parts.ts';

/** A target and the receivers of its events. */
export type Notifying = {
  redis: RedisClient;
  target: Target;
  receivers: readonly NamedReceiver[];
  /** The address of the dashboard, for links; '' = not known. */
  dashboardUrl: string;
  /** The runs for which receivers also learn that they make no progress. */
  runs: () => Promise<readonly string[]>;
  log: Log;
};

const lookEveryMs = 3_000;
const lookForWaitsEveryMs = 30_000;

/**
 * The parts that find the events of a target, and post them to each receiver separately, so that no receiver waits for another. None without
 * receivers.
 */
export function notifyingParts(notifying: Notifying): Part[] {
  const { redis, target, receivers, runs, log } = notifying;
  if (receivers.length === 0) return [];
  return [
    repeat('outages', lookEveryMs, () => publishOutages(redis, target), log),
    repeat('waits', lookForWaitsEveryMs, async () => publishWaits(redis, target, await runs(), Date.now()), log),
    ...notifiersOf(notifying).map(({ part }) => part),
  ];
}

/**
 * The same for the process that deletes a run, with the changes of the run. A receiver that is named for the first time gets events from the start
 * on.
 */
export function runNotifyingParts(notifying: Notifying, run: string): Part[] {
  const { redis, target, receivers, dashboardUrl, log } = notifying;
  if (receivers.length === 0) return [];
  const begin = async () => {
    await skipOldChanges(redis, run);
    await Promise.all(receivers.map(({ key }) => readCursor(redis, target.fp, key)));
  };
  return [
    { name: 'receivers', start: begin },
    ...notifyingParts(notifying),
    repeat('changes', lookEveryMs, () => publishNewChanges(redis, run, dashboardUrl), log),
  ];
}

const lastPostMs = 5_000;
const silent: Log = { debug() {}, info() {}, warn() {}, error() {} };

/**
 * Passes on how a run ended, and posts until each receiver has everything, for 5 s at most. Returns the receivers that have not got everything, and
 * the reasons; their events stay in the outbox. Never throws.
 */
export async function postLast(notifying: Notifying, run: string): Promise<{ receiver: string; reason: string }[]> {
  const { redis, receivers } = notifying;
  if (receivers.length === 0) return [];
  const signal = AbortSignal.timeout(lastPostMs);
  const passed = publishNewChanges(redis, run).then(() => '', describeRedisError);
  const post = async (notifier: Notifier) => (await passed) || notifier.finish(signal).catch(describeRedisError);
  const posts = notifiersOf({ ...notifying, log: silent }).map((notifier) =>
    withTimeout(lastPostMs + 500, post(notifier)),
  );
  const reasons = await Promise.all(posts);
  return receivers.flatMap(({ label: receiver }, i) => {
    const reason = reasons[i] ?? 'Redis does not answer';
    return reason === '' ? [] : [{ receiver, reason }];
  });
}

function notifiersOf({ redis, target: { fp }, receivers, log }: Notifying): Notifier[] {
  const shared = { redis, fp, log, now: Date.now, random: Math.random };
  return receivers.map((receiver) => new Notifier({ ...shared, receiver }));
}
