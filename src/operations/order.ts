import type { Target } from '../model/target.ts';

/** Who orders something, and why; it stands in the audit trail. A server takes the name of the token. */
export type By = { who: string; reason: string };

/** An order for one run, by its whole id. */
export type RunOrder = { run: string; by: By };

/** An order that continues or removes something. `seen`: the revision that the person was shown; from any other one nothing is done. */
export type SeenOrder = RunOrder & { seen: number };

/** An order for the schedule of this name. */
export type ScheduleOrder = { target: Target; name: string; by: By };

/** The same, with the revision that the person was shown: from any other one nothing is done. */
export type SeenScheduleOrder = ScheduleOrder & { seen: number };

/** An order for a target as a whole. */
export type TargetOrder = { target: Target; by: By };

/** The same, with the revision that the person was shown: from any other one nothing is done. */
export type SeenTargetOrder = TargetOrder & { seen: number };
