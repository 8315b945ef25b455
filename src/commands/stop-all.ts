import { namedTarget } from '../guard/check-target.ts';
import { startTarget, stopTarget } from '../ledger/stop-target.ts';
import type { Target } from '../ledger/target.ts';
import { readStops, type Stop } from '../limiter/stop.ts';
import { shellWord } from '../terminal/shell-word.ts';
import { plainLine } from '../terminal/style.ts';
import { duration, timeOfDay } from '../terminal/words.ts';
import type { Invocation } from './command.ts';
import { jsonLines } from './json-lines.ts';
import { reasonOf } from './reason-of.ts';
import { sayOn, whoAmI, withRedis } from './session.ts';

/** stop-all and start-all: for all runs of a target, from any machine, within a second. Doing it twice changes nothing. */
export async function execute(invocation: Invocation): Promise<number> {
  const { verb, config, options, stdout, stderr } = invocation;
  const target = namedTarget(config);
  return withRedis(invocation, options.json ? () => {} : sayOn(stderr), async ({ redis }) => {
    const order = { who: whoAmI(), reason: reasonOf(options), at: Date.now() };
    const change = verb === 'stop-all' ? stopTarget : startTarget;
    const before = await change(redis, target.fp, order);
    const { target: stop, processes } = await readStops(redis, target.fp);
    const text = verb === 'stop-all' ? stoppedText(target, before) : startedText(target, before, processes);
    stderr.write(`${text}\n`);
    jsonLines(stdout, options.json)(verb, { target: target.baseUrl, account: target.account, stop, before });
    return 0;
  });
}

function stoppedText(target: Target, before: Stop | null): string {
  const next = `Go on: expunge start-all --base-url ${target.baseUrl}${accountFlag(target)}`;
  if (before === null)
    return `Stopped all runs of ${target.baseUrl}. Within a second nothing is sent any more.\n  ${next}`;
  const since = timeOfDay(before.at, Date.now());
  return `All runs of ${target.baseUrl} are stopped already, ${byWhom(before)}, since ${since}.\n  ${next}`;
}

function startedText({ baseUrl }: Target, before: Stop | null, files: readonly Stop[]): string {
  const held = files.map((stop) => `\nwarning: one process stays stopped ${byWhom(stop)}`).join('');
  if (before === null) return `Nobody had stopped the runs of ${baseUrl}.${held}`;
  const ago = duration(Math.max(0, Date.now() - before.at));
  return `The runs of ${baseUrl} go on, after ${ago}; they were stopped ${byWhom(before)}.${held}`;
}

function byWhom({ who, reason }: Stop): string {
  return plainLine(`by ${who}${reason ? `: ${reason}` : ''}`);
}

function accountFlag({ account }: Target): string {
  return account ? ` --account ${shellWord(account)}` : '';
}
