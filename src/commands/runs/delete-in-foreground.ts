import { plural } from '../../format.ts';
import { changedSince } from '../../ledger/changed-since.ts';
import { isFinalized, isTimeUp, type Run, readRun, readRunAgain } from '../../ledger/run.ts';
import { startRun } from '../../ledger/start-run.ts';
import { logFor } from '../../logger.ts';
import type { Target } from '../../model/target.ts';
import { visibleLine } from '../../model/visible.ts';
import type { NamedReceiver } from '../../notify/receivers.ts';
import type { By } from '../../operations/action.ts';
import type { EarlySession, Session } from '../../operations/session.ts';
import { readRunContext, SnapshotTaker } from '../../operations/take-snapshot.ts';
import { ownQueueName } from '../../queue/queues.ts';
import { LivePanel } from '../../terminal/live-panel.ts';
import { eventText, TargetEvents } from '../../terminal/target-events.ts';
import { sleepUntilAborted } from '../../wait.ts';
import { type Notifying, postLast, runNotifyingParts } from '../../worker/notifying.ts';
import { type Part, Parts } from '../../worker/parts.ts';
import { openService, type Service, tokenPart } from '../../worker/service.ts';
import { type Invocation, jsonLines, readReason } from '../command.ts';
import { type Credentials, serviceOptions } from '../credentials.ts';
import { type Interrupts, listenForInterrupts, orAborted } from '../interrupts.ts';
import { lineWriter, progressStream, whoAmI } from '../session.ts';
import { type Finish, finishRun } from './finish-run.ts';

type ForegroundDeletion = Finish & {
  session: EarlySession;
  target: Target;
  credentials: Credentials;
  /** Receivers of the events of the run and its target. */
  receivers: readonly NamedReceiver[];
};

const pollMs = 100;
const recoverEveryMs = 1_000;
const readContextEveryMs = 250;
const progressEveryMs = 10_000;

/**
 * Deletes a run in this process, with its own queue, and reports. Returns when the run is finalized or halted, or after a signal: then requests in
 * flight finish, the chunks are returned, and the run can be resumed.
 */
export async function deleteInForeground(work: ForegroundDeletion): Promise<number> {
  const { invocation, session, target, credentials, run, receivers } = work;
  const queueName = ownQueueName(run.id);
  const isQuiet = invocation.verbosity === 'quiet'; // then no panel shows warnings
  const tell = (line: string) => (isQuiet ? lineWriter(invocation.stderr)(`warning: ${line}`) : taker.addEvent(line));
  const log = logFor(invocation, tell);
  const options = serviceOptions(invocation, session, target, credentials);
  const service = openService({ ...options, queueName, log });
  const by = { who: whoAmI(invocation.env), reason: readReason(invocation.options) };
  const startIt: Part = { name: 'run', start: () => startSeen(session, run, by) }; // after the token: a run without one does not start
  const sayWaiting = (reason: string) => lineWriter(invocation.stderr)(`Waiting: ${visibleLine(reason)}`);
  const { dashboardUrl = '' } = invocation.config;
  const { redis } = session;
  const notifying: Notifying = { redis, target, receivers, dashboardUrl, log, runs: async () => [run.id] };
  const telling = runNotifyingParts(notifying, run.id);
  const token = tokenPart(credentials.token, sayWaiting);
  const parts = new Parts([...telling, token, startIt, ...service.parts], log);
  const taker: SnapshotTaker = new SnapshotTaker(run, service, invocation.toType);
  const panel = new LivePanel(progressStream(invocation), panelEnv(invocation), () => taker.take());
  const interrupts = listenForInterrupts(invocation, () => {
    panel.stop();
    sayStopping(invocation, service);
  });
  const end = async () => {
    panel.stop();
    await parts.drain();
  };
  try {
    await parts.start(interrupts.signal);
    panel.start();
    const left = await follow(work, service, taker, interrupts);
    await end();
    const exit = await finishRun(work, interrupts, left);
    sayUndelivered(invocation, await postLast(notifying, run.id));
    return exit;
  } finally {
    await end();
    interrupts.dispose();
  }
}

function sayUndelivered({ stderr }: Invocation, undelivered: Awaited<ReturnType<typeof postLast>>): void {
  for (const { receiver, reason } of undelivered)
    lineWriter(stderr)(
      `warning: not all events were posted to ${receiver}: ${visibleLine(reason)}. The others stay in Redis for a day, for the next process with this receiver.`,
    );
}

/**
 * Polls the run until it is finalized, halted, lost, or its time is up, and returns its last state; null if it is lost, and after a signal. While
 * Redis is unreachable it waits, and nothing is sent.
 */
async function follow(
  { invocation, session, run }: ForegroundDeletion,
  service: Service,
  taker: SnapshotTaker,
  { signal }: Interrupts,
): Promise<Run | null> {
  const print = jsonLines(invocation.stdout, invocation.options.json);
  const recover = every(recoverEveryMs, () => service.enqueuer.recover(run.id));
  const events = new TargetEvents();
  const readContext = every(readContextEveryMs, async () => {
    const context = await orAborted(signal, readRunContext(session.redis, run));
    taker.observeContext(context);
    for (const event of events.observe(context?.limiter ?? null, service.token.refreshes, performance.now()))
      taker.addEvent(eventText(event));
  });
  const by = {
    who: whoAmI(invocation.env),
    reason: 'another command that was deleting it was interrupted, and this one continues',
  };
  const keepGoing = async (now: Run) => {
    if (now.state === 'running') await recover();
    if (now.state === 'cancelling') await session.ledger.reclaim(run.id); // a process that holds chunks of it may be dead
    if (now.state === 'paused' && now.by === 'interrupt') await startRun(session.ledger, now, by); // if it has moved by now, the next look sees it
  };
  const progress = every(progressEveryMs, async () => print('progress', taker.facts()));
  while (!signal.aborted) {
    const now = await orAborted(signal, readRun(session.redis, run.id));
    taker.observe(now);
    if (now === null || (now && (isFinalized(now.state) || now.state === 'halted' || isTimeUp(now)))) return now;
    if (now) await orAborted(signal, keepGoing(now));
    await readContext();
    await progress();
    await sleepUntilAborted(pollMs, signal);
  }
  return null;
}

/** Returns a function that runs `task` at most once in `ms`; its first call runs it at once. */
function every(ms: number, task: () => Promise<unknown>): () => Promise<void> {
  let next = 0;
  return async () => {
    if (performance.now() < next) return;
    next = performance.now() + ms;
    await task();
  };
}

/** Log lines would scroll a panel that is redrawn, so with a log the run is shown in lines. */
function panelEnv({ env, verbosity }: Invocation): NodeJS.ProcessEnv {
  return verbosity === 'verbose' ? { ...env, TERM: 'dumb' } : env;
}

function sayStopping({ config, stderr }: Invocation, { sender }: Service): void {
  const seconds = Math.ceil(config.requestTimeoutMs / 1_000);
  stderr.write(
    `\nStopping: ${plural(sender.inFlight, 'requests')} finishing (up to ${seconds} s). Press Ctrl-C again to stop at once; nothing is lost either way.\n`,
  );
}

/** Starts the run in the state that this command has read. Throws GUARD if it has moved since. */
async function startSeen({ ledger, redis }: Session, run: Run, by: By): Promise<void> {
  if (!(await startRun(ledger, run, by))) throw changedSince(await readRunAgain(redis, run.id), run, 'resumed');
}
