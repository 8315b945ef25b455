import { capital, plural } from './format.ts';
import type { OutcomeWord, Person, RunSummary, Words } from './types.ts';

// What the server sends once: who is logged in, and the words for outcomes. Each outcome has a colour and a pattern of the same number, as in the
// report: good ones differ from bad ones.

/** The person who is logged in, and the words. */
type Me = Person & Words;

export let me: Me = {
  name: '',
  role: 'read',
  targets: null,
  worker_of: null,
  outcomes: [],
  resources: [],
};

export function setMe(found: Me) {
  me = found;
}

export function mayOperate() {
  return me.role === 'operate' || me.role === 'admin';
}

export function mayPlan() {
  return me.role !== 'read';
}

/** The outcomes of ids, in display order. */
function idOutcomes() {
  return me.outcomes.filter(({ of_id }) => of_id);
}

/** The outcomes of ids, without those that were never sent. */
export function sentOutcomes() {
  return idOutcomes().filter(({ is_left }) => !is_left);
}

/** The number of the colour and the pattern of an outcome. */
export function styleNumber(word: OutcomeWord) {
  const alike = idOutcomes().filter(({ is_success }) => is_success === word.is_success);
  const at = Math.max(
    0,
    Math.min(
      2,
      alike.findIndex(({ outcome }) => outcome === word.outcome),
    ),
  );
  return word.is_success ? at : 3 + at;
}

/** The strokes over the colour of a number. */
export const strokes: Record<number, string> = {
  0: '',
  1: 'M-2 6L6 -2M2 10L10 2',
  2: 'M3 4H5',
  3: 'M-2 6L6 -2M2 10L10 2M-2 2L6 10M2 -2L10 6',
  4: 'M0 2H8M0 6H8',
  5: 'M2 0V8M6 0V8',
};

/** Number of rows of a run with this outcome. */
export function countOutcome(run: Readonly<Record<string, unknown>>, { outcome }: OutcomeWord) {
  const n = run[outcome];
  return typeof n === 'number' ? n : 0;
}

/** Number of rows of a run with an outcome of this kind. */
export function sum(run: Readonly<Record<string, unknown>>, isCounted: (word: OutcomeWord) => boolean) {
  return me.outcomes.filter(isCounted).reduce((total, word) => total + countOutcome(run, word), 0);
}

/** Whether a row with this outcome needs attention. */
export function isFailure({ is_success, is_left }: OutcomeWord) {
  return !is_success && !is_left;
}

/** The ids that a plan deletes, by their resources: `3 annotations and 1 view`. Its server may know other resources than this one. */
export function idsInWords(counts: Readonly<Record<string, number>>) {
  const ofRows = ['rows', ...me.outcomes.map(({ outcome }) => outcome)];
  const kinds = Object.keys(counts).filter((name) => counts[name]! > 0 && !ofRows.includes(name));
  return inWords.format(kinds.map((resource) => plural(counts[resource]!, resource)));
}

const inWords = new Intl.ListFormat('en-GB');

/** Number of rows of a run that need attention. */
export function countFailures(run: RunSummary) {
  return sum(run, isFailure);
}

/** Number of ids of the run that were to be sent. */
export function countIds(run: RunSummary) {
  return run.pending + sum(run, ({ of_id }) => of_id);
}

/** Number of those ids that have no outcome by a request: they wait, or were left when the run ended. */
export function countLeft(run: RunSummary) {
  return run.pending + sum(run, ({ is_left }) => is_left);
}

/** Number of those ids that have an outcome. */
export function countSettled(run: RunSummary) {
  return countIds(run) - countLeft(run);
}

/** The states of ended runs. */
export const finalized = ['completed', 'cancelled'];

/** Whether nothing in the run changes any more. */
export function isFinalized({ state }: { state: string }) {
  return finalized.includes(state);
}

const symbols: Record<string, string> = {
  running: '▶',
  paused: '‖',
  halted: '■',
  completed: '✔',
  cancelled: '✖',
  cancelling: '✖',
};

/** A symbol next to the word, for people who cannot see colours. */
export function stateSymbol(run: RunSummary) {
  return run.state === 'completed' && run.exit !== 0 ? '⚠' : (symbols[run.state] ?? '…');
}

export function stateTone(run: RunSummary) {
  if (run.state === 'halted') return 'bad';
  if (run.state === 'running') return run.standing ? 'warn' : 'good';
  if (!isFinalized(run)) return 'warn';
  if (run.exit !== 0) return 'bad';
  return run.state === 'completed' ? 'good' : '';
}

/** The reason for the state of a run: `Paused by ana: release window`; '' if there is none. */
export function stateReason({ state, who, by, reason }: RunSummary & { by?: string | null }) {
  if (state === 'completed' || state === 'running') return reason;
  const whose = who || (by === 'guard' ? 'a guard' : '');
  const words = `${capital(state)}${whose ? ` by ${whose}` : ''}`;
  return reason ? `${words}: ${reason}` : words;
}
