import { resolve } from 'node:path';
import { type Config, settings, settingsFor, settingText } from '../config/settings.ts';
import type { ProtectedList } from '../input/spool.ts';
import type { Conclusion } from '../ledger/conclusion.ts';
import type { HaltCode, RunState } from '../ledger/run.ts';
import type { CarriedOver } from './carried-over.ts';
import type { Timing } from './occurrences.ts';

/** The policy for occurrences that passed while no worker listened: nothing, or one run for the last of them. */
export const missedPolicies = ['none', 'latest'] as const;

/** The guard that pauses a schedule: for a list that must not be deleted, or for a run that is halted or found none of its ids. */
export type GuardCode = ListGuardCode | RunGuardCode;

export type ListGuardCode = 'too_many' | 'unexpected_count' | 'growth' | 'empty' | 'same' | 'protected' | 'odd_ids';

type RunGuardCode = 'halted' | 'none_there';

/**
 * The settings that a schedule stores when it is added: how its list is read, and the rules of its runs, whoever makes or deletes them. The other
 * settings belong to the process that makes or deletes a run, or name the target.
 */
export const scheduledSettings = [...settingsFor('list'), ...settingsFor('rule')] as const;

type KeptSetting = (typeof scheduledSettings)[number];

export type ScheduledSettings = Pick<Config, KeptSetting>;

/** The definition by an operator. It holds only the name of the source; see `list-source.ts`. */
export type Definition = Timing & {
  from: string;
  missed: (typeof missedPolicies)[number];
  /** The delay in ms after which an occurrence counts as missed. */
  maxDelayMs: number;
  /** A factor: a list with more rows than this many times the median of the last lists is rejected. */
  maxGrowth: number;
  /** The maximum number of ids of its list that a run deletes; the others are carried over to the next occurrence. 0 = no maximum. */
  atMost: number;
  /** Whether an occurrence sends again the ids that the last occurrence's run left as failed or unknown. */
  retryFailed: boolean;
  /** The deleting time after which each of its runs pauses, in ms; 0 = no limit. */
  maxActiveMs: number;
  /** The time of day at which each of its runs pauses, by the clocks of its zone unless it names one; '' = none. */
  stopAt: string;
  /** Settings as texts, in the form of their flags; `protect` is an absolute path. */
  settings: Partial<Record<KeptSetting, string>>;
  /** The definitions of the configured resources that its lists can have ids of; '' = none; see `definitionsText`. */
  definitions: string;
  /** A URL that is called at the end of each occurrence that went well; '' = none. */
  heartbeat: string;
  /** The reason why it exists; its runs have the same note. */
  note: string;
};

/** active ⇄ paused → removed. A removed schedule is kept for 30 days, with its history. */
type ScheduleState = 'active' | 'paused' | 'removed';

/** A schedule in Redis. Times are ms since 1970. */
export type Schedule = Definition & {
  name: string;
  state: ScheduleState;
  reason: string; // why it has this state
  who: string; // '' for a guard
  changedAt: number;
  /** A number that moves with every change of its definition, its state and its pauses; an action names the number that was seen. */
  revision: number;
  /** The last occurrence that has been handled, with all earlier ones. */
  after: number;
  /** An occurrence that is to have a run once the last run has ended; or null. */
  waiting: number | null;
  /** The last run that was started, '' = none. */
  lastRun: string;
  /** The state in which it ended: '' = not recorded yet, `lost` = Redis no longer knows it. */
  lastState: RunState | 'lost' | '';
  /** The conclusion of the last run: '' = not recorded yet, or `lost`. */
  lastConclusion: Conclusion | '';
  lastEndedAt: number;
  lastSha256: string;
  /** A run that is being written and not started: '' = none. */
  preparing: string;
  /** The numbers of rows of the last lists, newest first. */
  rows: number[];
  /** The guard that paused it, and the guard that a resume waives for the next list; '' = none. */
  pausedBy: GuardCode | '';
  waived: GuardCode | '';
  /** Why the run is halted, if the guard `halted` paused the schedule; '' = another guard. */
  halt: HaltCode | '';
  /** The content of the file of protected ids when the schedule was added, or at its last run; null = it protects none. */
  protectedList: ProtectedList | null;
  /** The ids that its occurrences carry over to the next one; null = none. */
  carriedOver: CarriedOver | null;
  /** The first file of the last run with ids that the previous run had left; null = it sends no such ids. */
  retriedFrom: { run: string; file: number } | null;
  /** The end of the occurrence whose heartbeat is due, or null. */
  heartbeatDue: number | null;
  /** The files to archive after the last run, if none of their ids is to be read again; null = none. */
  toArchive: ReadFiles | null;
};

/** Whether only the guard has paused a schedule whose run halted for this reason: no operator has paused it since. */
export function isPausedFor({ state, pausedBy, halt, who }: Schedule, code: HaltCode): boolean {
  return state === 'paused' && pausedBy === 'halted' && halt === code && who === '';
}

/** Files as they were when they were read. */
export type ReadFiles = { run: string; files: { path: string; size: number; mtimeMs: number }[] };

/** The time of day of a schedule's `--stop-at` with the zone whose clocks count. */
export function stopAtWithZone(stopAt: string, tz: string): string {
  return stopAt.includes(' ') ? stopAt : `${stopAt} ${tz}`;
}

/** The definition's part of the record. Adding a schedule twice compares this text, so values that are not given are left out. */
export function definitionFields({ settings, note, ...definition }: Definition) {
  const { atMost, retryFailed, maxActiveMs, stopAt } = definition;
  const given = {
    atMost: atMost || undefined,
    retryFailed: retryFailed || undefined,
    maxActiveMs: maxActiveMs || undefined,
    stopAt: stopAt || undefined,
    definitions: definition.definitions || undefined,
  };
  const sorted = Object.fromEntries(Object.entries(settings).sort());
  return { definition: JSON.stringify({ ...definition, ...given, settings: sorted }), note };
}

export function parseSchedule(name: string, hash: Record<string, string>): Schedule {
  const text = (field: string) => hash[field] ?? '';
  const { settings, ...definition } = JSON.parse(text('definition'));
  return {
    ...definition,
    heartbeat: definition.heartbeat ?? '',
    atMost: definition.atMost ?? 0,
    retryFailed: definition.retryFailed ?? false,
    maxActiveMs: definition.maxActiveMs ?? 0,
    stopAt: definition.stopAt ?? '',
    definitions: definition.definitions ?? '',
    settings,
    note: text('note'),
    name,
    state: text('state') as ScheduleState,
    reason: text('reason'),
    who: text('who'),
    changedAt: Number(text('changedAt')),
    revision: Number(text('revision')),
    after: Number(text('after')),
    waiting: text('waiting') === '' ? null : Number(text('waiting')),
    lastRun: text('lastRun'),
    lastState: text('lastState') as Schedule['lastState'],
    lastConclusion: text('lastConclusion') as Schedule['lastConclusion'],
    lastEndedAt: Number(text('lastEndedAt')),
    lastSha256: text('lastSha256'),
    preparing: text('preparing'),
    rows: JSON.parse(hash.rows ?? '[]'),
    pausedBy: text('pausedBy') as Schedule['pausedBy'],
    waived: text('waived') as Schedule['waived'],
    halt: text('halt') as Schedule['halt'],
    protectedList: text('protectedList') === '' ? null : JSON.parse(text('protectedList')),
    carriedOver: text('carriedOver') === '' ? null : JSON.parse(text('carriedOver')),
    retriedFrom: text('retriedFrom') === '' ? null : JSON.parse(text('retriedFrom')),
    heartbeatDue: text('heartbeatDue') === '' ? null : Number(text('heartbeatDue')),
    toArchive: text('toArchive') === '' ? null : JSON.parse(text('toArchive')),
  };
}

/** The settings that a schedule stores, as text; defaults are left out. */
export function settingTexts(config: ScheduledSettings): Definition['settings'] {
  const kept = config.protect === undefined ? config : { ...config, protect: resolve(config.protect) };
  const texts = scheduledSettings.map((name) => [name, settingText(name, kept[name])] as const);
  return Object.fromEntries(
    texts.filter(([name, text]) => text !== null && text !== settingText(name, settings[name].fallback as never)),
  );
}

/** The stored settings as values; the others have the defaults of this version. */
export function parseStoredSettings({ settings: texts }: Pick<Definition, 'settings'>): ScheduledSettings {
  const values = scheduledSettings.map((name) => {
    const text = texts[name];
    return [name, text === undefined ? settings[name].fallback : readStored(name, text)];
  });
  return Object.fromEntries(values);
}

/** A resource is taken as it is: where it is not defined, the schedule can be shown, and its definition refuses its occurrences. */
function readStored(name: KeptSetting, text: string): unknown {
  return name === 'resource' ? text : settings[name].parse(text);
}

/** The result of an occurrence. */
type OccurrenceOutcome =
  | 'started' // its run was started; `ended` says how it ended
  | 'empty' // there was nothing to do: no file, or an accepted empty list
  | 'refused' // a guard rejected the list, and paused the schedule
  | 'failed' // the source gave no complete list
  | 'skipped' // the last run had not ended, or a run of the same list was being deleted
  | 'missed'; // no process listened in time

/** One line of a schedule's history. Consecutive occurrences with the same outcome share one line. */
export type HistoryEntry = {
  occurrence: number; // the last occurrence of the line; ms since 1970
  occurrences: number;
  at: number; // when it was handled
  outcome: OccurrenceOutcome;
  reason: string; // '' if the outcome needs none
  by: string; // user at machine
  run: string; // '' = none
  rows: number | null; // of its list; null = not known
  retried: number; // its ids that the last occurrence's run left as failed or unknown
  carriedOver: number; // ids that it left to the next occurrence
  ended: RunEnd | null;
};

export const occurrenceResults = [
  ...(['started', 'completed', 'incomplete', 'cancelled'] as const), // the states of its run
  ...(['empty', 'refused', 'failed', 'skipped', 'missed'] as const), // it has no run
];

/** The result of an occurrence and its run in one word; `incomplete`: the run is completed and did not go well. */
export function toOccurrenceResult({ outcome, ended }: HistoryEntry): (typeof occurrenceResults)[number] {
  if (outcome !== 'started' || ended === null) return outcome;
  if (ended.state === 'cancelled') return 'cancelled';
  return ended.conclusion === 'well' ? 'completed' : 'incomplete';
}

/** The end of a run, kept here because Redis forgets runs. */
export type RunEnd = { state: RunState; conclusion: Conclusion; deleted: number; gone: number; left: number };

/** The history with one more line, newest first; it keeps the last 50. */
export function withEntry(history: HistoryEntry[], entry: HistoryEntry): HistoryEntry[] {
  const [last, ...others] = history;
  const isMore =
    last !== undefined && entry.run === '' && last.outcome === entry.outcome && last.reason === entry.reason;
  if (isMore) return [{ ...entry, occurrences: last.occurrences + entry.occurrences }, ...others];
  return [entry, ...history].slice(0, keptEntries);
}

const keptEntries = 50;

/** The history with the end of a run. */
export function withEnd(history: HistoryEntry[], run: string, ended: RunEnd): HistoryEntry[] {
  return history.map((entry) => (entry.run === run ? { ...entry, ended } : entry));
}
