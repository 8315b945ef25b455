import { namedTarget } from '../../config/check-target.ts';
import { plural } from '../../format.ts';
import { conclusionText, judgeRun } from '../../ledger/conclusion.ts';
import { countPending, type HaltCode, isFinalized, type Run } from '../../ledger/run.ts';
import { givenRules, type ResumeSettings } from '../../ledger/run-rules.ts';
import { commandFor } from '../../model/target.ts';
import type { ToType } from '../../model/to-type.ts';
import { visibleLine } from '../../model/visible.ts';
import type { RunOperations } from '../../operations/operations.ts';
import { goals, type Resumed, type SteeredRun } from '../../operations/steer-run.ts';
import { standingSummary } from '../../operations/take-snapshot.ts';
import type { Invocation } from '../command.ts';
import { sayDetached } from '../runs/finish-run.ts';
import { askYes, infoWriter, readBy, writeWarnings } from '../session.ts';
import { withOperations } from '../with-operations.ts';
import { haltedRuns, haltOfAll, resumeAll } from './resume-all.ts';

type ActionName = 'pause' | 'resume' | 'cancel';

/** pause, resume and cancel: from any machine, within a second. Repeating them changes nothing. */
export async function execute(invocation: Invocation): Promise<number> {
  const action = invocation.commandName as ActionName;
  const halt = action === 'resume' ? haltOfAll(invocation, 'a run') : null;
  if (halt !== null) return resumeHalted(invocation, halt);
  return withOperations(invocation, 'runs', async (runs) =>
    actions[action](invocation, runs, await runs.find(invocation.args[0])),
  );
}

type Action = (invocation: Invocation, runs: RunOperations, run: Run) => Promise<number>;

const actions: Record<ActionName, Action> = {
  async pause(invocation, runs, { id: run }) {
    return sayOutcome(invocation, 'pause', await runs.pause({ run, by: readBy(invocation) }));
  },
  async cancel(invocation, runs, run) {
    if (!isFinalized(run.state))
      await askYes(invocation, `Cancel run ${run.id} for good, with ${plural(countPending(run), 'ids')} left?`);
    const onWait = () => infoWriter(invocation)(waitsForAnswers);
    return sayOutcome(invocation, 'cancel', await runs.cancel({ run: run.id, by: readBy(invocation) }, onWait));
  },
  resume,
};

async function resume(invocation: Invocation, runs: RunOperations, run: Run): Promise<number> {
  const { config, options } = invocation;
  const { expectAbsent, expect, onStatus } = config; // settled ids keep their outcome; each chunk reads the setting when it is claimed
  const given: ResumeSettings = { expectAbsent, expect, onStatus, maxDeletes: options.maxDeletes };
  const resumed = await runs.resume({
    run: run.id,
    seen: run.revision,
    by: readBy(invocation),
    rules: givenRules({ config: given }),
    detach: options.detach === true,
  });
  if (options.detach) return sayDetached(invocation, resumed.run, resumed.context, resumed.warnings);
  return sayOutcome(invocation, 'resume', resumed);
}

/** Skips runs that an operator has also paused: the halt is not all that holds them. */
async function resumeHalted(invocation: Invocation, halt: HaltCode): Promise<number> {
  const { config, stderr, toType, verbosity } = invocation;
  const target = namedTarget(config);
  return withOperations(invocation, 'runs', async (runs) => {
    const all = await runs.findHalted(target, halt);
    const found = all.filter(({ pauses }) => pauses.length === 0);
    for (const { id, pauses } of all.filter(({ pauses }) => pauses.length > 0))
      stderr.write(`Left out: run ${id} is also paused${byWhom(pauses[0]!)}. Resume it: ${toType('resume', id)}\n`);
    const work = { target, halt, found, table: haltedRuns, resume: (run: Run) => resume(invocation, runs, run) };
    const exit = await resumeAll(invocation, work);
    const allHalted: ToType = (command, ...words) => toType(command, '--all', '--halted', halt, ...words);
    if (verbosity !== 'quiet' && found.some(({ createdBy }) => createdBy.startsWith('schedule ')))
      stderr.write(`Schedules that these halts paused: ${commandFor(allHalted, 'schedule resume', target)}\n`);
    return exit;
  });
}

const waitsForAnswers =
  'No more requests are sent. Waiting for the answers to requests in flight, at most for their request timeout.';

/** A run after an action. What still holds it back is known only for a resumed run. */
type Steered = SteeredRun & Partial<Pick<Resumed, 'context' | 'warnings'>>;

/** Reports what was done, and what still holds a resumed run back. Returns the exit code. */
function sayOutcome(
  { options, toType, stderr, stdout, verbosity }: Invocation,
  action: ActionName,
  steered: Steered,
): number {
  const { run, isChanged, context = null, warnings = [] } = steered;
  const [done, ...next] = outcomeLines(action, steered, toType);
  stderr.write(`${[done, ...(verbosity === 'quiet' ? [] : next)].join('\n')}\n`);
  writeWarnings(stderr, warnings, toType);
  const facts = { ...standingSummary(run, context, { toType }), changed: isChanged };
  if (options.json) stdout.write(`${JSON.stringify(facts)}\n`);
  return 0;
}

/** The result of the action, then the next step. */
function outcomeLines(action: ActionName, steered: Steered, toType: ToType): string[] {
  const { before, run, isChanged, context } = steered;
  if (run.state === 'preparing') return preparingLines(action, run, toType);
  const left = plural(countPending(run), 'ids');
  const isLeft = run.pauses.some(({ id }) => before.pauses.some((pause) => pause.id === id));
  if (isLeft && action === 'resume') {
    const why =
      run.state === 'halted' ? `stays halted, and is paused${byWhom(run.pauses[0]!)}` : `stays paused${byWhom(run)}`;
    return [`Run ${run.id} ${why}.`, `  Lift that pause as well: ${toType('resume', run.id)}`];
  }
  if (!goals[action].includes(run.state)) return overtakenLines(action, run, { left, toType });
  if (action === 'pause') return pausedLines(steered, left, toType);
  const report = `  What happened to each row: ${toType('report', run.id)}`;
  const fault = conclusionText(judgeRun(run));
  if (run.state === 'completed') return [`Run ${run.id} has completed${fault && `, but ${fault}`}.`, report];
  if (action === 'cancel') {
    const isAlready = before.state === 'cancelled';
    return [isAlready ? `Run ${run.id} was cancelled already.` : `Run ${run.id} is cancelled.`, report];
  }
  const done = isChanged ? `Resumed run ${run.id}` : `Run ${run.id} was running already`;
  if (context?.isAbandoned) return [`${done}, ${left} left.`];
  const who = run.detached ? 'its workers continue' : 'its command continues';
  return [`${done}, ${left} left; ${who}.`, `  Follow it: ${toType('status', run.id, '--watch')}`];
}

/** Lines for a run that another action has moved since. */
function overtakenLines(action: ActionName, run: Run, { left, toType }: { left: string; toType: ToType }): string[] {
  const done = action === 'pause' ? 'paused' : 'resumed';
  return [
    `Run ${run.id} was ${done}, but is ${run.state} by now, ${left} left.`,
    `  Why: ${toType('status', run.id, '--audit')}`,
  ];
}

/** The run starts by itself once its list is written, so the action takes effect then. */
function preparingLines(action: ActionName, { id }: Run, toType: ToType): string[] {
  const is = `Run ${id} is still being written.`;
  if (action === 'cancel') return [`${is} It will be cancelled then; nothing of it is sent.`];
  if (action === 'resume') return [`${is} It starts by itself then.`];
  return [`${is} It will be paused then, and send nothing.`, `  Resume: ${toType('resume', id)}`];
}

function pausedLines({ before, run, isChanged }: SteeredRun, left: string, toType: ToType): string[] {
  const resume = toType('resume', run.id);
  const wasHalted = run.state === 'halted';
  if (before.state !== 'paused' && !wasHalted)
    return [`Paused run ${run.id}, ${left} left. No more requests are sent.`, `  Resume: ${resume}`];
  const was = `Run ${run.id} was ${wasHalted ? 'halted' : 'paused'} already${byWhom(before).replace(/^ by/, ', by')}.`;
  if (!isChanged) return [was, `  Resume: ${resume}`];
  if (before.by === 'operator' && !wasHalted)
    return [`${was} Your pause is kept as well; each of the two needs its own resume.`, `  Resume: ${resume}`];
  return [`${was} Your pause is kept: from now on only this resumes it: ${resume}`];
}

/** ` by ana: legal hold`. */
function byWhom({ who, reason }: { who: string; reason: string }): string {
  return visibleLine(`${who ? ` by ${who}` : ''}${reason ? `: ${reason.replace(/\.$/, '')}` : ''}`);
}
