import { collectDefaultMetrics, type Metric, Registry } from '@prometheus-io/client';
import { latencyBounds } from '../../ledger/measures.ts';
import type { RunState } from '../../ledger/run.ts';
import { type Cause, causes, type Standing } from '../../ledger/standing.ts';
import { resources } from '../../model/resource.ts';
import { occurrenceResults } from '../../schedule/schedule.ts';
import { type Scrape, scheduleStates } from './scrape.ts';

/** The Prometheus text of this process. */
export type Metrics = { contentType: string; text(): Promise<string> };

/** The metrics of a process. Each call of `text` reads the process's counters again with `scrape`, which takes a second at most. */
export function openMetrics(scrape: () => Promise<Scrape>): Metrics {
  const registry = new Registry();
  let last: Scrape | null = null;
  collectDefaultMetrics({ register: registry });
  for (const { name, type, help, read } of families) {
    const get = async () => ({ name, type, help, values: last === null ? [] : read(last) });
    // The registry needs only these members of a metric; it makes such objects itself when it aggregates.
    registry.registerMetric({ name, type, help, get } as unknown as Metric);
  }
  return {
    contentType: registry.contentType,
    text: async () => {
      last = await scrape();
      return registry.metrics();
    },
  };
}

/** One line of the exposition. `metricName`: if it differs from the name of the family, as in `…_bucket`. */
type Sample = { value: number; labels?: Record<string, string>; metricName?: string };

/** A metric: its name, its meaning, and how it is read. No samples = not known now. */
type Family = {
  name: string;
  type: 'counter' | 'gauge' | 'histogram';
  labels?: readonly string[];
  help: string;
  read(scrape: Scrape): Sample[];
};

/**
 * Every metric of expunge. Labels have few values, whatever is deleted: a run, an id, a file or a host is never a label. Metrics "of the target" are
 * read from Redis and are the same on all its workers, so take their maximum, not their sum.
 */
export const families: readonly Family[] = [
  {
    name: 'expunge_build_info',
    type: 'gauge',
    labels: ['version', 'revision', 'node'],
    help: 'Always 1; the labels name the running version.',
    read: ({ build }) => [{ value: 1, labels: { ...build, node: process.versions.node } }],
  },
  {
    name: 'expunge_target_info',
    type: 'gauge',
    labels: ['base_url', 'account'],
    help: 'Always 1; the labels name the target of this process, so that alerts can tell targets apart.',
    read: ({ target: { baseUrl, account } }) => [{ value: 1, labels: { base_url: baseUrl, account } }],
  },
  {
    name: 'expunge_hold',
    type: 'gauge',
    labels: ['reason'],
    help: '1 while nothing is sent to the target for this reason, otherwise 0; redis and redis_writes also while this process alone sees it.',
    read: ({ redis, service }) =>
      targetHolds.map((reason) => ({ value: isHeld(reason, redis, service) ? 1 : 0, labels: { reason } })),
  },
  {
    name: 'expunge_runs_held',
    type: 'gauge',
    labels: ['reason'],
    help: 'Detached runs of the target that have not ended and send nothing, by the reason that is reported first.',
    read: ({ redis }) =>
      redis === null
        ? []
        : causes.map((reason) => ({
            value: heldRuns(redis.held).filter(({ why }) => why === reason).length,
            labels: { reason },
          })),
  },
  {
    name: 'expunge_items_total',
    type: 'counter',
    labels: ['resource', 'outcome'],
    help: 'Ids settled by this process, by outcome.',
    read: ({ service }) => eachResource(service.meters, ({ outcomes }) => outcomes, 'outcome'),
  },
  {
    name: 'expunge_requests_total',
    type: 'counter',
    labels: ['resource', 'code'],
    help: 'Requests of this process, by the status of the answer, or by the reason why there was no answer (timeout, reset, protocol, not_sent).',
    read: ({ service }) => eachResource(service.meters, ({ codes }) => codes, 'code'),
  },
  {
    name: 'expunge_request_duration_seconds',
    type: 'histogram',
    help: 'Latency of the answers.',
    read: ({ service }) => latencySamples('expunge_request_duration_seconds', Object.values(service.meters)),
  },
  {
    name: 'expunge_retries_total',
    type: 'counter',
    labels: ['reason'],
    help: 'Retries of this process, by reason. Only status, timeout, reset and protocol count as attempts.',
    read: ({ service }) => {
      const sums = new Map<string, number>();
      for (const { retries } of Object.values(service.meters)) {
        for (const [reason, n] of retries) sums.set(reason, (sums.get(reason) ?? 0) + n);
      }
      return [...sums].map(([reason, value]) => ({ value, labels: { reason } }));
    },
  },
  {
    name: 'expunge_takeovers_total',
    type: 'counter',
    help: 'Chunks that this process took over from a process that never returned them: it was killed, frozen, or cut off from Redis.',
    read: ({ service }) => [{ value: service.takeovers }],
  },
  {
    name: 'expunge_items_in_flight',
    type: 'gauge',
    help: 'Requests of this process that wait for an answer.',
    read: ({ service }) => [{ value: service.sender.inFlight }],
  },
  {
    name: 'expunge_throttle_wait_seconds_total',
    type: 'counter',
    help: 'How long runs waited in this process because sending was not allowed: Retry-After, an outage, a stop, no token.',
    read: ({ service }) => [{ value: service.heldMs / 1_000 }],
  },
  {
    name: 'expunge_retry_after_seconds',
    type: 'gauge',
    help: 'Time left of the wait that the server asked for, as far as this process knows.',
    read: ({ service }) => [{ value: service.sender.limiter.throttledMs / 1_000 }],
  },
  {
    name: 'expunge_nothing_accepted_seconds',
    type: 'gauge',
    help: 'For how long the target has refused or failed every request, without a stop, once that is 15 minutes; otherwise 0.',
    read: ({ redis }) => (redis?.limiter ? [{ value: (redis.limiter.stalled?.ms ?? 0) / 1_000 }] : []),
  },
  {
    name: 'expunge_rate_requests_per_second',
    type: 'gauge',
    help: 'The current rate of the target, set or learned, over all its workers.',
    read: ({ service: { sender } }) => (sender.limiter.known === null ? [] : [{ value: sender.limiter.known.rate }]),
  },
  {
    name: 'expunge_token_refreshes_total',
    type: 'counter',
    labels: ['result'],
    help: 'Token refreshes: succeeded (ok) and failed (failed).',
    read: ({ service: { token } }) => [
      { value: token.refreshes, labels: { result: 'ok' } },
      { value: token.failedRefreshes, labels: { result: 'failed' } },
    ],
  },
  {
    name: 'expunge_redis_up',
    type: 'gauge',
    help: '1 if Redis answered within a second.',
    read: ({ redis }) => [{ value: redis === null ? 0 : 1 }],
  },
  {
    name: 'expunge_redis_accepts_writes',
    type: 'gauge',
    help: '0 while Redis rejects the writes of this process: a full disk or memory, too few replicas, or it became a replica.',
    read: ({ redis, service: { writeRejection } }) => [
      { value: writeRejection === '' && redis?.held.get('')?.why !== 'redis_writes' ? 1 : 0 },
    ],
  },
  {
    name: 'expunge_redis_losses',
    type: 'gauge',
    help: 'Losses of Redis that no one has acknowledged; the worker is not ready while there are any.',
    read: ({ service }) => [{ value: service.actions.losses.length }],
  },
  {
    name: 'expunge_runs',
    type: 'gauge',
    labels: ['state'],
    help: 'Detached runs of the target that have not ended, by state.',
    read: ({ redis }) =>
      redis === null ? [] : openStates.map((state) => ({ value: redis.backlog.runs[state] ?? 0, labels: { state } })),
  },
  {
    name: 'expunge_items_pending',
    type: 'gauge',
    help: 'Ids without an outcome in the detached runs of the target.',
    read: ({ redis }) => (redis === null ? [] : [{ value: redis.backlog.pending }]),
  },
  {
    name: 'expunge_items_runnable',
    type: 'gauge',
    help: 'Pending ids that more workers could send now: 0 while all runs are paused or wait for a later pass or a quota, or while sending is not allowed. For a run with a rate of its own, at most what that rate allows in a minute.',
    read: ({ redis, service }) => (redis === null ? [] : [{ value: maySend(service) ? redis.backlog.runnable : 0 }]),
  },
  {
    name: 'expunge_last_run_success_timestamp_seconds',
    type: 'gauge',
    labels: ['schedule'],
    help: 'When a detached run of the target last ended with exit code 0, by schedule; the label is empty for any run.',
    read: ({ redis }) =>
      Object.entries(redis?.successes ?? {}).map(([schedule, at]) => ({ value: at / 1_000, labels: { schedule } })),
  },
  {
    name: 'expunge_results_undelivered',
    type: 'gauge',
    help: 'Ended runs of the target whose results wait for a worker with --results.',
    read: ({ redis }) => (redis === null ? [] : [{ value: redis.undelivered }]),
  },
  {
    name: 'expunge_schedule_state',
    type: 'gauge',
    labels: ['schedule', 'state'],
    help: '1 for the state of a schedule of the target: active, paused (by an operator) or paused_by_guard; 0 for the others.',
    read: ({ redis }) =>
      (redis?.schedules ?? []).flatMap(({ name, state }) => oneOf(scheduleStates, state, 'state', name)),
  },
  {
    name: 'expunge_schedule_last_result',
    type: 'gauge',
    labels: ['schedule', 'result'],
    help: '1 for the result of its last occurrence: started, then completed (exit code 0), incomplete (another one) or cancelled; or empty, refused, failed, skipped or missed; 0 for the others.',
    read: ({ redis }) =>
      (redis?.schedules ?? []).flatMap(({ name, result }) =>
        result === null ? [] : oneOf(occurrenceResults, result, 'result', name),
      ),
  },
  {
    name: 'expunge_schedule_late_seconds',
    type: 'gauge',
    labels: ['schedule'],
    help: 'How long an occurrence of a schedule has been due without being handled, or has waited for the end of the last run; 0 = none.',
    read: ({ redis }) =>
      (redis?.schedules ?? []).map(({ name, lateMs }) => ({ value: lateMs / 1_000, labels: { schedule: name } })),
  },
];

/** The causes that hold a whole target and that a worker can report. `no_worker` is missing: without a worker, nothing could report it. */
const targetHolds = [
  'redis',
  'redis_writes',
  'stop',
  'stop_file',
  'no_token',
  'limit',
  'retry_after',
  'circuit',
  'outage',
] as const satisfies readonly Cause[];

function isHeld(
  reason: (typeof targetHolds)[number],
  redis: Scrape['redis'],
  { writeRejection }: Scrape['service'],
): boolean {
  if (redis === null) return reason === 'redis';
  if (reason === 'redis_writes' && writeRejection !== '') return true;
  return redis.held.get('')?.why === reason;
}

function heldRuns(held: ReadonlyMap<string, Standing>): Standing[] {
  return [...held].flatMap(([key, standing]) => (key === '' ? [] : [standing]));
}

const openStates: readonly RunState[] = ['preparing', 'planned', 'running', 'paused', 'halted', 'cancelling'];

type Meters = Scrape['service']['meters'];
type Meter = Meters[keyof Meters];

function eachResource(
  meters: Meters,
  countsOf: (meter: Meter) => readonly (readonly [word: string, n: number])[],
  label: string,
): Sample[] {
  return resources.flatMap((resource) =>
    countsOf(meters[resource]!).map(([word, value]) => ({ value, labels: { resource, [label]: word } })),
  );
}

/** A sample for each word: 1 for the current word and 0 for the others. */
function oneOf(words: readonly string[], current: string, label: string, schedule: string): Sample[] {
  return words.map((word) => ({ value: word === current ? 1 : 0, labels: { schedule, [label]: word } }));
}

function latencySamples(name: string, meters: readonly Meter[]): Sample[] {
  const within = (last: number) => sum(meters.map(({ latencies }) => sum(latencies.slice(0, last + 1))));
  const all = within(Number.POSITIVE_INFINITY);
  return [
    ...latencyBounds.map(({ seconds, bucket }) => bucketSample(name, String(seconds), within(bucket))),
    bucketSample(name, '+Inf', all),
    { metricName: `${name}_sum`, value: sum(meters.map(({ latencySumMs }) => latencySumMs)) / 1_000 },
    { metricName: `${name}_count`, value: all },
  ];
}

function bucketSample(name: string, le: string, value: number): Sample {
  return { metricName: `${name}_bucket`, labels: { le }, value };
}

/** The sum of an array that may have holes. */
function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, n) => total + n, 0);
}

function maySend({ sender, writeRejection }: Scrape['service']): boolean {
  return sender.hold === null && writeRejection === '';
}
