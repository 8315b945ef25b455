import type { Run } from '../ledger/run.ts';
import type { Target } from '../model/target.ts';
import type { ScheduleDryRun } from '../schedule/follow-run.ts';
import type { Schedule } from '../schedule/schedule.ts';
import type { Added, AddOrder } from './add-schedule.ts';
import type { PaceChange, PaceOrder, PriorityChange, PriorityOrder } from './change-run.ts';
import type { RunOrder, ScheduleOrder, SeenOrder, SeenScheduleOrder } from './order.ts';
import type { Removed } from './remove-run.ts';
import type { DryRunOrder, MadeNow, RunScheduleOrder } from './run-schedule.ts';
import type { ScheduleRecord } from './schedule-record.ts';
import type { Ordered, Resumed, ResumeOrder } from './steer-run.ts';
import type { SteeredSchedule } from './steer-schedule.ts';

// What expunge does for people, without a word on a screen: an operation takes typed input, asks nothing and prints nothing. `local` does it in
// Redis, `remote` by the API of a server; both throw the same errors, and both record who ordered it and why.

/** All that can be ordered and asked, by what it is about. */
export type Operations = { runs: RunOperations; schedules: ScheduleOperations };

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

/** Orders for the schedules of a target. All but `run` can be repeated at will. A schedule that is not there throws USAGE. */
export type ScheduleOperations = {
  list(target: Target): Promise<ScheduleRecord[]>;
  find(target: Target, name: string): Promise<Schedule>;
  /** Throws USAGE where another schedule has the name and may not be changed, and GUARD where it has changed since it was seen. */
  add(order: AddOrder): Promise<Added>;
  /** Makes a run of it now. Throws GUARD for a list that a guard rejects, and for a schedule that has changed since it was shown. */
  run(order: RunScheduleOrder): Promise<MadeNow>;
  /** Reads its list and asks the guards; changes nothing. */
  dryRun(order: DryRunOrder): Promise<ScheduleDryRun>;
  pause(order: ScheduleOrder): Promise<SteeredSchedule>;
  /** Throws USAGE while its last run is halted, and GUARD where it has changed since it was shown. */
  resume(order: SeenScheduleOrder): Promise<SteeredSchedule>;
  /** Its runs stay. Throws GUARD where it has changed since it was shown. */
  remove(order: SeenScheduleOrder): Promise<SteeredSchedule>;
};
