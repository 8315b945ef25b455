import type { KnownTarget } from '../ledger/known-targets.ts';
import type { ChosenRuns, ListedRun, RunChoice } from '../ledger/list-runs.ts';
import type { OutcomeRow } from '../ledger/outcome-rows.ts';
import type { HaltCode, Run } from '../ledger/run.ts';
import type { StandingFacts } from '../ledger/standing.ts';
import type { Rate } from '../model/rate.ts';
import type { Selection } from '../model/selection.ts';
import type { Target } from '../model/target.ts';
import type { Advice, ToType } from '../model/to-type.ts';
import type { ReportFormat, Sink } from '../report/report.ts';
import type { ScheduleDryRun } from '../schedule/follow-run.ts';
import type { Schedule } from '../schedule/schedule.ts';
import type {
  By,
  RunAction,
  ScheduleAction,
  SeenAction,
  SeenScheduleAction,
  SeenTargetAction,
  TargetAction,
} from './action.ts';
import type { AddAction, Added } from './add-schedule.ts';
import type { RateAction, RateChange } from './change-rate.ts';
import type { PlanAnswer, PlanFacts } from './kept-plan.ts';
import type { ListAction } from './list-action.ts';
import type { Removed } from './remove-run.ts';
import type { RunRecord } from './run-record.ts';
import type { DryRunAction, MadeNow, RunScheduleAction } from './run-schedule.ts';
import type { ScheduleRecord } from './schedule-record.ts';
import type { Appearance, Search } from './search-runs.ts';
import type { ResumeAction, Resumed, SteeredRun } from './steer-run.ts';
import type { SteeredSchedule } from './steer-schedule.ts';
import type { Reached, StopAction } from './stop-targets.ts';
import type { RunContext } from './take-snapshot.ts';
import type { TargetRecord, TargetStatus } from './target-status.ts';
import type { Verification } from './verify-run.ts';

// Everything that expunge does for people, without any output: an operation takes typed input, asks nothing and prints nothing. `local` works in
// Redis, `remote` through the API of a server; both throw the same errors, and both record who asked for the action and why.

/** All actions and queries, by subject. */
export type Operations = {
  runs: RunOperations;
  records: RecordOperations;
  schedules: ScheduleOperations;
  targets: TargetOperations;
  plans: PlanOperations;
};

/** Actions that steer runs. All but `resume` and `remove` can be repeated at will. */
export type RunOperations = {
  /** The run with this id, or whose id ends with the text. Throws USAGE if there is none, or if another version wrote it. */
  find(text: string | undefined): Promise<Run>;
  /** The runs of a target that are halted for this reason, newest first. */
  findHalted(target: Target, halt: HaltCode): Promise<Run[]>;
  /** Throws USAGE for a run that has ended. */
  pause(action: RunAction): Promise<SteeredRun>;
  /** Throws USAGE for a run that has ended, and GUARD if the run has moved since it was shown. */
  resume(action: ResumeAction): Promise<Resumed>;
  /** Returns once the requests in flight have their answers; calls `onWait` if that takes longer than 2 s. */
  cancel(action: RunAction, onWait: () => void): Promise<SteeredRun>;
  /** Throws USAGE for a run that has ended. */
  changeRate(action: RateAction): Promise<RateChange>;
  /** Removes an ended run, with all its keys. Throws USAGE for any other run, and GUARD if the run has moved since it was shown. */
  remove(action: SeenAction): Promise<Removed>;
};

/** How a report is written. */
export type ReportStyle = {
  format: ReportFormat | 'html'; // html: a page about the run instead of its rows
  spreadsheetSafe: boolean;
  only: Selection | null; // the rows to write; null: all
};

/** Where to look for an id. `searched` grows; `onProblem` is called for a run that cannot be read, and the search continues with the others. */
export type SearchOptions = Pick<Search, 'target' | 'wanted' | 'searched' | 'onProblem'>;

/** Queries about runs and their rows. They only read, except `noteReport` and `noteManifest`. */
export type RecordOperations = {
  /** The place that is asked, in words for people: Redis or a server. */
  place: string;
  /** The interval at which it may be asked, in ms. */
  pollMs: number;
  /** The text to show while it does not answer. */
  away: string | undefined;
  /** The run with this id, or whose id ends with the text. Throws USAGE if there is none. */
  find(text: string | undefined): Promise<Run>;
  /** The same run, with its sums if it has ended, and how far its `deleted` can be trusted. */
  findTallied(text: string | undefined): Promise<{ run: Run; proof: string[] }>;
  /** `factsOf`: a run as `--json` prints it. */
  list(
    choice: RunChoice,
    toType: ToType,
  ): Promise<
    ChosenRuns & { factsOf(run: ListedRun): Record<string, unknown>; standingOf(run: ListedRun): StandingFacts | null }
  >;
  record(run: Run): Promise<RunRecord>;
  /** The run as it is now, and what explains its pace. A run of undefined: no answer for now; a run of null: it is no longer known. */
  look(run: Run): Promise<{ run: Run | null | undefined; context: RunRecord['context'] | undefined }>;
  history(run: Run): Promise<Record<'points' | 'events' | 'waits', Record<string, unknown>[]>>;
  /** The runs that have an id, newest first. */
  search(action: SearchOptions): AsyncIterable<Appearance>;
  /** The rows in input order. */
  rows(run: Run): AsyncIterable<OutcomeRow[]>;
  /** Counts every row. Throws USAGE for a run whose list was not written completely. */
  verify(run: Run): Promise<Verification>;
  /** Writes a report, and returns its number of rows. */
  write(run: Run, style: ReportStyle, sink: Sink): Promise<number>;
  /** Records that a file holds all rows of an ended run. */
  noteReport(run: Run, path: string): Promise<void>;
  /** Records in the audit trail that a manifest of the report with this SHA-256 was made. */
  noteManifest(run: Run, by: By, sha256: string): Promise<void>;
};

/** Actions for the schedules of a target. All but `run` can be repeated at will. A schedule that is not there throws USAGE. */
export type ScheduleOperations = {
  list(target: Target): Promise<ScheduleRecord[]>;
  find(target: Target, name: string): Promise<Schedule>;
  /**
   * Adds or changes a schedule. Throws USAGE if another schedule has the name and may not be changed, and GUARD if it has changed since it was seen.
   */
  add(action: AddAction): Promise<Added>;
  /** Makes a run of the schedule now. Throws GUARD for a list that a guard rejects, and for a schedule that has changed since it was shown. */
  run(action: RunScheduleAction): Promise<MadeNow>;
  /** Reads the list and evaluates the guards; changes nothing. */
  dryRun(action: DryRunAction): Promise<ScheduleDryRun>;
  pause(action: ScheduleAction): Promise<SteeredSchedule>;
  /** Throws USAGE while the last run of the schedule is halted, and GUARD if the schedule has changed since it was shown. */
  resume(action: SeenScheduleAction): Promise<SteeredSchedule>;
  /** Removes a schedule; its runs stay. Throws GUARD if it has changed since it was shown. */
  remove(action: SeenScheduleAction): Promise<SteeredSchedule>;
};

/** Actions on plans that Redis keeps, by their whole id. An unknown plan throws USAGE, and a plan that does not wait any more GUARD. */
export type PlanOperations = {
  /** The plans in all inboxes, the oldest first, also those that were decided or have expired. */
  list(): Promise<PlanFacts[]>;
  /** `protected_host`: the host that the server wants to be typed; null = none. */
  show(id: string): Promise<PlanAnswer & { protected_host: string | null }>;
  /**
   * Makes the run of a plan, and leaves it to the workers if the action is detached. Throws GUARD if another person has to apply it, or anything
   * differs from it.
   */
  apply(
    id: string,
    action: ListAction,
    confirmed: number,
  ): Promise<{ run: Run; context: RunContext; warnings: Advice[] }>;
  refuse(id: string, by: By): Promise<PlanFacts>;
  /** Removes a plan and its list. */
  withdraw(id: string, by: By): Promise<void>;
};

/** A target after an action, and whether the action changed anything. */
export type TargetChange = { status: TargetStatus; isChanged: boolean };

/** A limit of a target; null ends it. */
type LimitAction = SeenTargetAction & { limit: Rate | null };

/** The shortest grace period of the later runs of a target, in ms. */
type MinGraceAction = SeenTargetAction & { graceMs: number };

/** Actions for all runs of a target, including later ones. All can be repeated at will. */
export type TargetOperations = {
  /** Every target, with what an action for it would reach. */
  known(): Promise<KnownTarget[]>;
  status(target: Target): Promise<TargetStatus>;
  record(target: Target): Promise<TargetRecord>;
  /** Stops all sending to the target, within a second; stops by other people are kept as well. Counts afterwards what it reached. */
  stopAll(action: StopAction): Promise<Reached>;
  /** Lifts the stop of the person who asks for this; if they have none, the stops of everyone. */
  startAll(action: StopAction): Promise<Reached>;
  /** Does the same for one known target; counts nothing. */
  stop(action: TargetAction): Promise<TargetChange>;
  /** Throws GUARD if the target has changed since it was shown, as every action with `seen` does. */
  start(action: SeenTargetAction): Promise<TargetChange>;
  /** Ends a wait that the server asked for, and an open circuit. */
  release(action: TargetAction): Promise<TargetChange>;
  forgetRate(action: TargetAction): Promise<TargetChange>;
  /** Records that a person has seen what Redis has lost of the target. */
  acknowledge(action: SeenTargetAction): Promise<TargetChange>;
  setLimit(action: LimitAction): Promise<TargetChange>;
  /** Sets the shortest grace period of later runs; 0 ends it. */
  setMinGrace(action: MinGraceAction): Promise<TargetChange>;
};
