import type { Target } from '../model/target.ts';

/** Who gives an order, and why, for the audit trail. A server uses the name of the token. */
export type By = { who: string; reason: string };

/** The revision that the person was shown; if it has changed since, nothing is done. Orders that continue, loosen or remove something name it. */
type Seen = { seen: number };

/** An order for one run, by its whole id. */
export type RunOrder = { run: string; by: By };
export type SeenOrder = RunOrder & Seen;

/** An order for the schedule of this name. */
export type ScheduleOrder = { target: Target; name: string; by: By };
export type SeenScheduleOrder = ScheduleOrder & Seen;

/** An order for a target as a whole. */
export type TargetOrder = { target: Target; by: By };
export type SeenTargetOrder = TargetOrder & Seen;
