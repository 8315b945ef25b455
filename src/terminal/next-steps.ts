import type { HaltCode } from '../ledger/run.ts';
import type { Ending, EndingKind } from './ending.ts';
import { shellWord } from './shell-word.ts';

type Step = [does: string, command: string];

/** What somebody would type next, after each kind of ending. */
export function nextSteps(ending: Ending): Step[] {
  return steps[ending.kind](ending);
}

const steps: Record<EndingKind, (ending: Ending) => Step[]> = {
  completed: (ending) => [...(ending.isNoneThere ? [mayBeGone(ending)] : []), ...tryAgain(ending)],
  cancelled: tryAgain,
  halted: (ending) => [...causeOf(ending), ['Go on with the same command', ending.command]],
  interrupted: ({ command }) => [['Go on with the same command', command]],
  paused: ({ runId, command }) => [
    ['Go on with the same command', command],
    ['It waits until somebody lets the run go on', `expunge resume ${runId}`],
  ],
  cancelling: ({ runId, command }) => [
    ['Wait for its end', `expunge cancel ${runId} --yes`],
    ['Then write its report', command],
  ],
  left: followOrPause,
  detached: followOrPause,
};

function followOrPause({ runId }: Ending): Step[] {
  return [
    ['Follow it', `expunge status ${runId} --watch`],
    ['Stop it', `expunge pause ${runId}`],
  ];
}

function mayBeGone({ command }: Ending): Step {
  return ['If they may be gone', `${command} --expect-absent`];
}

function tryAgain({ failuresFile }: Ending): Step[] {
  if (failuresFile === null) return [];
  return [['Try the others again', `expunge run ${shellWord(failuresFile)} --resource-column resource`]];
}

const seeMeanings: Step = ['See what each answer means', 'expunge check --verdicts'];
const findCause: Step = ['Find the cause', 'expunge check'];
const askApi: Step = ['Ask the API itself, with an id that may go', 'expunge check --resource … --probe-id ID'];

function causeOf(ending: Ending): Step[] {
  return ending.halt === '' ? [] : causes[ending.halt](ending);
}

const causes: Record<HaltCode, (ending: Ending) => Step[]> = {
  unexpected_answers: () => [seeMeanings],
  wrong_endpoint: () => [seeMeanings],
  forbidden: () => [askApi],
  refused_input: () => [seeMeanings],
  all_absent: (ending) => [mayBeGone(ending)],
  halting_status: () => [seeMeanings],
  credentials: () => [findCause, askApi],
  target_configuration: () => [findCause],
  target_unreachable: () => [findCause],
  ledger_lost: () => [],
};
