import { describe, expect, test } from 'vitest';
import { targetLimits } from '../../../src/delete/target-limits.ts';
import { type Answer, verdictsWith, waitStatuses } from '../../../src/delete/verdict.ts';
import type { TargetLimiter } from '../../../src/limiter/target-limiter.ts';
import { fixedToken } from '../../../src/token/fixed-token.ts';

function answered(status: number, headers: Record<string, string> = {}): Answer {
  return { kind: 'status', status, headers, body: '', authorization: 'Bearer t' };
}

/** What the limiter is told of an answer in a run with these treatments. */
function toldOf(answer: Answer, onStatus = ''): unknown[] {
  const told: unknown[] = [];
  const limiter = {
    isReleased: () => false,
    throttleFor: (ms: number) => void told.push(`hold ${ms}`),
    observe: (_epoch: number, signal: string) => void told.push(signal),
  } as unknown as TargetLimiter;
  const limits = targetLimits(limiter, { token: fixedToken('t', 'test'), now: () => 0, onLongThrottle: () => {} });
  limits.recordAnswer(0, answer, 1, waitStatuses(verdictsWith(onStatus)));
  return told;
}

describe('what is reported to the limiter', () => {
  test.each([
    [429, '', 'refused'],
    [429, '429=halt', 'refused'],
    [423, '', 'accepted'],
    [423, '423=retry', 'accepted'],
    [423, '423=wait', 'refused'],
    [403, '403=wait,423=retry', 'refused'],
    [503, '', 'trouble'],
    [503, '503=wait', 'refused'],
  ])('of a %i with --on-status "%s" is %s', (status, onStatus, signal) => {
    expect(toldOf(answered(status), onStatus)).toEqual([signal]);
  });

  test('throttles on a Retry-After of any answer that the run takes for a wait', () => {
    const locked = answered(423, { 'retry-after': '7' });
    expect(toldOf(locked, '423=wait')).toEqual(['hold 7000', 'throttled']);
    expect(toldOf(locked)).toEqual(['accepted']);
  });
});
