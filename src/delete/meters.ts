import type { Slice } from '../history/history-points.ts';
import { type CellResult, isSettled, toSentOutcome } from '../ledger/cell.ts';
import type { MeasureChanges } from '../ledger/measures.ts';
import { type CodeWord, type SentOutcome, sentOutcomes } from '../model/outcome.ts';
import { isThrottling, successStatus } from '../model/status.ts';
import { SliceMeter } from './slice-meter.ts';
import { type Answer, noContent } from './verdict.ts';

/** Why an id is sent again: its status, a request without an answer, or a cause that costs no attempt. */
export type RetryReason = 'status' | CodeWord | 'throttled' | 'credentials' | 'unreachable' | 'outage';

const maxCodes = 40; // a server may answer with any status, so this bounds the number of counters

/**
 * Counts the requests of this process for one resource, and their results, since its start, for `/metrics`. Its counts only grow. Called for each
 * request, so it is cheap.
 */
export class RequestMeter {
  /** Requests by the status of the answer, or by the reason for having no answer. */
  readonly #codes = new Map<string, number>();
  #noContents = 0;
  /** Answers by the bucket of their latency; see `latencyBucket` of the ledger's measures. */
  readonly latencies: number[] = [];
  latencySumMs = 0;
  readonly retries = new Map<RetryReason, number>();
  readonly #outcomes = Object.fromEntries(sentOutcomes.map((outcome) => [outcome, 0])) as Record<SentOutcome, number>;

  /** `ms`: the latency; `bucket`: its bucket. */
  recordAnswer(answer: Answer, ms: number, bucket: number): void {
    if (answer === noContent) this.#noContents++;
    else this.#note(codeOf(answer));
    if (answer.kind !== 'status') return;
    this.latencies[bucket] = (this.latencies[bucket] ?? 0) + 1;
    this.latencySumMs += ms;
  }

  recordRetry(reason: RetryReason): void {
    this.retries.set(reason, (this.retries.get(reason) ?? 0) + 1);
  }

  /** Counts results that are in the ledger. */
  recordResults(results: readonly CellResult[]): void {
    for (const { cell } of results) if (isSettled(cell)) this.#outcomes[toSentOutcome(cell)]++;
  }

  /** Requests by code: `204`, `503`, `timeout`, `not_sent`. Beyond 40 codes, new codes are counted as `4xx` and the like. */
  get codes(): readonly (readonly [code: string, requests: number])[] {
    return [[String(successStatus), this.#noContents], ...this.#codes];
  }

  get outcomes(): readonly (readonly [SentOutcome, ids: number])[] {
    return sentOutcomes.map((outcome) => [outcome, this.#outcomes[outcome]]);
  }

  #note(code: string): void {
    const known = this.#codes.get(code);
    if (known !== undefined) this.#codes.set(code, known + 1);
    else if (this.#codes.size < maxCodes || /xx$/.test(code)) this.#codes.set(code, 1);
    else this.#note(`${code[0]}xx`);
  }
}

function codeOf(answer: Answer): string {
  if (answer.kind === 'status') return String(answer.status);
  return answer.kind === 'not-sent' ? 'not_sent' : answer.code;
}

/** The work of a process for a run since the last report: changes to the run's sums, and the same by the second for its history. */
export type Taken = { changes: MeasureChanges; slices: Slice[] };

type Sum = 'refreshes' | 'workMs' | 'heldMs' | 'allowed' | 'limitedMs';

/** Counts the requests of this process for one run, until the sums are taken and added to the sums of the other processes. */
export class RunMeter {
  readonly #slices: SliceMeter;
  #requests = 0;
  #throttled = 0;
  #busyMs = 0;
  readonly #latencies: number[] = [];
  #changes: MeasureChanges = new Map();

  /** `now`: ms since 1970 by the clock of Redis. */
  constructor(now: () => number) {
    this.#slices = new SliceMeter(now);
  }

  /** Counts an answer. Called for each request, so it is cheap. `ms`: the latency; `bucket`: its bucket; `isSuccess`: it confirms a delete. */
  recordAnswer(answer: Answer, ms: number, bucket: number, isSuccess: boolean): void {
    const isRefused = answer.kind === 'status' && answer !== noContent && isThrottling(answer.status);
    this.#requests++;
    this.#busyMs += ms;
    if (isRefused) this.#throttled++;
    if (answer.kind === 'status') this.#latencies[bucket] = (this.#latencies[bucket] ?? 0) + 1;
    this.#slices.recordAnswer({ ms, bucket: answer.kind === 'status' ? bucket : null, isRefused, isSuccess });
  }

  /** Counts results that are in the ledger. Deletions are counted with their answers instead. */
  recordResults(results: readonly CellResult[]): void {
    for (const { cell } of results) {
      if (!isSettled(cell)) continue;
      const outcome = toSentOutcome(cell);
      if (outcome !== 'deleted') this.#slices.add(outcome, 1);
    }
  }

  add(field: Sum, by: number): void {
    this.#changes.set(field, (this.#changes.get(field) ?? 0) + by);
    if (field !== 'refreshes') this.#slices.add(field, field === 'allowed' ? 1_000 * by : by);
  }

  /** Returns the counts since the last call. */
  take(): Taken {
    const changes = this.#changes;
    if (this.#requests > 0) changes.set('requests', this.#requests);
    if (this.#throttled > 0) changes.set('refused', this.#throttled);
    if (this.#busyMs > 0) changes.set('busyMs', this.#busyMs);
    this.#latencies.forEach((n, bucket) => {
      changes.set(`l${bucket}`, n);
    });
    this.#changes = new Map();
    this.#latencies.length = 0;
    this.#requests = 0;
    this.#throttled = 0;
    this.#busyMs = 0;
    return { changes, slices: this.#slices.take() };
  }
}
