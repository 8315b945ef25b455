import type { FollowCursor } from '../ledger/follow-cursor.ts';
import type { KnownTarget } from '../ledger/known-targets.ts';
import type { ChosenRuns, ListedRun, RunChoice } from '../ledger/list-runs.ts';
import type { OutcomeRow } from '../ledger/outcome-rows.ts';
import type { ReportFormat, Sink } from '../ledger/report.ts';
import type { HaltCode, Run } from '../ledger/run.ts';
import type { StandingFacts } from '../ledger/standing.ts';
import type { Rate } from '../model/rate.ts';
import type { Selection } from '../model/selection.ts';
import type { Target } from '../model/target.ts';
import type { ToType } from '../model/to-type.ts';
import type { ScheduleDryRun } from '../schedule/follow-run.ts';
import type { Schedule } from '../schedule/schedule.ts';
import type { Added, AddOrder } from './add-schedule.ts';
import type { PaceChange, PaceOrder, PriorityChange, PriorityOrder } from './change-run.ts';
import type { Found, WrittenRows } from './follow-run.ts';
import type { RunOrder, ScheduleOrder, SeenOrder, SeenScheduleOrder, SeenTargetOrder, TargetOrder } from './order.ts';
import type { Removed } from './remove-run.ts';
import type { RunRecord } from './run-record.ts';
import type { DryRunOrder, MadeNow, RunScheduleOrder } from './run-schedule.ts';
import type { ScheduleRecord } from './schedule-record.ts';
import type { Appearance, Search } from './search-runs.ts';
import type { Ordered, Resumed, ResumeOrder } from './steer-run.ts';
import type { SteeredSchedule } from './steer-schedule.ts';
import type { Reached, StopOrder } from './stop-targets.ts';
import type { TargetRecord, TargetStatus } from './target-status.ts';
import type { Verification } from './verify-run.ts';

// What expunge does for people, without a word on a screen: an operation takes typed input, asks nothing and prints nothing. `local` does it in
// Redis, `remote` by the API of a server; both throw the same errors, and both record who ordered it and why.

/** All that can be ordered and asked, by what it is about. */
export type Operations = {
  runs: RunOperations;
  records: RecordOperations;
  schedules: ScheduleOperations;
  targets: TargetOperations;
};

/** Orders that steer runs. All but `resume` and `remove` can be repeated at will. */
export type RunOperations = {
  /** The run with this id, or whose id ends with the text. Throws USAGE if there is none, or if another release wrote it. */
  find(text: string | undefined): Promise<Run>;
  /** The runs of a target that are halted for this reason, the newest first. */
  findHalted(target: Target, halt: HaltCode): Promise<Run[]>;
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

/** How a report is written. */
export type ReportStyle = {
  format: ReportFormat | 'html'; // html: a page about the run instead of its rows
  spreadsheetSafe: boolean;
  only: Selection | null; // the rows to write; null: all
};

/** Where an id is looked for. `searched` grows; `onProblem` is told of a run that cannot be read: the others can. */
export type SearchOrder = Pick<Search, 'target' | 'wanted' | 'searched' | 'onProblem'>;

/** What is asked of runs and of their rows. All of it only reads, but for `noteReport`. */
export type RecordOperations = {
  /** What answers, for people. */
  place: string;
  /** How often it may be asked. */
  pollMs: number;
  /** What is said while it does not answer. */
  away: string | undefined;
  /** The run with this id, or whose id ends with the text. Throws USAGE if there is none. */
  find(text: string | undefined): Promise<Run>;
  /** The same, with its sums if it has ended, and how far a `deleted` of it can be trusted. */
  findTallied(text: string | undefined): Promise<{ run: Run; proof: string[] }>;
  /** `factsOf`: a run as `--json` prints it. */
  list(
    choice: RunChoice,
    toType: ToType,
  ): Promise<
    ChosenRuns & { factsOf(run: ListedRun): Record<string, unknown>; standingOf(run: ListedRun): StandingFacts | null }
  >;
  record(run: Run): Promise<RunRecord>;
  /** The run as it is now, and what explains its pace. undefined: nobody says so now; a run of null is no longer known. */
  look(run: Run): Promise<{ run: Run | null | undefined; context: RunRecord['context'] | undefined }>;
  history(run: Run): Promise<Record<'points' | 'events' | 'waits', Record<string, unknown>[]>>;
  /** The runs that have an id, the newest first. */
  search(order: SearchOrder): AsyncIterable<Appearance>;
  /** In input order. */
  rows(run: Run): AsyncIterable<OutcomeRow[]>;
  /** Counts every row. Throws USAGE for a run whose list was not written completely. */
  verify(run: Run): Promise<Verification>;
  /** Writes a report, and returns how many rows it is about. */
  write(run: Run, style: ReportStyle, sink: Sink): Promise<number>;
  /** Records that a file holds all rows of an ended run. */
  noteReport(run: Run, path: string): Promise<void>;
  /** Returns what writes the news of a run since it was called last, at first since the cursor. */
  follow(run: Run, cursor: FollowCursor): (written: WrittenRows, stop: AbortSignal) => Promise<Found>;
  /** Why an error says that nobody answers now; null if it says something else. */
  awayOf(error: unknown): string | null;
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

/** A target after an order, and whether the order changed anything. */
export type TargetChange = { status: TargetStatus; isChanged: boolean };

/** A rate or a budget of a target; null ends it. */
type BoundOrder = SeenTargetOrder & { rate: Rate | null };

/** Orders for all runs of a target, also those to come. All can be repeated at will. */
export type TargetOperations = {
  /** Every target, with what an order for it reaches. */
  known(): Promise<KnownTarget[]>;
  status(target: Target): Promise<TargetStatus>;
  record(target: Target): Promise<TargetRecord>;
  /** Lets nobody send to it, within a second; the stop stands beside those of colleagues. Counts afterwards what it reached. */
  stopAll(order: StopOrder): Promise<Reached>;
  /** Lifts the stop of who orders it; where there is none of theirs, the stops of all. */
  startAll(order: StopOrder): Promise<Reached>;
  /** The same for one target that is known; counts nothing. */
  stop(order: TargetOrder): Promise<TargetChange>;
  /** Throws GUARD where it has moved since it was shown, as all do that take `seen`. */
  start(order: SeenTargetOrder): Promise<TargetChange>;
  /** Ends a wait that the server asked for, and an open circuit. */
  release(order: TargetOrder): Promise<TargetChange>;
  forgetRate(order: TargetOrder): Promise<TargetChange>;
  /** Says that somebody has seen what Redis has lost of it. */
  acknowledge(order: SeenTargetOrder): Promise<TargetChange>;
  /** The rate is a single one. */
  pinRate(order: BoundOrder): Promise<TargetChange>;
  setBudget(order: BoundOrder): Promise<TargetChange>;
};
