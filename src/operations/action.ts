import type { Target } from '../model/target.ts';

/** Who asks for an action, and why, for the audit trail. A server uses the name of the token. */
export type By = { who: string; reason: string };

/** The revision that the person was shown; if it has changed since, nothing is done. Actions that continue, loosen or remove something name it. */
type Seen = { seen: number };

/** An action for one run, by its whole id. */
export type RunAction = { run: string; by: By };
export type SeenAction = RunAction & Seen;

/** An action for the schedule of this name. */
export type ScheduleAction = { target: Target; name: string; by: By };
export type SeenScheduleAction = ScheduleAction & Seen;

/** An action for a target as a whole. */
export type TargetAction = { target: Target; by: By };
export type SeenTargetAction = TargetAction & Seen;
