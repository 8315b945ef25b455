import type { TargetState } from '../../../src/limiter/read-target.ts';
import { snapshot } from './snapshots.ts';

/** The limiter of a target that takes 430 a second, all of it used. */
export function target(changes: Partial<TargetState> = {}): TargetState {
  return {
    at: snapshot().at,
    silentMs: 40,
    processes: 1,
    phase: 'ramp',
    rate: 412,
    use: 0.98,
    limitMet: 430,
    limitFound: 430,
    learned: 412,
    lowAfter: null,
    ceiling: null,
    advised: null,
    inFlight: 64,
    isStarved: false,
    hold: null,
    outage: null,
    stalled: null,
    isAccepting: true,
    ...changes,
  };
}
