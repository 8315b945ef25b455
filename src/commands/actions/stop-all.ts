import { namedTarget } from '../../config/check-target.ts';
import { ExpungeError } from '../../errors.ts';
import { isLive, type KnownTarget, liveRuns } from '../../ledger/known-targets.ts';
import { stopFacts } from '../../limiter/stop.ts';
import { nearestFirst } from '../../model/suggest.ts';
import { commandFor } from '../../model/target.ts';
import { type Advice, joinAdvice } from '../../model/to-type.ts';
import type { Reached } from '../../operations/stop-targets.ts';
import { notReachedText, type StopResult, startedText, stoppedText, targetName } from '../../terminal/stop-text.ts';
import { type Invocation, jsonLines } from '../command.ts';
import { readBy } from '../session.ts';
import { withOperations } from '../with-operations.ts';

/**
 * stop-all and start-all: for all runs of a target, or of all accounts of its base URL, from any machine, within a second. Repeating them changes
 * nothing. A stop that changes nothing and reaches no run and no process throws USAGE: most likely another target was meant.
 */
export async function execute(invocation: Invocation): Promise<number> {
  const { commandName, config, options } = invocation;
  const action = { target: namedTarget(config), allAccounts: options.allAccounts === true, by: readBy(invocation) };
  return withOperations(invocation, 'targets', async (targets) => {
    if (commandName === 'stop-all') reportStopped(invocation, await targets.stopAll(action));
    else reportStarted(invocation, await targets.startAll(action));
    return 0;
  });
}

/** Reports what was stopped. Throws USAGE if nothing was reached. */
function reportStopped(invocation: Invocation, { reached, others }: Reached): void {
  const { toType, stderr, verbosity } = invocation;
  const [first] = reached;
  const named = first!.known;
  const going = others.filter((known) => isLive(known) && known.stops.target === null);
  const reachesNothing = !reached.some(({ known }) => isLive(known));
  const reachesNoRun = reached.every(({ known }) => liveRuns(known) === 0); // an idle process may also be of the wrong target
  const missed = reachesNoRun ? nearestFirst(going, named) : going.filter(({ baseUrl }) => baseUrl === named.baseUrl);
  writeJson(invocation, reached, missed);
  if (reachesNothing && reached.every(({ before }) => before === null)) throw nothingReached(named, missed);
  for (const one of reached)
    stderr.write(`${stoppedText(one, Date.now(), { toType, isQuiet: verbosity === 'quiet' })}\n`);
  if (missed.length > 0)
    stderr.write(`warning: live, and not stopped:\n${notReachedText('stop-all', missed, toType)}\n`);
}

function reportStarted(invocation: Invocation, { reached, others }: Reached): void {
  const { toType, stderr } = invocation;
  const named = reached[0]!.known;
  const stopped = others.filter(({ stops }) => stops.target !== null);
  const isNothing = reached.every(({ before }) => before === null); // most likely another target was meant
  const missed = isNothing ? nearestFirst(stopped, named) : stopped.filter(({ baseUrl }) => baseUrl === named.baseUrl);
  writeJson(invocation, reached, missed);
  for (const one of reached) stderr.write(`${startedText(one, Date.now(), toType)}\n`);
  if (missed.length > 0) stderr.write(`warning: still stopped:\n${notReachedText('start-all', missed, toType)}\n`);
}

/** The stop stays in force: if this target was meant, it applies to runs that start later. */
function nothingReached(target: KnownTarget, going: readonly KnownTarget[]): ExpungeError {
  const undo: Advice = (toType) =>
    `the stop is kept, and applies to runs that start later; undo it: ${commandFor(toType, 'start-all', target)}`;
  const elsewhere: Advice = (toType) =>
    going.length > 0
      ? `live, and not stopped:\n${notReachedText('stop-all', going, toType)}`
      : 'nothing else is live there';
  const words = `the stop of ${targetName(target)} reaches nothing: it has no live run and no process in this Redis`;
  return new ExpungeError('USAGE', words, { next: joinAdvice([undo, elsewhere], '\n') });
}

function writeJson(
  { commandName, options, stdout }: Invocation,
  reached: readonly StopResult[],
  missed: KnownTarget[],
): void {
  const others = missed.map((known) => jsonLive(known));
  for (const { before, known } of reached)
    jsonLines(stdout, options.json)(commandName, {
      ...jsonLive(known),
      stop: stopFacts(known.stops.target),
      before: stopFacts(before),
      others,
    });
}

function jsonLive(known: KnownTarget) {
  const { baseUrl: target, account, stops } = known;
  return { target, account, runs: liveRuns(known), processes: stops.alive };
}
