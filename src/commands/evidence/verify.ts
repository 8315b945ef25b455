import { type ResendStop, type Resent, resendDeleted } from '../../delete/resend-deleted.ts';
import { ExpungeError, exitCodes } from '../../errors.ts';
import { count, plural } from '../../format.ts';
import { toInputOptions } from '../../input/input-options.ts';
import { readProtected, toProtectFile } from '../../input/read-protected.ts';
import { noteRunAction } from '../../ledger/audit.ts';
import type { Run } from '../../ledger/run.ts';
import { requireSameDefinitions } from '../../ledger/same-definitions.ts';
import { readAbsentAnswers } from '../../ledger/semantics.ts';
import { tallyIfFinalized } from '../../ledger/tally.ts';
import { describeVerification, storeVerification, verificationFacts } from '../../ledger/verification.ts';
import { logFor } from '../../logger.ts';
import { type DeletedId, sampleDeleted } from '../../lookup/sample-deleted.ts';
import type { Rate } from '../../model/rate.ts';
import { definitionOf, isHarmlessAgain, isNeverRepeated } from '../../model/resource.ts';
import type { Target } from '../../model/target.ts';
import { readTimeWindow, windowStateAt } from '../../model/time-window.ts';
import type { ToType } from '../../model/to-type.ts';
import type { Verification } from '../../model/verification.ts';
import { visibleLine } from '../../model/visible.ts';
import { targetOfRun } from '../../operations/retry-list.ts';
import { findRun, type Session, withRedis } from '../../operations/session.ts';
import { readClock } from '../../redis/client.ts';
import { keys } from '../../redis/keys.ts';
import { trackWrites } from '../../redis/writes.ts';
import { startProgress } from '../../terminal/live-panel.ts';
import { startToken } from '../../token/open-token.ts';
import { openTargetSender } from '../../worker/target-sender.ts';
import { type Invocation, jsonLines, readReason } from '../command.ts';
import { type Credentials, readCredentials, serviceOptions } from '../credentials.ts';
import { type Interrupts, listenForInterrupts } from '../interrupts.ts';
import { whyNotSent } from '../one-request.ts';
import { askCount, askHost, infoWriter, lineWriter, progressStream, whoAmI } from '../session.ts';

/**
 * Sends the DELETE of a random sample of the `deleted` ids of a run again, after a confirmation: all must be gone. Only this command sends an id
 * after its success. Stores the result with the run; repeating it draws another sample. Returns 0 only if every id of the sample was gone.
 */
export async function execute(invocation: Invocation): Promise<number> {
  return withRedis(invocation, infoWriter(invocation), async (session) => {
    const size = readSize(invocation);
    const run = await tallyIfFinalized(session.redis, await findRun(session, invocation.args[0]));
    const target = targetOfRun(invocation, run);
    const credentials = readCredentials(invocation);
    try {
      await refuseUninformativeTarget(session, run);
      await requireSendingAllowed(invocation, session, run, target);
      const drawn = await sampleDeleted(session.redis, run, { size, random: Math.random });
      const sample = await withoutProtected(invocation, drawn);
      if (sample.length === 0) throw nothingToSend(run, drawn.length);
      requireHarmless(sample);
      await confirm(invocation, run, sample.length);
      await requireSendingAllowed(invocation, session, run, target); // the confirmation may have taken long
      return await verifySample({ invocation, session, run, target, credentials, sample });
    } finally {
      await credentials.token.close();
    }
  });
}

/** The size of the sample. No number is right for every run, so there is no default. Throws USAGE without one. */
function readSize({ options }: Invocation): number {
  if (options.sample !== undefined) return options.sample;
  throw new ExpungeError('USAGE', 'expected a number of ids to send again, got none; nothing was sent', {
    next: 'add --sample 200',
  });
}

/** Throws GUARD unless a second DELETE of each of these objects, which the API confirmed, is known to do nothing more. */
function requireHarmless(sample: readonly DeletedId[]): void {
  const resource = sample.map((id) => id.resource).find((name) => !isHarmlessAgain(name));
  if (resource === undefined) return;
  if (isNeverRepeated(definitionOf(resource)))
    throw new ExpungeError(
      'GUARD',
      `a DELETE of ${resource} is never repeated, as its definition says; nothing was sent`,
      {
        next: 'ask whoever runs the API which objects are still there',
      },
    );
  const message =
    `nothing says that a second DELETE of ${resource} is harmless: some APIs deactivate an object at first, and delete it the second time; ` +
    'nothing was sent';
  throw new ExpungeError('GUARD', message, {
    next: `if it is harmless, say so in the definition of ${resource}: "repeat": "harmless"`,
  });
}

/** Throws USAGE if a second success would prove nothing, and GUARD if a resource of the run is defined in another way here. */
async function refuseUninformativeTarget({ redis }: Session, run: Run): Promise<void> {
  requireSameDefinitions(run.definitions, `run ${run.id}`);
  const [known] = await readAbsentAnswers(redis, run.fp);
  if (known === undefined) return;
  throw new ExpungeError('USAGE', `${known}, so sending ids again proves nothing; nothing was sent`, {
    next: (toType) =>
      `compare some deleted ids with the API itself; if it answers 404 by now: ${toType('check', '--semantics')}`,
  });
}

/** Throws GUARD while sending to the target is not allowed, or outside the window of the run. */
async function requireSendingAllowed(
  invocation: Invocation,
  session: Session,
  run: Run,
  target: Target,
): Promise<void> {
  const why = (await whyNotSent(invocation, session, target)) ?? (await whyOutside(session, run));
  if (why !== null) throw new ExpungeError('GUARD', `nothing was sent. ${why}`);
}

/** Why the run is outside its window, by the clock of Redis, as for a run; null if it is inside. */
async function whyOutside({ redis }: Session, { id, window }: Run): Promise<string | null> {
  if (window === '') return null;
  const read = readTimeWindow(window);
  const isOpen = read !== null && windowStateAt(read, await readClock(redis, keys.run(id))).isOpen;
  return isOpen ? null : `The run may send only ${window}`;
}

/** Leaves out ids that are protected: an id may have been protected since it was deleted. */
async function withoutProtected({ config }: Invocation, drawn: readonly DeletedId[]): Promise<DeletedId[]> {
  const file = toProtectFile(config);
  if (file === null) return [...drawn];
  const inSample = new Set(drawn.map(({ id }) => id));
  for await (const ids of readProtected(file, toInputOptions(config))) for (const id of ids) inSample.delete(id);
  return drawn.filter(({ id }) => inSample.has(id));
}

function nothingToSend({ id, state }: Run, drawn: number): ExpungeError {
  const why = drawn === 0 ? 'has no deleted id' : 'has only protected ids in this sample';
  return new ExpungeError('USAGE', `run ${id} is ${state} and ${why}; nothing was sent`, {
    next: (toType) => `see the outcomes of its ids: ${toType('status', id)}`,
  });
}

async function confirm(invocation: Invocation, run: Run, ids: number): Promise<void> {
  const { host } = new URL(run.baseUrl);
  const what = `${plural(ids, 'DELETEs')} of ids that run ${run.id} deleted on ${host}`;
  lineWriter(invocation.stderr)(
    `Sends ${count(ids)} of the ${plural(run.counts.deleted, 'ids')} again that run ${run.id} deleted on ${host}. Objects that still exist are deleted by this.`,
  );
  await askCount(invocation, ids, what, 'send');
  await askHost(invocation, run);
}

type Work = {
  invocation: Invocation;
  session: Session;
  run: Run;
  target: Target;
  credentials: Credentials;
  sample: readonly DeletedId[];
};

async function verifySample(work: Work): Promise<number> {
  const { invocation, session, run, credentials, sample } = work;
  const { redis } = session;
  const action = {
    at: Date.now(),
    by: 'operator',
    who: whoAmI(invocation.env),
    reason: readReason(invocation.options),
  } as const;
  await startToken(credentials.token, (waiting) => lineWriter(invocation.stderr)(`Waiting: ${visibleLine(waiting)}`));
  // This is written before the requests: after a crash it shows that they may have been sent.
  await noteRunAction(redis, run.id, { ...action, action: 'verify', sample: sample.length });
  const results = new Results(invocation, sample.length);
  const interrupts = listenForInterrupts(invocation, () => {});
  const stop = await sendAll(work, results, interrupts).finally(() => interrupts.dispose());
  const { gone, there, unclear } = results;
  const found: Verification = {
    at: action.at,
    who: action.who,
    sample: sample.length,
    of: run.counts.deleted,
    gone,
    there,
    unclear,
  };
  await storeVerification(redis, run.id, found);
  return tell(invocation, run, found, { stop, exit: exitOf(found, stop, interrupts) });
}

/** Sends the sample through the limiter of the target, so that its limit and other processes are taken into account. */
async function sendAll(work: Work, results: Results, { signal }: Interrupts): Promise<ResendStop | null> {
  const { invocation, session, run, target, credentials, sample } = work;
  const held = new AbortController();
  const clock = () => performance.now();
  const log = logFor(invocation, (line) => lineWriter(invocation.stderr)(`warning: ${line}`));
  const sender = openTargetSender(
    {
      ...serviceOptions(invocation, session, target, credentials),
      maxConcurrency,
      log,
    },
    {
      run: run.id,
      clock,
      writes: trackWrites(clock, () => {}),
      onChange() {},
      onLongThrottle: (reason) => held.abort(reason),
    },
  );
  const interrupted = () => held.abort('interrupted');
  if (signal.aborted) interrupted();
  signal.addEventListener('abort', interrupted, { once: true });
  credentials.token.onChange(() => sender.pump());
  sender.start();
  const progress = startProgress(progressStream(invocation), invocation.env, () => results.progress());
  try {
    return await resendDeleted(sample, {
      sender,
      token: credentials.token,
      basePath: new URL(target.baseUrl).pathname.replace(/\/$/, ''),
      gapMs: gapFor(run.rate, sample.length),
      signal: held.signal,
      holdWords: () => sender.hold?.reason ?? 'stopped',
      found: (id, resent) => results.add(run, id, resent),
    });
  } finally {
    progress.stop();
    signal.removeEventListener('abort', interrupted);
    await sender.close();
  }
}

const maxConcurrency = 4; // a sample is small, and other runs continue

/** The time between two requests at which so many keep a rate, with each quota that they could exceed. */
function gapFor(rate: Rate | null, requests: number): number {
  const kept = (rate ?? []).filter(({ count }, i) => i === 0 || count < requests);
  return Math.max(0, ...kept.map(({ count, perMs }) => perMs / count));
}

/** Counts results, and shows those that need attention as they come. */
class Results {
  readonly #invocation: Invocation;
  readonly #all: number;
  gone = 0;
  there = 0;
  unclear = 0;

  constructor(invocation: Invocation, all: number) {
    this.#invocation = invocation;
    this.#all = all;
  }

  add({ id: run, files }: Run, { resource, id, file, line }: DeletedId, { found, words }: Resent): void {
    this[found] += 1;
    if (found === 'gone') return;
    const { stdout, options } = this.#invocation;
    const place = `${files[file] ?? ''}:${line}`;
    const facts = { run, resource, id, file: files[file], line, found, answer: words };
    if (options.json) jsonLines(stdout, true)('not_verified', facts);
    else
      stdout.write(
        `${found === 'there' ? 'was there' : 'unclear  '}  ${visibleLine(`${resource} ${id} (${place}): ${words}`)}\n`,
      );
  }

  progress(): string {
    return `Sent ${count(this.gone + this.there + this.unclear)} of ${count(this.#all)} again`;
  }
}

function exitOf({ there, unclear }: Verification, stop: ResendStop | null, interrupts: Interrupts): number {
  if (stop === null) return there + unclear === 0 ? exitCodes.OK.exit : exitCodes.INCOMPLETE.exit;
  if (stop.why === 'stopped') return interrupts.exit() ?? exitCodes.GUARD.exit;
  return (stop.why === 'credentials' ? exitCodes.CREDENTIALS : exitCodes.UNREACHABLE).exit;
}

type End = { stop: ResendStop | null; exit: number };

function tell(invocation: Invocation, run: Run, found: Verification, { stop, exit }: End): number {
  const { stdout, stderr, options, verbosity } = invocation;
  if (options.json)
    jsonLines(stdout, true)('verified', {
      run: run.id,
      ...verificationFacts(found),
      stopped: stop?.words ?? null,
      exit,
    });
  else stdout.write(`Run ${run.id}: ${describeVerification(found)}\n`);
  if (stop !== null)
    stderr.write(`Stopped early: ${visibleLine(stop.words)}. The other ids of the sample were not sent.\n`);
  if (found.there > 0 && verbosity !== 'quiet') stderr.write(`  ${whatNow(found, invocation.toType)}\n`);
  return exit;
}

function whatNow({ gone, there }: Verification, toType: ToType): string {
  if (gone === 0)
    return `If this API answers with a success for anything, that proves nothing. To find out: ${toType('check', '--semantics')}`;
  const share = Math.round((100 * there) / (gone + there));
  return `About ${Math.max(1, share)} % of the deleted ids may still be there: ask whoever runs the API; run the list again with --expect-absent.`;
}
