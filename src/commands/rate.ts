import { ExpungeError, messageOf } from '../errors.ts';
import { isSealed, type Run } from '../ledger/run.ts';
import { parseRate, type Rate, rateSetting, rateText } from '../model/rate.ts';
import { type Invocation, jsonLines, reasonOf } from './command.ts';
import { findRun, type Session, sayOf, sayUnlessJson, whoAmI, withRedis } from './session.ts';

/** The rate and burst of a run. A rate of null is none of its own, a burst of null is the default. */
type Pace = { rate: Rate | null; burst: number | null };

/** Gives a live run another rate, from any machine, within a second. Throws USAGE for a run that has ended. Doing it twice changes nothing. */
export async function execute(invocation: Invocation): Promise<number> {
  const { args, env, options } = invocation;
  const wanted = readPace(args[1] ?? '', options.burst as number | undefined);
  return withRedis(invocation, sayUnlessJson(invocation), async (session) => {
    const run = await findRun(session, args[0]);
    const { state, before } = await change(session, run, wanted, { who: whoAmI(env), reason: reasonOf(options) });
    const now = { ...before, ...wanted };
    return sayChange(invocation, { run: run.id, state, ...jsonPace(now), before: jsonPace(before) });
  });
}

/** A change as `--json` prints it. */
export type RateChange = PaceFacts & { run: string; state: string; before: PaceFacts };
type PaceFacts = { rate: string | null; burst: number | null };

/** Says what was changed. Returns the exit code. */
export function sayChange(invocation: Invocation, change: RateChange): number {
  const { stderr, stdout, options } = invocation;
  stderr.write(`${changeText(change)}\n`);
  sayOf(invocation)(`  Follow it: expunge status ${change.run} --watch`);
  jsonLines(stdout, options.json)('rate', change);
  return 0;
}

/** A burst that is not given stays as it is; without a rate there is none. */
export function readPace(text: string, burst: number | undefined): Partial<Pace> & { rate: Rate | null } {
  if (text !== 'none') return { rate: readRate(text), ...(burst === undefined ? {} : { burst }) };
  if (burst === undefined) return { rate: null, burst: null };
  throw new ExpungeError('USAGE', '--burst needs a rate, and "none" is no rate');
}

function readRate(text: string): Rate {
  try {
    return parseRate(text);
  } catch (error) {
    throw new ExpungeError('USAGE', `${messageOf(error)}; "none" removes the rate`);
  }
}

async function change(session: Session, run: Run, wanted: Partial<Pace>, by: { who: string; reason: string }) {
  const order = { ...wanted, ...by, by: 'operator' as const };
  const { state, ...before } = await session.ledger.changeRate(run.id, Date.now(), order);
  if (state === 'missing') {
    throw new ExpungeError('USAGE', `run ${run.id} is no longer in Redis`, { next: 'expunge runs lists them' });
  }
  if (!isSealed(state)) return { state, before };
  throw new ExpungeError('USAGE', `run ${run.id} is ${state}: there is no rate to change`, {
    next: `see its status: expunge status ${run.id}`,
  });
}

function changeText({ run, before, ...now }: RateChange): string {
  const [was, is] = [paceText(before), paceText(now)];
  if (was === is) return `Run ${run} has that rate already: ${is}.`;
  return `Run ${run}: ${is}; before: ${was}. It takes effect within a second.`;
}

function paceText({ rate, burst }: PaceFacts): string {
  if (rate === null) return 'no rate of its own';
  return `${rateText(parseRate(rate))}${burst === null ? '' : `, in bursts of ${burst}`}`;
}

function jsonPace({ rate, burst }: Pace): PaceFacts {
  return { rate: rate && rateSetting(rate), burst };
}
