import { activeMsOf, pendingOf, type Run } from '../ledger/run.ts';
import { RateMeter } from '../terminal/rate-meter.ts';
import type { Snapshot, Waiting } from '../terminal/snapshot.ts';

/** What of a deleting process can be seen from inside. */
export type Inside = { lanes: { inFlight: number }; brake: { isOn: boolean; reason: string; remainingMs: number } };

const eventsKept = 5;

/** Turns what Redis says about a run, and what this process knows itself, into snapshots for the panel. */
export class SnapshotTaker {
  readonly #meter = new RateMeter();
  readonly #inside: Inside | null;
  #run: Run;
  #isAway = false;
  #events: string[] = [];

  /** `inside` is null for a run that other processes delete. */
  constructor(run: Run, inside: Inside | null) {
    this.#run = run;
    this.#inside = inside;
  }

  /** The run as it is now; undefined if Redis did not answer, null if it no longer knows the run. */
  see(run: Run | null | undefined): void {
    this.#isAway = run === undefined;
    if (!run) return;
    if (run.state !== this.#run.state) this.tell(`${run.state}${run.reason ? `: ${run.reason}` : ''}`);
    this.#run = run;
    this.#meter.see(Date.now(), run.settled);
  }

  take(): Snapshot {
    const run = this.#run;
    const perSecond = this.#meter.perSecond;
    const left = run.ids - run.settled;
    return {
      runId: run.id,
      host: new URL(run.baseUrl).host,
      state: run.state,
      reason: run.reason,
      by: run.by,
      who: run.state === 'running' ? '' : run.who,
      rows: run.rows,
      ids: run.ids,
      counts: run.counts,
      pending: pendingOf(run),
      inFlight: this.#inside?.lanes.inFlight ?? null,
      perSecond,
      secondsLeft: run.state === 'running' && perSecond > 0 ? left / perSecond : null,
      waiting: this.#waiting(),
      elapsedMs: activeMsOf(run, Date.now()),
      events: this.#events,
    };
  }

  /** The same for `--json`. */
  facts(): Record<string, unknown> {
    const { runId, state, reason, rows, pending, counts, perSecond, waiting } = this.take();
    const waits = waiting && { reason: waiting.reason, seconds: waiting.leftMs / 1_000 };
    return { run: runId, state, reason, rows, pending, ...counts, per_second: Math.round(perSecond), waiting: waits };
  }

  #waiting(): Waiting | null {
    if (this.#isAway) return { reason: 'Redis does not answer; nothing is sent without it', leftMs: 0 };
    const brake = this.#inside?.brake;
    return brake?.isOn ? { reason: brake.reason, leftMs: brake.remainingMs } : null;
  }

  /** Something people should see under the panel. */
  tell(event: string): void {
    const time = new Date().toTimeString().slice(0, 8);
    this.#events = [...this.#events, `${time}  ${event}`].slice(-eventsKept);
  }
}
