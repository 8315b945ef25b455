import { isFinalized, type RunState } from '../../src/ledger/run.ts';

/** An order that holds something until its author lifts it. */
export type Hold = { readonly who: string; readonly reason: string };

/** A run as the orders for it have left it. `trail`: the orders that had an effect, the oldest first. */
export type RunModel = {
  readonly id: string;
  readonly list: string;
  readonly state: RunState;
  readonly pauses: readonly Hold[];
  readonly isCancelOrdered: boolean; // while it is still being written
  readonly rate: string;
  readonly maxDeletes: number | null;
  readonly trail: readonly string[];
};

/** What holds for all runs. `trail`: also removals of runs. */
export type TargetModel = { readonly stops: readonly Hold[]; readonly trail: readonly string[] };

type By = { readonly who: string; readonly reason: string; readonly way: 'cli' | 'api' };

export type RunOrder = By & { readonly run: string } & (
    | { readonly command: 'pause' | 'cancel' | 'remove' }
    | { readonly command: 'resume'; readonly maxDeletes: number | null }
    | { readonly command: 'rate'; readonly rate: string }
  );

export type TargetOrder = By & { readonly command: 'stop-all' | 'start-all' };

/** One way in which an order for a run may end. A run of null is gone. */
export type RunOutcome = { isDone: boolean; run: RunModel | null; targetTrail: readonly string[] };

/** How the audit trail names an order. */
export function entryOf(action: string, { who, reason }: Hold): string {
  return [action, who, reason].join(' ').trimEnd();
}

/**
 * What may become of an order for a run: more than one outcome if the run may have ended by itself meanwhile. `isStale`: the run has moved since the
 * person was shown it, so that it is not resumed or removed. Pure.
 */
export function orderRun(found: RunModel, order: RunOrder, isStale: boolean): RunOutcome[] {
  const runs = statesByItself(found).map((state) => (state === found.state ? found : { ...found, state }));
  return runs.flatMap((run) => {
    const obeyed = obey(run, order);
    const namesWhatWasSeen = order.way === 'api' && (order.command === 'resume' || order.command === 'remove');
    if (!namesWhatWasSeen || (!isStale && run === found)) return [obeyed];
    const changesNothing = obeyed.isDone && obeyed.run === run; // to resume what is running, or has ended
    return isStale && !changesNothing ? [refused(run)] : [obeyed, refused(run)];
  });
}

/**
 * The states in which a run may be without a further order. What is sent already when a run is paused, halted or cancelled may be its last ids:
 * then it is completed. Pure.
 */
export function statesByItself({ state, maxDeletes }: RunModel): RunState[] {
  if (state === 'preparing' || state === 'planned') return [state];
  return state === 'running' && maxDeletes !== null ? [state, 'completed', 'halted'] : [state, 'completed'];
}

function obey(run: RunModel, order: RunOrder): RunOutcome {
  switch (order.command) {
    case 'pause':
      return pause(run, order);
    case 'cancel':
      return cancel(run, order);
    case 'resume':
      return resume(run, order, order.maxDeletes);
    case 'rate':
      if (isFinalized(run.state)) return refused(run);
      return order.rate === run.rate ? unchanged(run) : changed(run, ['rate'], order, { rate: order.rate });
    case 'remove':
      if (!isFinalized(run.state) && run.state !== 'preparing') return refused(run);
      return { isDone: true, run: null, targetTrail: [entryOf('remove', order)] };
  }
}

function pause(run: RunModel, order: RunOrder): RunOutcome {
  if (isFinalized(run.state)) return refused(run);
  const pauses = withHold(run.pauses, order);
  if (pauses === null) return unchanged(run);
  const isGoing = run.state === 'running' || run.state === 'planned';
  return changed(run, ['pause'], order, { pauses, state: isGoing ? 'paused' : run.state });
}

function cancel(run: RunModel, order: RunOrder): RunOutcome {
  if (isFinalized(run.state) || run.isCancelOrdered) return unchanged(run);
  if (run.state === 'preparing') return changed(run, ['cancel'], order, { isCancelOrdered: true });
  return changed(run, ['cancel'], order, { state: 'cancelled', pauses: [] });
}

function resume(found: RunModel, order: RunOrder, maxDeletes: number | null): RunOutcome {
  if (found.state === 'completed') return unchanged(found);
  if (found.state === 'cancelled') return refused(found);
  const isSpent = found.state === 'halted' && found.maxDeletes !== null;
  if (isSpent && (maxDeletes ?? found.maxDeletes) <= found.maxDeletes) return refused(found);
  const isOther = maxDeletes !== null && maxDeletes !== found.maxDeletes;
  const rules = isOther ? ['max-deletes'] : [];
  const run = isOther ? { ...found, maxDeletes } : found;
  if (run.state === 'running') return isOther ? changed(run, rules, order, {}) : unchanged(found);
  if (run.state === 'preparing' && run.pauses.length === 0) return refused(found);
  const pauses = withoutHold(run.pauses, order.who);
  const isHeld = pauses.length > 0 || run.state === 'preparing';
  return changed(run, [...rules, 'start'], order, { pauses, state: isHeld ? run.state : 'running' });
}

function changed(run: RunModel, actions: readonly string[], order: RunOrder, to: Partial<RunModel>): RunOutcome {
  const trail = [...run.trail, ...actions.map((action) => entryOf(action, order))];
  return { isDone: true, run: { ...run, ...to, trail }, targetTrail: [] };
}

function unchanged(run: RunModel): RunOutcome {
  return { isDone: true, run, targetTrail: [] };
}

function refused(run: RunModel): RunOutcome {
  return { isDone: false, run, targetTrail: [] };
}

/** What becomes of the target by an order for all runs. Pure. */
export function orderTarget(target: TargetModel, order: TargetOrder): TargetModel {
  const trail = [...target.trail, entryOf(order.command, order)];
  if (order.command === 'start-all')
    return target.stops.length === 0 ? target : { stops: withoutHold(target.stops, order.who), trail };
  const stops = withHold(target.stops, order);
  return stops === null ? target : { stops, trail };
}

/** Null where the author has ordered that already. */
function withHold(holds: readonly Hold[], { who, reason }: Hold): readonly Hold[] | null {
  const mine = holds.find((one) => one.who === who);
  if (mine === undefined) return [...holds, { who, reason }];
  if (reason === '' || mine.reason === reason) return null;
  return holds.map((one) => (one === mine ? { who, reason } : one));
}

/** Each lifts their own; whoever has none lifts all. */
function withoutHold(holds: readonly Hold[], who: string): readonly Hold[] {
  const left = holds.filter((one) => one.who !== who);
  return left.length === holds.length ? [] : left;
}

/** Whether an order, or a halt, keeps this run from sending. Pure. */
export function isHeld({ state, pauses, isCancelOrdered }: RunModel): boolean {
  return pauses.length > 0 || isCancelOrdered || (state !== 'running' && state !== 'completed');
}
