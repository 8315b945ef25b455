import { type Cell, type CellResult, countAttempts, isDoubtful, isSettled, settle, unmark } from '../ledger/cell.ts';
import type { Grant } from '../ledger/ledger.ts';
import type { PutBackReason } from '../ledger/put-back.ts';
import { codeOfStatus, codeOfWord } from '../model/outcome.ts';
import type { RequestForm } from '../model/resource.ts';
import { successStatus } from '../model/status.ts';
import type { QueuedRequest } from './connection-pool.ts';
import { type DeleteIdDeps, deleteId } from './delete-id.ts';
import type { Belief, Refusals, Refused } from './refusals.ts';
import type { PoolHandle } from './run-request-queue.ts';
import { type Answer, confirmerOf, noContent, type Verdict, verdictOf, waitStatuses } from './verdict.ts';

const flushAfterMs = 100;
const maxPassMs = 30_000;
const timeSliceMs = 2_000; // the age at which a pass that delays another run ends
/** A pass ends when it would have to wait longer than this, or until an operator lifts a stop. */
export const maxWaitMs = 5_000;
const markLifetimeMs = 1_000;
const noContentCode = codeOfStatus(successStatus);
const noAnswerCode = codeOfWord('none');

/** The dependencies of a pass. */
export type PassDeps = Omit<DeleteIdDeps, 'send' | 'ask' | 'wait' | 'rest' | 'judge' | 'idText' | 'noteRefusal'> & {
  refusals: Refusals;
  /** The place of the token and the fixed headers of its requests. */
  form: RequestForm;
  /** The id at an index of `cells`. */
  idAt(index: number): string;
  handle: PoolHandle;
  /** Callbacks for when there may be room again. The pass adds its own while it waits. */
  wakers: Set<() => void>;
  batchSize: number; // the largest number of ids that may be in flight
  /** Monotonic milliseconds. */
  clock: () => number;
  /** Resolves to true after `ms`, or to false as soon as the signal is aborted. */
  sleep(ms: number, ended: AbortSignal): Promise<boolean>;
  /** Whether requests of this run may be sent now. */
  isOpenAt: (nowMs: number) => boolean;
  /** Aborted when no request of this chunk is allowed any more. */
  closed: AbortSignal;
  /** Whether the run has a rate of its own while another run gets no chunk in this process. */
  shouldYield: () => boolean;
  /**
   * Merges results and marks the next batch; retried while Redis is away. `isLast`: the pass ends with it. Throws once the shutdown deadline has
   * passed.
   */
  update(results: CellResult[], wanted: number[], isLast: boolean): Promise<Grant>;
  /** Counts an answer and its latency, for the measures of the run. `isConfirmed`: it confirms a delete. */
  measure(answer: Answer, ms: number, isConfirmed: boolean): void;
  /** Keeps the server's answer for an id whose delete was not confirmed. */
  note(index: number, cell: Cell, answer: Answer): void;
  /** Notes that this header was refused for the id at an index; see `RefusedIds.note`. */
  noteRefusal(index: number, authorization: string): Promise<number>;
  /** Counts a 204 that had a body. The bytes of the body may come after the pass has ended. */
  noteBody(): void;
};

/** The values that the requests of one batch share. */
type Batch = {
  pathAt: (index: number) => string;
  form: RequestForm;
  waitStatuses: ReadonlySet<number>;
  authorize(nowMs: number): string | null;
  maySend(): boolean;
  noteBody(): void;
  answered(index: number, answer: Answer | null, ms: number): void;
};

/** The first request for an id in this pass. It is one small object, because every id needs one. */
class FirstRequest implements QueuedRequest {
  readonly #index: number;
  readonly #batch: Batch;
  readonly hasFailed: boolean;
  authorization = '';

  constructor(index: number, batch: Batch, hasFailed: boolean) {
    this.#index = index;
    this.#batch = batch;
    this.hasFailed = hasFailed;
  }

  get path(): string {
    return this.#batch.pathAt(this.#index);
  }

  get form(): RequestForm {
    return this.#batch.form;
  }

  get waitStatuses(): ReadonlySet<number> {
    return this.#batch.waitStatuses;
  }

  authorize(nowMs: number): string | null {
    return this.#batch.authorize(nowMs);
  }

  maySend(): boolean {
    return this.#batch.maySend();
  }

  noteBody(): void {
    this.#batch.noteBody();
  }

  answered(answer: Answer | null, ms: number): void {
    this.#batch.answered(this.#index, answer, ms);
  }
}

/**
 * One pass over a chunk, batch by batch. Each update writes the results of the last batch and the marks of the next one. No request is sent before
 * its mark is written. The pass ends when every due id has its result, after 30 s, or when sending is no longer allowed. It also ends when it would
 * have to wait for more than 5 s, and when its time slice is over and it delays another run. But while a refused id waits to be believed, it goes on
 * for as long as requests may be sent: only their answers decide. No request of it is in flight after its end.
 */
export class ChunkPass {
  readonly cells: Cell[];
  /** By index: the earliest time, by `clock`, at which a deferred id may be sent again. */
  readonly waitsUntil = new Map<number, number>();
  /** By index: the last answer of an id that still has no outcome, and why it is none. */
  readonly putBack = new Map<number, { answer: Answer; why: PutBackReason }>();
  /** Whether the last update has returned the chunk. */
  isReturned = false;
  readonly #waitStatuses: ReadonlySet<number>;
  readonly #confirms: (answer: Answer) => boolean;
  readonly #pathAt: (index: number) => string;
  readonly #deps: PassDeps;
  readonly #todo: number[];
  readonly #startedAt: number;
  #next = 0;
  #results: CellResult[] = [];
  #marked = 0; // marked and without a result
  #resting = 0; // the marked ids that wait until their refusal is believed, or until they are asked for again
  readonly #over = new AbortController(); // aborted when it takes no more ids
  #wake: () => void = () => {};
  readonly #answered: Batch['answered'] = (index, answer, ms) => this.#first(index, answer, ms);

  /** `pathAt` gives the path for an index of `cells`; `due` are the indexes this pass may send. */
  constructor(cells: Cell[], pathAt: (index: number) => string, due: number[], deps: PassDeps) {
    this.cells = cells;
    this.#pathAt = pathAt;
    this.#todo = due;
    this.#deps = deps;
    this.#waitStatuses = waitStatuses(deps.verdicts);
    this.#confirms = confirmerOf(deps.verdicts, deps.fits);
    this.#startedAt = deps.clock();
  }

  /** Call it once. Throws only what `update` throws. */
  async run(): Promise<void> {
    const end = () => this.#end();
    this.#deps.closed.addEventListener('abort', end, { once: true });
    if (this.#deps.closed.aborted) this.#end();
    this.#deps.refusals.enter(this);
    while (!this.#isOver) {
      const wanted = this.#nextBatch();
      if (wanted.length > 0 || this.#results.length > 0) this.#launch(wanted, await this.#update(wanted));
      if (!this.#isOver && !this.#isUpdateWorthIt) await this.#waitForChange();
    }
    this.#deps.refusals.leave(this);
    this.#deps.closed.removeEventListener('abort', end);
  }

  /** The number of answers that are expected or wait until they are believed. */
  get expected(): number {
    return this.#marked + (this.#isEnded ? 0 : this.#todo.length - this.#next);
  }

  get #isEnded(): boolean {
    return this.#over.signal.aborted;
  }

  get #isOver(): boolean {
    return this.#marked === 0 && this.#results.length === 0 && this.#hasNoMore;
  }

  get #hasNoMore(): boolean {
    return this.#isEnded || this.#next === this.#todo.length;
  }

  /** Whether another call to Redis is worth it: most of the batch has results, or every marked id has. */
  get #isUpdateWorthIt(): boolean {
    if (this.#marked === 0 && this.#results.length > 0) return true;
    return this.#marked - this.#resting <= this.#deps.batchSize / 4 && this.#roomForMore() > 0;
  }

  #roomForMore(): number {
    const { handle, batchSize, refusals } = this.#deps;
    const most = refusals.isHolding ? Number(refusals.mayProbe) : batchSize - this.#marked + this.#resting;
    const wanted = Math.min(most, this.#todo.length - this.#next);
    return this.#isEnded || wanted <= 0 ? 0 : handle.room(wanted);
  }

  #nextBatch(): number[] {
    if (this.#hasToEnd) this.#end();
    const wanted = this.#todo.slice(this.#next, this.#next + this.#roomForMore());
    this.#next += wanted.length;
    if (wanted.length > 0 && this.#deps.refusals.isHolding) this.#deps.refusals.probed();
    return wanted;
  }

  get #hasToEnd(): boolean {
    const { limits, handle, clock, isOpenAt, shouldYield } = this.#deps;
    if (limits.isStopped || limits.throttledMs > maxWaitMs) return true;
    if (this.#resting > 0 && isOpenAt(clock())) return false;
    if (handle.waitMs > maxWaitMs) return true;
    if (this.#next === this.#todo.length) return false; // nothing more to send: its ids have their own waits
    const ms = clock() - this.#startedAt;
    return (
      ms > maxPassMs + 4 * limits.distance.aheadMs || (ms > timeSliceMs + limits.distance.aheadMs && shouldYield())
    );
  }

  async #update(wanted: number[]): Promise<Grant> {
    const { handle, update } = this.#deps;
    handle.reserve(wanted.length);
    try {
      const isLast = wanted.length === 0 && this.#marked === 0 && this.#hasNoMore;
      return await update(this.#takeResults(), wanted, isLast);
    } finally {
      handle.reserve(-wanted.length);
    }
  }

  #takeResults(): CellResult[] {
    const results = this.#results;
    this.#results = [];
    return results;
  }

  #launch(wanted: number[], grant: Grant): void {
    this.isReturned = grant.isReturned === true;
    if (grant.state !== 'running' || (wanted.length > 0 && grant.cells.length === 0)) this.#end();
    const batch = this.#freshBatch(this.#deps.refusals.isHolding);
    for (let i = 0; i < grant.cells.length; i++) {
      const index = wanted[i]!;
      const cell = grant.cells[i]!;
      this.cells[index] = cell;
      if (isSettled(cell)) continue;
      this.#marked++;
      if (this.#deps.isNeverRepeated && isDoubtful(cell)) {
        // An earlier holder died with its request in flight, or Redis may have lost that there was one.
        this.#finish(index, settle('unknown', countAttempts(cell), noAnswerCode), false);
        continue;
      }
      this.#deps.handle.submit(new FirstRequest(index, batch, countAttempts(cell) > 0));
    }
  }

  /** The batch of requests that are marked now. An old mark is withdrawn unused, and so are most while ids are sent one at a time. */
  #freshBatch(mayProbe: boolean, lifetimeMs = markLifetimeMs): Batch {
    const { clock, token, refusals, limits } = this.#deps;
    const expiresAt = clock() + lifetimeMs + limits.distance.aheadMs;
    const maySend = (nowMs: number) => (mayProbe || !refusals.isHolding) && this.#maySend(nowMs);
    return {
      pathAt: this.#pathAt,
      form: this.#deps.form,
      waitStatuses: this.#waitStatuses,
      authorize: (nowMs) => (nowMs < expiresAt && maySend(nowMs) ? token.authorization() : null),
      maySend: () => maySend(clock()),
      noteBody: this.#deps.noteBody,
      answered: this.#answered,
    };
  }

  #maySend(nowMs: number): boolean {
    return !this.#isEnded && this.#deps.isOpenAt(nowMs) && !this.#deps.limits.isHeld;
  }

  #first(index: number, answer: Answer | null, ms: number): void {
    const cell = this.cells[index]!;
    const isConfirmed = answer !== null && this.#confirms(answer);
    if (answer !== null) this.#deps.measure(answer, ms, isConfirmed);
    if (isConfirmed) {
      this.#finish(index, settle('deleted', countAttempts(cell) + 1, codeOfSuccess(answer)), false);
    } else if (answer === null) {
      this.#finish(index, unmark(cell, countAttempts(cell), false), true);
    } else {
      this.#retry(index, answer, ms);
    }
  }

  /** Answers other than a success are rare, so promises are cheap enough here. No catch: a bug in them ends the process. */
  #retry(index: number, first: Answer, firstMs: number): void {
    let last = first;
    let lastMs = firstMs;
    let isRefused = false;
    const send = async (batch: Batch) => {
      const answer = await new Promise<Answer | null>((resolve) => {
        const answered: QueuedRequest['answered'] = (answer, ms) => {
          if (answer !== null) this.#deps.measure(answer, ms, this.#confirms(answer));
          lastMs = ms;
          resolve(answer);
        };
        const path = this.#pathAt(index);
        this.#deps.handle.submit({ ...batch, path, hasFailed: true, authorization: '', answered });
      });
      last = answer ?? last;
      return answer;
    };
    const deps: DeleteIdDeps = {
      ...this.#deps,
      send: () => send(this.#freshBatch(true)),
      ask: (why) => this.#rest(() => send(this.#freshBatch(why === 'probe', Number.POSITIVE_INFINITY))),
      noteRefusal: async (authorization) => {
        const refusals = await this.#deps.noteRefusal(index, authorization);
        isRefused = refusals > 0;
        return refusals;
      },
      idText: () => this.#deps.idAt(index),
      wait: async (ms) => !this.#isEnded && this.#deps.sleep(ms, this.#deps.closed),
      rest: (ms) => this.#rest(() => this.#deps.sleep(ms, this.#over.signal)),
      judge: (refused) => this.#judge({ ...refused, id: this.#deps.idAt(index), ms: lastMs }),
    };
    void deleteId(this.cells[index]!, first, deps).then((end) => {
      const why = isRefused ? 'refused' : putBackReasons[verdictOf(last, false, this.#deps.verdicts).kind];
      if (isSettled(end.cell)) this.#deps.note(index, end.cell, last);
      else if (why !== null) this.putBack.set(index, { answer: last, why });
      if (end.waitMs > 0) this.waitsUntil.set(index, this.#deps.clock() + end.waitMs);
      this.#finish(index, end.cell, end.mayResend);
    });
  }

  #judge(refused: Refused): Promise<Belief> {
    return this.#rest(() => this.#deps.refusals.judge(refused, this.#over.signal));
  }

  /** Lets other ids be sent while one waits for its belief: their answers decide. */
  async #rest<T>(wait: () => Promise<T>): Promise<T> {
    this.#resting++;
    if (this.#isUpdateWorthIt) this.#wake();
    const result = await wait();
    this.#resting--;
    return result;
  }

  #finish(index: number, cell: Cell, mayResend: boolean): void {
    this.cells[index] = cell;
    this.#results.push({ index, cell });
    this.#marked--;
    if (mayResend && !isSettled(cell)) this.#todo.push(index);
    // The first test is the cheap one: most ids fail it.
    if (this.#marked - this.#resting <= this.#deps.batchSize / 4 && (this.#isUpdateWorthIt || this.#isOver))
      this.#wake();
  }

  #end(): void {
    if (this.#isEnded) return;
    this.#over.abort();
    this.#deps.handle.revalidate();
    this.#wake();
  }

  /** Waits until another update is worth it, but at most 100 ms, so that results are written at least that often. */
  async #waitForChange(): Promise<void> {
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, flushAfterMs);
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
      this.#deps.wakers.add(this.#wake);
    });
    this.#deps.wakers.delete(this.#wake);
    this.#wake = () => {};
  }
}

/** Why an id has no outcome after an answer with this verdict; null: no request was sent. */
const putBackReasons: Record<Verdict['kind'], PutBackReason | null> = {
  settle: 'alike',
  retry: 'retried',
  wait: 'rate',
  credentials: 'token',
  unreachable: null,
  halt: 'halts',
};

/** The code of a success. Nearly all are the shared 204. */
function codeOfSuccess(answer: Answer): number {
  return answer === noContent || answer.kind !== 'status' ? noContentCode : codeOfStatus(answer.status);
}
