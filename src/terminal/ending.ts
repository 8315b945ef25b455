import { count, duration, plural, rate } from '../format.ts';
import { describeBodies } from '../ledger/bodies.ts';
import { type HaltExample, haltExampleText } from '../ledger/halt-examples.ts';
import type { HaltCode } from '../ledger/run.ts';
import {
  codeOfStatus,
  isUncertain,
  isWorthAnotherRun,
  type Outcome,
  type OutcomeCounts,
  outcomes,
  outcomeText,
  sumOutcomes,
  textOfCode,
} from '../model/outcome.ts';
import { rehearsalMark, rehearsalPrefix, rehearsalText } from '../model/rehearsal.ts';
import { isNeverRepeated, readDefinitions } from '../model/resource.ts';
import { statusRanges } from '../model/status.ts';
import type { ToType } from '../model/to-type.ts';
import { visibleId, visibleLine } from '../model/visible.ts';
import { plainStyle, type Style } from './style.ts';

/** The way in which a command that deletes or detaches a run ended. */
export type EndingKind = 'completed' | 'cancelled' | 'halted' | Interrupted | 'detached';

/**
 * A signal ended the command. Either an operator has paused the run, or it is being cancelled, or another command deletes it; otherwise the same
 * command resumes it.
 */
type Interrupted = 'interrupted' | 'paused' | 'cancelling' | 'left';

/** Ids that failed for the same reason, with a few examples. */
type FailureGroup = { outcome: Outcome; code: string; count: number; samples: readonly string[] };

export type Ending = {
  toType: ToType; // for the reader
  kind: EndingKind;
  runId: string;
  reason: string;
  who: string;
  halt: HaltCode | '';
  retryOf: string; // the run whose ids were retried, or ''
  rehearsalOf: string; // as in the record of the run
  isPlanned: boolean; // whether it carries out a plan
  brakes: readonly string[]; // what the brakes did in a rehearsal
  rows: number;
  ids: number;
  isNoneThere: boolean; // whether nothing shows that any id existed, without --expect-absent
  pending: number;
  counts: OutcomeCounts;
  protectedRead: number | null; // ids in the protect file; null without one
  attempts: number;
  bodies: number; // answers that were a 204 with a body
  definitions: string; // as in the record of the run
  proof: readonly string[]; // how far its deleted ids can be trusted, in sentences; see `readProof`
  activeMs: number; // deleting time, without pauses
  pace: readonly string[]; // lines about its speed, and what slowed it down
  failures: readonly FailureGroup[]; // the most frequent failures first
  doubt: string; // why the last writes to Redis may be lost, or ''
  examples: readonly HaltExample[]; // a few ids that show why it halted
  behindHalt: string; // the outcomes of all ids that caused the halt, as `report --only` takes them; '' = none
  files: readonly string[]; // files that were written, the most useful first
  command: string; // the command line as typed
  ignoredProxy: string | null; // the variable of a proxy that expunge does not read; see `ignoredProxyVariable`
};

/**
 * The final summary of a command: the number of rows with each outcome, the reasons, the place of the report and, unless `isQuiet`, the next
 * commands. Pure.
 */
export function endingText(ending: Ending, style: Style = plainStyle, isQuiet = false): string {
  const parts = hasOutcomes(ending)
    ? [rehearsalLines(ending, style), tableLines(ending, style), ...rest.map((linesOf) => linesOf(ending, style))]
    : [];
  const next = (isQuiet ? [] : nextSteps(ending)).map(([does, command]) => `  ${does}: ${style.bold(command)}`);
  return [[style.bold(headline(ending))], ...parts, next]
    .filter((lines) => lines.length > 0)
    .flat()
    .join('\n');
}

/** The parts below the counts. */
const rest = [
  retryOfLines,
  noneThereLines,
  unprovenLines,
  bodyLines,
  proofLines,
  doubtLines,
  failureLines,
  exampleLines,
  paceLines,
  fileLines,
];

/** The lines that say what a rehearsal is not, and what its brakes did. */
function rehearsalLines({ rehearsalOf, brakes }: Ending, style: Style): string[] {
  if (rehearsalOf === '') return [];
  const what = `  ${style.yellow(`${rehearsalMark} of ${visibleLine(rehearsalOf)}: ${rehearsalText(rehearsalOf)}.`)}`;
  return [what, ...brakes.map((text) => `  Brakes: ${visibleLine(text)}`)];
}

function hasOutcomes({ kind }: Ending): boolean {
  return kind !== 'detached';
}

function headline(ending: Ending): string {
  const { kind, runId, ids, pending, who, reason } = ending;
  const why = visibleLine(`${who ? ` by ${who}` : ''}${reason ? `: ${reason.replace(/\.$/, '')}` : ''}`);
  const settled = `${count(ids - pending)} of ${count(ids)} ids are settled, ${count(pending)} left`;
  const safe = ending.rehearsalOf === '' ? 'Nothing is lost.' : 'A rehearsal cannot be resumed.';
  const words: Record<EndingKind, string> = {
    completed: `Run ${runId} completed: ${plural(ids, 'ids')}${speed(ending)}.`,
    cancelled: `Run ${runId} cancelled${why}.`,
    halted: `Run ${runId} halted${why}. ${settled}.`,
    interrupted: `Run ${runId} stopped${why}. ${settled}. ${safe}`,
    paused: `Run ${runId} stays paused${why}. ${settled}. ${safe}`,
    cancelling: `Left run ${runId}, which is being cancelled${why}. ${settled}.`,
    left: `Left run ${runId} to the other command that is deleting it. ${settled}.`,
    detached: `Run ${runId} is left to the workers: ${plural(pending, 'ids')}.`,
  };
  return `${rehearsalPrefix(ending, ' · ')}${words[kind]}`;
}

function speed({ ids, activeMs }: Ending): string {
  if (activeMs <= 0 || ids === 0) return '';
  return ` in ${duration(activeMs)} (${rate((ids / activeMs) * 1_000)})`;
}

function tableLines({ counts, pending, protectedRead }: Ending, style: Style): string[] {
  const isShown = (outcome: Outcome) => counts[outcome] > 0 || (outcome === 'protected' && protectedRead !== null);
  const rows = outcomes.filter(isShown).map((outcome) => [outcome, counts[outcome]] as const);
  const all = pending > 0 ? [...rows, ['pending', pending] as const] : rows;
  const width = Math.max(0, ...all.map(([, n]) => count(n).length));
  return all.map(([word, n]) =>
    `  ${word.padEnd(16)}  ${count(n).padStart(width)}  ${style.dim(meaningOf(word, protectedRead))}`.trimEnd(),
  );
}

function meaningOf(word: Outcome | 'pending', protectedRead: number | null): string {
  const read = word === 'protected' && protectedRead !== null ? `: ${plural(protectedRead, 'ids')} read` : '';
  return (word === 'pending' ? 'without an outcome yet' : outcomeText(word)) + read;
}

function retryOfLines({ retryOf }: Ending): string[] {
  return retryOf === '' ? [] : [`  Retry of run ${retryOf}`];
}

/** Lines for a run that found none of its ids, as with a list for another API, account or resource. */
function noneThereLines({ isNoneThere, ids }: Ending, style: Style): string[] {
  if (!isNoneThere) return [];
  const which = ids === 1 ? 'the id' : `any of the ${count(ids)} ids`;
  return [
    `  ${style.red(`Nothing shows that ${which} was there. Check --base-url, --account, --resource and --column.`)}`,
  ];
}

const goneCodes = new Set(statusRanges('gone').map(([status]) => textOfCode(codeOfStatus(status))));

/** Lines about ids that were not there while nothing else was accepted: the API may have said so of everything. */
function unprovenLines({ isNoneThere, failures }: Ending, style: Style): string[] {
  const such = failures.filter(({ outcome, code }) => outcome === 'unknown' && goneCodes.has(code));
  const ids = such.reduce((sum, group) => sum + group.count, 0);
  if (ids === 0 || isNoneThere) return [];
  const words = `${plural(ids, 'ids')} at the end of the list: the API said of each that it is not there, and accepted nothing after it.`;
  return [`  ${style.yellow(words)}`];
}

/** Lines about answers with a body. A server other than the API, which deletes nothing, may answer like this. */
function bodyLines({ bodies }: Ending, style: Style): string[] {
  return describeBodies(bodies).map((sentence) => `  ${style.yellow(sentence)}`);
}

function proofLines({ proof }: Ending, style: Style): string[] {
  return proof.map((sentence) => `  ${style.yellow(visibleLine(sentence))}`);
}

/** Lines about the doubt of a run, if it affects an outcome. */
function doubtLines({ doubt, counts, pending }: Ending): string[] {
  if (doubt === '' || sumOutcomes(counts, isUncertain) + pending === 0) return [];
  return [`  In doubt: ${visibleLine(doubt)}. Ids found gone since then are gone_unconfirmed, not absent.`];
}

const shownGroups = 10;
const shownSamples = 3;

function failureLines({ failures }: Ending): string[] {
  const width = Math.max(0, ...failures.map((group) => count(group.count).length));
  const lines = failures.slice(0, shownGroups).map((group) => groupLine(group, width));
  const more = failures.length - shownGroups;
  return more > 0 ? [...lines, `    and ${plural(more, 'other reasons')}, all in the report`] : lines;
}

function groupLine({ code, count: n, samples }: FailureGroup, width: number): string {
  const ids = samples.slice(0, shownSamples).map(visibleId).join('  ');
  return `    ${count(n).padStart(width)}  ${visibleLine(code)}   ${ids}${n > shownSamples ? ' …' : ''}`.trimEnd();
}

function exampleLines({ examples }: Ending): string[] {
  if (examples.length === 0) return [];
  return ['  For example:', ...examples.map((example) => `    ${visibleLine(haltExampleText(example))}`)];
}

function paceLines({ pace }: Ending): string[] {
  return pace.map((line) => `  ${line}`);
}

function fileLines({ files }: Ending): string[] {
  return files.length > 0 ? [`  Report: ${files.map(visibleLine).join(' · ')}`] : [];
}

type Step = [does: string, command: string];

/** The next commands after each kind of ending. */
function nextSteps(ending: Ending): Step[] {
  if (ending.rehearsalOf !== '')
    return ending.kind === 'completed' ? [['Delete them', 'the same command without --rehearse']] : [];
  return steps[ending.kind](ending);
}

const resumeSame = 'Resume with the same command';

const steps: Record<EndingKind, (ending: Ending) => Step[]> = {
  completed: (ending) => [...(ending.isNoneThere ? [mayBeGone(ending)] : []), ...tryAgain(ending)],
  cancelled: tryAgain,
  halted: (ending) => [
    ...seeAll(ending),
    ...causeOf(ending),
    ending.halt === 'max_deletes' ? raiseMaxDeletes(ending) : [resumeSame, ending.command],
  ],
  interrupted: ({ command }) => [[resumeSame, command]],
  paused: ({ runId, command, toType }) => [
    [resumeSame, command],
    ['The run stays paused until it is resumed', toType('resume', runId)],
  ],
  cancelling: ({ runId, command, toType }) => [
    ['Wait until it is cancelled', toType('cancel', runId, '--yes')],
    ['Then write its report', command],
  ],
  left: followOrPause,
  detached: followOrPause,
};

function followOrPause({ runId, toType }: Ending): Step[] {
  return [
    ['Follow it', toType('status', runId, '--watch')],
    ['Stop it', toType('pause', runId)],
  ];
}

/** A run of a plan keeps the rules that were approved: its command sets none. */
function mayBeGone({ kind, isPlanned, runId, command, toType }: Ending): Step {
  const ofPlan =
    kind === 'halted' ? toType('resume', runId, '--expect-absent') : toType('plan', 'FILE', '--expect-absent');
  return ['If they are expected to be gone', isPlanned ? ofPlan : `${command} --expect-absent`];
}

/** Ids that may have been executed, and whose DELETE is never repeated, are not retried. */
function tryAgain({ counts, definitions, runId, toType }: Ending): Step[] {
  const used = Object.values(readDefinitions(definitions));
  const isOnce = used.length > 0 && used.every(isNeverRepeated);
  const isRetried = (outcome: Outcome) => isWorthAnotherRun(outcome) && !(isOnce && outcome === 'unknown');
  return sumOutcomes(counts, isRetried) === 0 ? [] : [['Retry the others', toType('retry', runId)]];
}

function seeAll({ behindHalt, runId, toType }: Ending): Step[] {
  return behindHalt === '' ? [] : [['See all of them', toType('report', runId, '--only', behindHalt)]];
}

/** The next command after `--max-deletes`: the number that was reached would halt the run again. */
function raiseMaxDeletes({ isPlanned, runId, command, toType }: Ending): Step {
  const ofPlan = toType('resume', runId, '--max-deletes', 'N');
  const again = command.replace(/(--max-deletes[ =])\S+/, '$1…');
  return ['Continue with a higher --max-deletes', isPlanned ? ofPlan : again];
}

/** The command that shows the meanings for the configured resource of the run, if it has just one. */
function seeMeanings({ definitions, toType }: Ending): Step {
  const [name, ...others] = Object.keys(readDefinitions(definitions));
  const one = name === undefined || others.length > 0 ? [] : ['--resource', name];
  return ['See what each answer means', toType('check', '--verdicts', ...one)];
}

function findCause({ toType }: Ending): Step {
  return ['Find the cause', toType('check')];
}

/** A proxy that other programs use, and expunge does not. */
function useProxy({ ignoredProxy, command }: Ending): Step[] {
  return ignoredProxy === null ? [] : [[`Use the proxy of ${ignoredProxy}`, `${command} --proxy "$${ignoredProxy}"`]];
}

function askApi({ toType }: Ending): Step {
  return ['Test the API with an id you can lose', toType('check', '--resource', '…', '--probe-id', 'ID')];
}

function causeOf(ending: Ending): Step[] {
  if (ending.halt === '') return [];
  const isOutOfReach = ending.halt === 'target_unreachable' || ending.halt === 'target_configuration';
  return [...(isOutOfReach ? useProxy(ending) : []), ...causes[ending.halt].map((step) => step(ending))];
}

const causes: Record<HaltCode, ((ending: Ending) => Step)[]> = {
  unexpected_answers: [seeMeanings],
  wrong_endpoint: [seeMeanings],
  forbidden: [askApi],
  refused: [seeMeanings],
  all_absent: [mayBeGone],
  max_failures: [seeMeanings],
  canary: [seeMeanings],
  max_deletes: [],
  time_up: [],
  halting_status: [seeMeanings],
  credentials: [findCause, askApi],
  target_configuration: [findCause],
  target_unreachable: [findCause],
  ledger_lost: [],
};
