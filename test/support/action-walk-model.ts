import { isFinalized, type RunState } from '../../src/ledger/run.ts';

/** An action that holds something until its author lifts it. */
export type Hold = { readonly who: string; readonly reason: string };

/** A run as the actions for it have left it. `trail`: the actions that had an effect, the oldest first. */
export type RunModel = {
  readonly id: string;
  readonly list: string;
  readonly state: RunState;
  readonly pauses: readonly Hold[];
  readonly isCancelRequested: boolean; // while it is still being written
  readonly rate: string;
  readonly maxDeletes: number | null;
  readonly trail: readonly string[];
};

/** What holds for all runs. `trail`: also removals of runs. */
export type TargetModel = { readonly stops: readonly Hold[]; readonly trail: readonly string[] };

type By = { readonly who: string; readonly reason: string; readonly way: 'cli' | 'api' };

export type RunAction = By & { readonly run: string } & (
    | { readonly command: 'pause' | 'cancel' | 'remove' }
    | { readonly command: 'resume'; readonly maxDeletes: number | null }
    | { readonly command: 'rate'; readonly rate: string }
  );

export type TargetAction = By & { readonly command: 'stop-all' | 'start-all' };

/** One way in which an action for a run may end. A run of null is gone. */
export type RunOutcome = { isDone: boolean; run: RunModel | null; targetTrail: readonly string[] };

/** How the audit trail names an action. */
export function entryOf(action: string, { who, reason }: Hold): string {
  return [action, who, reason].join(' ').trimEnd();
}

/**
 * What may become of an action for a run: more than one outcome if the run may have ended by itself meanwhile. `isStale`: the run has moved since the
 * person was shown it, so that it is not resumed or removed. Pure.
 */
export function actOnRun(found: RunModel, action: RunAction, isStale: boolean): RunOutcome[] {
  const runs = statesByItself(found).map((state) => (state === found.state ? found : { ...found, state }));
  return runs.flatMap((run) => {
    const obeyed = obey(run, action);
    const namesWhatWasSeen = action.way === 'api' && (action.command === 'resume' || action.command === 'remove');
    if (!namesWhatWasSeen || (!isStale && run === found)) return [obeyed];
    const changesNothing = obeyed.isDone && obeyed.run === run; // to resume what is running, or has ended
    return isStale && !changesNothing ? [refused(run)] : [obeyed, refused(run)];
  });
}

/**
 * The states in which a run may be without a further action. What is sent already when a run is paused, halted or cancelled may be its last ids:
 * then it is completed. Pure.
 */
export function statesByItself({ state, maxDeletes }: RunModel): RunState[] {
  if (state === 'preparing' || state === 'planned') return [state];
  return state === 'running' && maxDeletes !== null ? [state, 'completed', 'halted'] : [state, 'completed'];
}

function obey(run: RunModel, action: RunAction): RunOutcome {
  switch (action.command) {
    case 'pause':
      return pause(run, action);
    case 'cancel':
      return cancel(run, action);
    case 'resume':
      return resume(run, action, action.maxDeletes);
    case 'rate':
      if (isFinalized(run.state)) return refused(run);
      return action.rate === run.rate ? unchanged(run) : changed(run, ['rate'], action, { rate: action.rate });
    case 'remove':
      if (!isFinalized(run.state) && run.state !== 'preparing') return refused(run);
      return { isDone: true, run: null, targetTrail: [entryOf('remove', action)] };
  }
}

function pause(run: RunModel, action: RunAction): RunOutcome {
  if (isFinalized(run.state)) return refused(run);
  const pauses = withHold(run.pauses, action);
  if (pauses === null) return unchanged(run);
  const isGoing = run.state === 'running' || run.state === 'planned';
  return changed(run, ['pause'], action, { pauses, state: isGoing ? 'paused' : run.state });
}

function cancel(run: RunModel, action: RunAction): RunOutcome {
  if (isFinalized(run.state) || run.isCancelRequested) return unchanged(run);
  if (run.state === 'preparing') return changed(run, ['cancel'], action, { isCancelRequested: true });
  return changed(run, ['cancel'], action, { state: 'cancelled', pauses: [] });
}

function resume(found: RunModel, action: RunAction, maxDeletes: number | null): RunOutcome {
  if (found.state === 'completed') return unchanged(found);
  if (found.state === 'cancelled') return refused(found);
  const isSpent = found.state === 'halted' && found.maxDeletes !== null;
  if (isSpent && (maxDeletes ?? found.maxDeletes) <= found.maxDeletes) return refused(found);
  const isOther = maxDeletes !== null && maxDeletes !== found.maxDeletes;
  const rules = isOther ? ['max-deletes'] : [];
  const run = isOther ? { ...found, maxDeletes } : found;
  if (run.state === 'running') return isOther ? changed(run, rules, action, {}) : unchanged(found);
  if (run.state === 'preparing' && run.pauses.length === 0) return refused(found);
  const pauses = withoutHold(run.pauses, action.who);
  const isHeld = pauses.length > 0 || run.state === 'preparing';
  return changed(run, [...rules, 'start'], action, { pauses, state: isHeld ? run.state : 'running' });
}

function changed(run: RunModel, names: readonly string[], action: RunAction, to: Partial<RunModel>): RunOutcome {
  const trail = [...run.trail, ...names.map((name) => entryOf(name, action))];
  return { isDone: true, run: { ...run, ...to, trail }, targetTrail: [] };
}

function unchanged(run: RunModel): RunOutcome {
  return { isDone: true, run, targetTrail: [] };
}

function refused(run: RunModel): RunOutcome {
  return { isDone: false, run, targetTrail: [] };
}

/** What becomes of the target by an action for all runs. Pure. */
export function actOnTarget(target: TargetModel, action: TargetAction): TargetModel {
  const trail = [...target.trail, entryOf(action.command, action)];
  if (action.command === 'start-all')
    return target.stops.length === 0 ? target : { stops: withoutHold(target.stops, action.who), trail };
  const stops = withHold(target.stops, action);
  return stops === null ? target : { stops, trail };
}

/** Null where the author has asked for that already. */
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

/** Whether an action, or a halt, keeps this run from sending. Pure. */
export function isHeld({ state, pauses, isCancelRequested }: RunModel): boolean {
  return pauses.length > 0 || isCancelRequested || (state !== 'running' && state !== 'completed');
}
