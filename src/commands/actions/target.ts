import { namedTarget } from '../../config/check-target.ts';
import { graceTime } from '../../config/parse-setting.ts';
import { ExpungeError, messageOf } from '../../errors.ts';
import { isLive, type KnownTarget } from '../../ledger/known-targets.ts';
import { parseRate } from '../../model/rate.ts';
import { nearestFirst } from '../../model/suggest.ts';
import type { Target } from '../../model/target.ts';
import type { Advice } from '../../model/to-type.ts';
import type { SeenTargetAction } from '../../operations/action.ts';
import type { TargetChange, TargetOperations } from '../../operations/operations.ts';
import { targetStatusFacts } from '../../operations/target-status.ts';
import { notReachedText, targetName } from '../../terminal/stop-text.ts';
import { type Invocation, jsonLines } from '../command.ts';
import { targetStatusLines, unknownTargetLines } from '../evidence/target-status.ts';
import { readBy, writeWarnings } from '../session.ts';
import { withOperations } from '../with-operations.ts';

/**
 * `target release`, `forget-rate`, `limit`, `grace` and `acknowledge`: from any machine, for all processes of the target, within a second.
 * Repeating them changes nothing.
 */
export async function execute(invocation: Invocation): Promise<number> {
  const { commandName, args, config } = invocation;
  const target = namedTarget(config);
  const isBound = bounds.includes(commandName);
  const act = actions[commandName]!(args[0] ?? ''); // a mistake costs no request
  return withOperations(invocation, 'targets', async (targets) => {
    const before = await targets.status(target);
    const mayBeNew = isBound || commandName === 'target acknowledge'; // Redis may have lost what it knew of the target
    if (before.limiter === null && !mayBeNew) throw unknownTarget(await targets.known(), commandName, target);
    const warnings = isBound
      ? await unknownTargetLines(before, `${commandName} ${args[0]}`, targets.known, invocation.toType)
      : [];
    const action = { target, by: readBy(invocation), seen: before.revision };
    return sayChanged(invocation, await act(targets, action), warnings);
  });
}

const bounds = ['target limit', 'target grace'];

/** Reports what was done, and the state of the target now. Returns the exit code. */
function sayChanged(
  { commandName, options, toType, stdout, stderr, verbosity }: Invocation,
  { status, isChanged }: TargetChange,
  warnings: readonly string[],
): number {
  const [done, nothing] = messages[commandName]!;
  const lines = [isChanged ? done : nothing, ...targetStatusLines(status, { toType, isQuiet: verbosity === 'quiet' })];
  stderr.write(`${targetName(status.target)}: ${lines.join('\n  ')}\n`);
  writeWarnings(stderr, warnings, toType);
  jsonLines(stdout, options.json)('target', { ...targetStatusFacts(status, toType), changed: isChanged });
  return 0;
}

type Act = (targets: TargetOperations, action: SeenTargetAction) => Promise<TargetChange>;

/** The action of each command, which reads its argument first; throws USAGE for a wrong one. */
const actions: Record<string, (text: string) => Act> = {
  'target release': () => (targets, action) => targets.release(action),
  'target forget-rate': () => (targets, action) => targets.forgetRate(action),
  'target limit': (text) => {
    const limit = readBound(text, parseRate, null);
    return (targets, action) => targets.setLimit({ ...action, limit });
  },
  'target grace': (text) => {
    const graceMs = readBound(text, graceTime, 0);
    return (targets, action) => targets.setMinGrace({ ...action, graceMs });
  },
  'target acknowledge': () => (targets, action) => targets.acknowledge(action),
};

/** The text for a change, and the text if nothing changed. */
const messages: Record<string, [string, string]> = {
  'target release': [
    'released; its processes continue within a second',
    'nothing to release: no wait and no open circuit',
  ],
  'target forget-rate': ['forgotten; the rate is probed for again', 'there was no rate to forget'],
  'target limit': ['changed; it takes effect within a second', 'unchanged'],
  'target grace': ['changed; it holds for runs that are made from now on', 'unchanged'],
  'target acknowledge': [
    'acknowledged; its workers are ready again within two seconds',
    'nothing to acknowledge: no data are known to be lost',
  ],
};

/** The value of a bound; `unset` for `none`. Throws USAGE. */
function readBound<T, N>(text: string, parse: (text: string) => T, unset: N): T | N {
  if (text === 'none') return unset;
  try {
    return parse(text);
  } catch (error) {
    throw new ExpungeError('USAGE', `${messageOf(error)}; "none" ends it`);
  }
}

/** Lists the live targets, one of which was most likely meant. */
function unknownTarget(known: readonly KnownTarget[], commandName: string, target: Target): ExpungeError {
  const live = nearestFirst(known.filter(isLive), target);
  const next: Advice = (toType) =>
    live.length > 0
      ? `these are live:\n${notReachedText(commandName, live, toType)}`
      : 'no target is live in this Redis';
  return new ExpungeError('USAGE', `nothing was ever sent to ${targetName(target)} through this Redis`, { next });
}
