import { describe, expect, test } from 'vitest';
import { targetLimits, toSignal } from '../../../src/delete/target-limits.ts';
import { type Answer, makeVerdictTable, noContent, waitStatuses } from '../../../src/delete/verdict.ts';
import { Permits } from '../../../src/limiter/permits.ts';
import { TargetLimiter } from '../../../src/limiter/target-limiter.ts';
import { fixedToken } from '../../../src/token/fixed-token.ts';
import { unreadableWaitLogger } from '../../../src/worker/target-sender.ts';
import { givenToken, refusedConnection, sentRequest, status, timeout } from './tries.ts';

function answered(status: number, headers: Record<string, string> = {}): Answer {
  return { kind: 'status', status, headers, body: '', authorization: 'Bearer t' };
}

/** What the limiter is told of an answer in a run with these treatments. */
function toldOf(answer: Answer, onStatus = '', onUnreadableWait: (value: string) => void = () => {}): unknown[] {
  const told: unknown[] = [];
  const limiter = {
    permits: new Permits(),
    isReleased: () => false,
    throttleFor: (ms: number) => void told.push(`hold ${ms}`),
    observe: (_epoch: number, signal: string) => void told.push(signal),
  } as unknown as TargetLimiter;
  const limits = targetLimits(limiter, {
    token: fixedToken('t', 'test'),
    now: () => 0,
    onLongThrottle: () => {},
    onUnreadableWait,
  });
  limits.recordAnswer(
    { epoch: 0, wasClose: false, sentAt: 0 },
    answer,
    1,
    sentRequest({ waitStatuses: waitStatuses(makeVerdictTable(onStatus)) }),
  );
  return told;
}

test('a Retry-After that cannot be read is told, where an answer means "not now"', () => {
  const said = (status: number, value: string) => {
    const found: string[] = [];
    toldOf(answered(status, { 'retry-after': value }), '', (one) => void found.push(one));
    return found;
  };
  expect(said(429, 'in 5 minutes')).toEqual(['in 5 minutes']);
  expect(said(503, 'soon')).toEqual(['soon']);
  expect([said(429, '30'), said(404, 'soon')]).toEqual([[], []]);
});

test('a process logs the first Retry-After that cannot be read, and no other', () => {
  const told: unknown[] = [];
  const silent = () => {};
  const log = unreadableWaitLogger({
    debug: silent,
    info: silent,
    error: silent,
    warn: (facts: object, message: string) => void told.push([facts, message]),
  });
  log('2026-11-25T10:00:00Z');
  log('soon');
  const message = 'a Retry-After cannot be read and is ignored: expected seconds or a date';
  expect(told).toEqual([[{ retryAfter: '2026-11-25T10:00:00Z' }, message]]);
});

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

  test('throttles on a Retry-After of any answer that the run takes for a wait, and of a 4xx about its id', () => {
    const locked = answered(423, { 'retry-after': '7' });
    expect(toldOf(locked, '423=wait')).toEqual(['hold 7000', 'throttled']);
    expect(toldOf(locked)).toEqual(['hold 7000', 'throttled']);
    expect(toldOf(answered(404, { 'retry-after': '7' }))).toEqual(['accepted']);
  });
});

/** Limits that tell of each answer, with the words for it. An answer takes 30 ms. */
function openTelling({ isReleased = false } = {}) {
  const told: string[] = [];
  const limiter = {
    permits: new Permits(),
    isReleased: (epoch: number) => epoch === 7 && isReleased,
    throttleFor: (ms: number, why: string) => void told.push(`hold ${ms}: ${why}`),
    announce: ({ remaining, quota, resetMs }: Parameters<TargetLimiter['announce']>[0]) =>
      void told.push(`${remaining} of ${quota} left for ${resetMs}`),
    observe: (epoch: number, signal: string, ms: number, why: string) =>
      void told.push(`${epoch} ${signal} ${ms}: ${why}`),
  } as unknown as TargetLimiter;
  const token = givenToken({ accepted: () => void told.push('the token works') });
  let nowMs = 0;
  const limits = targetLimits(limiter, {
    token,
    now: () => nowMs,
    onLongThrottle: (why) => void told.push(`too long: ${why}`),
  });
  const request = sentRequest({ waitStatuses: new Set([429]) });
  const record = (answer: Answer) => limits.recordAnswer({ epoch: 7, wasClose: false, sentAt: 0 }, answer, 30, request);
  const passMs = (ms: number) => {
    nowMs += ms;
  };
  return { told, record, passMs };
}

/** Everything that is told of an answer. */
function allToldOf(answer: Answer, odd: { isReleased?: boolean } = {}): string[] {
  const { told, record } = openTelling(odd);
  record(answer);
  return told;
}

describe('an answer', () => {
  test.each<[string, Answer, string[]]>([
    ['that is good', answered(200), ['7 accepted 30: the API answers 200 to everything', 'the token works']],
    ['of 401', answered(401), ['7 nothing 30: the API answers 401 to everything']],
    ['that was lost', timeout, ['7 lost 30: the API gives no answers in time']],
    [
      'of a refused connection',
      refusedConnection,
      ['7 unreachable 30: the API cannot be reached (connection refused)'],
    ],
  ])('%s is told in words', (_, answer, told) => {
    expect(allToldOf(answer)).toEqual(told);
  });

  test('with a Retry-After is obeyed for what it says, rounded up in words', () => {
    expect(allToldOf(answered(429, { 'retry-after': '7' }))[0]).toBe(
      'hold 7000: the server answered 429 and sent Retry-After 7',
    );
    expect(allToldOf(answered(500, { 'retry-after': '7' }))[1]).toMatch(/^7 unavailable 30/);
    expect(allToldOf(answered(499, { 'retry-after': '7' }))).toHaveLength(2);
    expect(allToldOf(answered(429, { 'retry-after': '0' }))[1]).toMatch(/^7 refused 30/);
  });

  const usedUp = { 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': '12' };
  test.each<[what: string, Answer, held: string | null]>([
    ['a 429', answered(429, usedUp), 'hold 12000: the server answered 429 and said that its limit is reset in 12 s'],
    ['a 403', answered(403, usedUp), 'hold 12000: the server answered 403 and said that its limit is reset in 12 s'],
    [
      'a 429 with a Retry-After beside it',
      answered(429, { ...usedUp, 'retry-after': '3' }),
      'hold 3000: the server answered 429 and sent Retry-After 3',
    ],
    ['a 429 with something left', answered(429, { ...usedUp, 'x-ratelimit-remaining': '1' }), null],
    ['a 429 without a reset', answered(429, { 'x-ratelimit-remaining': '0' }), null],
    ['a 500', answered(500, usedUp), null],
    ['a 204', answered(204, usedUp), null],
  ])('that says that the limit is used up is waited for if it is a refusal: %s', (_, answer, held) => {
    expect(allToldOf(answer).filter((told) => told.startsWith('hold'))).toEqual(held === null ? [] : [held]);
  });

  test('that says that the limit is used up is not waited for once something was accepted before such a reset', () => {
    const { record, told, passMs } = openTelling();
    const held = () => told.filter((one) => one.startsWith('hold')).length;
    record(answered(429, usedUp));
    expect(held()).toBe(1);
    passMs(12_000);
    for (const answer of [noContent, answered(204)]) record(answer);
    record(answered(429, usedUp));
    expect(held()).toBe(2);
    passMs(1_000);
    record(noContent);
    record(answered(429, usedUp));
    expect(held()).toBe(2);
  });

  test('that asks for more than an hour is obeyed for an hour, and told of', () => {
    expect(allToldOf(answered(429, { 'retry-after': '3600' })).join()).not.toContain('too long');
    expect(allToldOf(answered(429, { 'retry-after': '3601' })).slice(0, 2)).toEqual([
      'hold 3600000: the server answered 429 and sent Retry-After 3601',
      'too long: the server answered 429 and sent Retry-After 3601',
    ]);
  });

  test('holds nothing where an operator has lifted the hold since it was sent', () => {
    expect(allToldOf(answered(429, { 'retry-after': '7' }), { isReleased: true })).toEqual([
      '7 refused 30: the API answers 429 to everything',
    ]);
    const empty = { 'x-ratelimit-limit': '10', 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': '60' };
    expect(allToldOf(answered(204, empty), { isReleased: true })).toHaveLength(2);
  });

  test('that says what is left of a limit is reported, and holds nothing by itself, not even where nothing is left', () => {
    const left = (remaining: string, reset: string) =>
      allToldOf(
        answered(204, { 'x-ratelimit-limit': '10', 'x-ratelimit-remaining': remaining, 'x-ratelimit-reset': reset }),
      );
    const rest = ['7 accepted 30: the API answers 204 to everything', 'the token works'];
    expect(left('6', '3')).toEqual(['6 of 10 left for 3000', ...rest]);
    expect(left('0', '1')).toEqual(['0 of 10 left for 1000', ...rest]);
  });
});

test('deleting sees the limiter as it stands, and a token that is waited for as a hold', () => {
  const calls: unknown[] = [];
  const state = {
    permits: new Permits(),
    inFlightShare: 3,
    isBlocked: false,
    throttledMs: 4,
    stopped: null as unknown,
    isCircuitOpen: true,
    known: null as { budget: number } | null,
    outageMs: (kind: string) => (kind === 'unreachable' ? 5 : 0),
    enter: () => void calls.push('enter'),
    leave: () => void calls.push('leave'),
    recordSent: (nowMs: number) => nowMs + 1,
  };
  const token = { ...givenToken(), waiting: '' };
  const limits = targetLimits(state as unknown as TargetLimiter, { token, now: () => 0, onLongThrottle: () => {} });
  expect(limits).toMatchObject({
    permits: state.permits,
    inFlightShare: 3,
    throttledMs: 4,
    isCircuitOpen: true,
    unreachableMs: 5,
  });
  expect([limits.isBlocked, limits.isStopped, limits.mayRetry, limits.recordSent(8, 'Bearer t')]).toEqual([
    false,
    false,
    true,
    9,
  ]);
  Object.assign(state, { isBlocked: true, stopped: {}, known: { budget: 0 } });
  expect([limits.isBlocked, limits.isStopped, limits.mayRetry]).toEqual([true, true, false]);
  Object.assign(state, { isBlocked: false, known: { budget: 1 } });
  token.waiting = 'the token is being fetched';
  expect([limits.isBlocked, limits.mayRetry]).toEqual([true, true]);
  limits.enter();
  limits.leave();
  expect(calls).toEqual(['enter', 'leave']);
});

describe('signal', () => {
  test.each([
    [204, 'accepted'],
    [404, 'accepted'],
    [401, 'nothing'],
    [408, 'trouble'],
    [429, 'refused'],
    [423, 'refused'],
    [499, 'accepted'],
    [500, 'trouble'],
    [501, 'accepted'],
    [505, 'accepted'],
    [599, 'trouble'],
  ])('a %i says of the target: %s', (code, signal) => {
    expect(toSignal(status(code), new Set([423]))).toBe(signal);
  });

  test('so do a plain success, a lost answer and a connection that was refused', () => {
    expect(toSignal(noContent, new Set([204]))).toBe('accepted');
    expect(toSignal(timeout, new Set())).toBe('lost');
    expect(toSignal(refusedConnection, new Set())).toBe('unreachable');
  });
});

test('an id that failed before and fails again says nothing about the target, unless it cannot be reached', () => {
  const limiter = openTargetLimiter();
  const failed = (answer: Answer) => recordOf(limiter, answer, true);
  for (let n = 0; n < 100; n++) for (const answer of [status(500), timeout]) failed(answer);
  expect(limiter.isCircuitOpen).toBe(false);
  for (let n = 0; n < 5; n++) failed(refusedConnection);
  expect(limiter.isCircuitOpen).toBe(true);
});

test('ids that fail for the first time do', () => {
  const limiter = openTargetLimiter();
  for (let n = 0; n < 20; n++) recordOf(limiter, status(500), false);
  expect(limiter.isCircuitOpen).toBe(true);
});

function recordOf(limiter: TargetLimiter, answer: Answer, hasFailed: boolean): void {
  const limits = targetLimits(limiter, {
    token: givenToken({ accepted: () => {} }),
    now: () => 0,
    onLongThrottle: () => {},
  });
  limits.recordAnswer({ epoch: 0, wasClose: false, sentAt: 0 }, answer, 1, sentRequest({ hasFailed }));
}

function openTargetLimiter(): TargetLimiter {
  return new TargetLimiter({
    run: '',
    calls: { call: () => Promise.reject(new Error('Redis is away')), store: async () => false },
    process: 'p',
    connections: 1,
    clock: () => 0,
    isBusy: () => false,
    stopHere: () => null,
    onChange: () => {},
  });
}
