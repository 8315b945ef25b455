import type { Run } from '../ledger/run.ts';
import type { PaceChange, PaceOrder, PriorityChange, PriorityOrder } from './change-run.ts';
import type { RunOrder, SeenOrder } from './order.ts';
import type { Removed } from './remove-run.ts';
import type { Ordered, Resumed, ResumeOrder } from './steer-run.ts';

// What expunge does for people, without a word on a screen: an operation takes typed input, asks nothing and prints nothing. `local` does it in
// Redis, `remote` by the API of a server; both throw the same errors, and both record who ordered it and why.

/** All that can be ordered and asked, by what it is about. */
export type Operations = { runs: RunOperations };

/** Orders that steer runs. All but `resume` and `remove` can be repeated at will. */
export type RunOperations = {
  /** The run with this id, or whose id ends with the text. Throws USAGE if there is none, or if another release wrote it. */
  find(text: string | undefined): Promise<Run>;
  /** Throws USAGE for a run that has ended. */
  pause(order: RunOrder): Promise<Ordered>;
  /** Throws USAGE for a run that has ended, and GUARD for one that has moved since it was shown. */
  resume(order: ResumeOrder): Promise<Resumed>;
  /** Returns once the requests in flight have their answers; `onWait` is called where that takes longer than 2 s. */
  cancel(order: RunOrder, onWait: () => void): Promise<Ordered>;
  /** Throws USAGE for a run that has ended. */
  changePace(order: PaceOrder): Promise<PaceChange>;
  /** Throws USAGE for a run that has ended. */
  changePriority(order: PriorityOrder): Promise<PriorityChange>;
  /** Removes a run that has ended, with all its keys. Throws USAGE for another one, and GUARD for one that has moved since it was shown. */
  remove(order: SeenOrder): Promise<Removed>;
};
