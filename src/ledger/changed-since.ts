import { ExpungeError } from '../errors.ts';
import { stateText } from '../format.ts';
import type { Run } from './run.ts';
import { findRule, isSameRule, ruleNames, ruleText } from './run-rules.ts';

/**
 * Refuses an action whose run has changed since it was shown. Names the present state, and the differences if the run that was shown is known.
 * `undone`: `resumed`, `removed`. Pure.
 */
export function changedSince(now: Run, seen: Run | null, undone: string): ExpungeError {
  const differences = seen === null ? [] : differencesOf(seen, now);
  const words = differences.length === 0 ? [`it is ${textOf(now)}`] : differences;
  return new ExpungeError(
    'GUARD',
    `run ${now.id} has changed since it was shown: ${words.join('; ')}; nothing was ${undone}`,
    { next: (toType) => `look at it, then repeat the action: ${toType('status', now.id, '--audit')}` },
  );
}

function differencesOf(seen: Run, now: Run): string[] {
  const [was, is] = [textOf(seen), textOf(now)];
  const state = was === is ? [] : [`it was ${was}, and is ${is}`];
  const rules = ruleNames
    .filter((name) => !isSameRule(name, seen, now))
    .map((name) => `--${findRule(name).flag} was ${ruleText(seen, name)}, and is ${ruleText(now, name)}`);
  const pauses = now.pauses
    .filter(({ id }) => !seen.pauses.some((pause) => pause.id === id))
    .map(({ who }) => `${who} has paused it`);
  return [...state, ...rules, ...pauses];
}

function textOf({ state, who, reason }: Run): string {
  return stateText(state, who, reason);
}
