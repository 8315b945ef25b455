import { describe, expect, test } from 'vitest';
import {
  backoffMs,
  type DeleteIdDeps,
  deleteId,
  maxAttempts,
  retryDelayMs,
  toExcerpt,
  waitDelayMs,
} from '../../../src/delete/delete-id.ts';
import { type Answer, makeVerdictTable } from '../../../src/delete/verdict.ts';
import {
  type Cell,
  countAttempts,
  isDoubtful,
  isSettled,
  mark,
  readCell,
  unmark,
  untouched,
} from '../../../src/ledger/cell.ts';
import { givenToken, openLimits, refusedConnection, status, timeout, triesWith } from './tries.ts';

/** A marked cell of an id that had so many attempts before. */
function markedAfter(attempts: number, ambiguous = false): Cell {
  return mark(attempts === 0 ? untouched : unmark(mark(untouched), attempts, ambiguous));
}

/** An end as a test reads it: `deleted http_204 ×1`, or of an open id its attempts and whether it is doubtful. */
function told(cell: Cell): string {
  if (!isSettled(cell)) return `open ×${countAttempts(cell)}${isDoubtful(cell) ? ', doubtful' : ''}`;
  const { outcome, code, attempts } = readCell(cell);
  return `${outcome} ${code} ×${attempts}`;
}

async function endOf(marked: Cell, answers: readonly [Answer, ...Answer[]], odd: Partial<DeleteIdDeps> = {}) {
  const [first, ...further] = answers;
  const { tries, told: heard } = triesWith(further, odd);
  const { cell, mayResend: again, waitMs } = await deleteId(marked, first, tries);
  return { end: told(cell), cell, again, waitMs, ...heard };
}

test('an id that is refused again and again is judged by what was accepted since it was first refused', async () => {
  const seen: (number | undefined)[] = [];
  let accepted = 0;
  const refusals = {
    get moment() {
      return { accepted: accepted++, at: 0 };
    },
    haltOf: () => ({ code: 'all_absent', reason: '' }) as const,
  };
  const judge: DeleteIdDeps['judge'] = async ({ before }) => {
    seen.push(before?.accepted);
    return seen.length === 1 ? 'ask again' : seen.length === 2 ? 'ask later' : 'believed';
  };
  const { end } = await endOf(markedAfter(0), [status(404), status(404), status(404)], { refusals, judge });
  expect([end, seen]).toEqual(['absent http_404 ×1', [undefined, 0, 0]]);
});

describe('the answers of an id decide', () => {
  test.each<[name: string, answers: [Answer, ...Answer[]], end: string, retried: string[]]>([
    ['a 204', [status(204)], 'deleted http_204 ×1', []],
    ['a 404', [status(404)], 'absent http_404 ×1', []],
    ['a 400', [status(400)], 'failed http_400 ×1', []],
    ['a 200, which is no success', [status(200)], 'unknown http_200 ×1', []],
    ['a 503 and a 204', [status(503), status(204)], 'deleted http_204 ×2', ['status']],
    [
      'a 503, which may have been executed, and a 404',
      [status(503), status(404)],
      'gone_unconfirmed http_404 ×2',
      ['status'],
    ],
    ['a 409, which was not executed, and a 404', [status(409), status(404)], 'absent http_404 ×2', ['status']],
    ['no answer and a 404', [timeout, status(404)], 'gone_unconfirmed http_404 ×2', ['timeout']],
    ['no answer and a 400', [timeout, status(400)], 'unknown http_400 ×2', ['timeout']],
    ['two 409 and a 400', [status(409), status(409), status(400)], 'failed http_400 ×3', ['status', 'status']],
  ])('%s', async (_, answers, end, retried) => {
    const found = await endOf(markedAfter(0), answers);
    expect(found).toMatchObject({ end, retried, again: false, waitMs: 0, sent: answers.length - 1, halts: [] });
  });

  test('of an id that was doubtful before, a 404 is gone_unconfirmed and a 400 unknown', async () => {
    expect(await endOf(markedAfter(1, true), [status(404)])).toMatchObject({ end: 'gone_unconfirmed http_404 ×2' });
    expect(await endOf(markedAfter(1, true), [status(400)])).toMatchObject({ end: 'unknown http_400 ×2' });
  });
});

describe('quick tries', () => {
  test('are three, after waits with full jitter, and then the id waits for a later pass', async () => {
    const found = await endOf(markedAfter(0), [status(409), status(409), status(409), status(204)]);
    expect(found).toMatchObject({ end: 'open ×3', again: false, waitMs: 0, sent: 2, waits: [400, 800] });
    expect(found.retried).toEqual(['status', 'status', 'status']);
  });

  test('wait for a share of the longest wait that chance decides', async () => {
    const found = await endOf(markedAfter(0), [status(409), status(204)], { random: () => 0.25 });
    expect(found.waits).toEqual([100]);
  });

  test('count those of earlier passes: a later pass has one', async () => {
    expect(await endOf(markedAfter(3), [status(409), status(204)])).toMatchObject({
      end: 'open ×4',
      sent: 0,
      waits: [],
    });
    expect(await endOf(markedAfter(2), [status(409), status(204)])).toMatchObject({
      end: 'open ×3',
      sent: 0,
      waits: [],
    });
    expect(await endOf(markedAfter(1), [status(409), status(204)])).toMatchObject({ end: 'deleted http_204 ×3' });
  });

  test('are left for a later pass where much of the target fails', async () => {
    const limits = openLimits({ mayRetry: false });
    const found = await endOf(markedAfter(0), [status(503), status(204)], { limits });
    expect(found).toMatchObject({ end: 'open ×1, doubtful', again: false, sent: 0, waits: [] });
  });

  test('end when the pass does, with what is known of the id', async () => {
    const found = await endOf(markedAfter(0), [timeout, status(204)], { wait: async () => false });
    expect(found).toMatchObject({ end: 'open ×1, doubtful', again: false, waitMs: 0, sent: 0 });
  });

  test('leave the id to be sent again when nothing may leave any more', async () => {
    const found = await endOf(markedAfter(0), [timeout]);
    expect(found).toMatchObject({ end: 'open ×1, doubtful', again: true, waitMs: 0, sent: 1 });
  });
});

describe('the last attempt', () => {
  test.each<[name: string, marked: Cell, answer: Answer, end: string]>([
    ['of an id that was never executed settles it as failed', markedAfter(4), status(409), 'failed http_409 ×5'],
    ['that may have been executed settles it as unknown', markedAfter(4), status(503), 'unknown http_503 ×5'],
    ['without an answer settles it as unknown', markedAfter(4), timeout, 'unknown timeout ×5'],
    ['of a doubtful id settles it as unknown', markedAfter(4, true), status(409), 'unknown http_409 ×5'],
    ['but one leaves it open', markedAfter(3), status(409), 'open ×4'],
  ])('%s', async (_, marked, answer, end) => {
    expect(await endOf(marked, [answer])).toMatchObject({ end, again: false, waitMs: 0, sent: 0 });
  });

  test('is not told as one after which the id is sent again', async () => {
    expect(await endOf(markedAfter(3), [status(409)])).toMatchObject({ retried: ['status'] });
    expect(await endOf(markedAfter(4), [status(409)])).toMatchObject({ retried: [] });
  });

  test('is the third where there are no later passes', async () => {
    const found = await endOf(markedAfter(0), [status(409), status(409), status(409)], { retryDelaysMs: [] });
    expect(found).toMatchObject({ end: 'failed http_409 ×3', retried: ['status', 'status'] });
  });
});

describe('no attempt is used', () => {
  test('by a 429: the id goes again with the next permit', async () => {
    const found = await endOf(markedAfter(1), [status(429)]);
    expect(found).toMatchObject({ end: 'open ×1', again: true, waitMs: 0, retried: ['throttled'], sent: 0 });
  });

  test('by another status that means "not now": the id waits longer each time it was sent', async () => {
    const verdicts = makeVerdictTable('423=wait');
    const waitOf = async (marked: Cell) => (await endOf(marked, [status(423)], { verdicts })).waitMs;
    const [once, twice] = [mark(untouched), mark(unmark(mark(untouched), 0, false))];
    expect(await waitOf(once)).toBe(5_000);
    expect(await waitOf(twice)).toBe(30_000);
    expect(await waitOf(mark(unmark(twice, 0, false)))).toBe(30_000);
    const found = await endOf(once, [status(423)], { verdicts });
    expect(found).toMatchObject({ end: 'open ×0', again: false, retried: ['throttled'] });
  });

  test('by a wait that may have been executed: the id is doubtful from then on', async () => {
    const verdicts = makeVerdictTable('503=wait');
    expect(await endOf(markedAfter(0), [status(503)], { verdicts })).toMatchObject({ end: 'open ×0, doubtful' });
  });

  test('by an outage of the target, though the id stays doubtful', async () => {
    const found = await endOf(markedAfter(1), [timeout], { limits: openLimits({ isCircuitOpen: true }) });
    expect(found).toMatchObject({ end: 'open ×1, doubtful', again: true, retried: ['outage'], sent: 0 });
  });

  test('by a refused token: the id goes again, with another one', async () => {
    const refused: string[] = [];
    const token = givenToken({
      refused: (header) => {
        refused.push(header);
        return 'again';
      },
    });
    const found = await endOf(markedAfter(1), [status(401)], { token });
    expect(found).toMatchObject({ end: 'open ×1', again: true, waitMs: 0, retried: ['credentials'], halts: [] });
    expect(refused).toEqual(['Bearer t']);
  });

  test('by one server that refuses a token which others take: the id goes again, each time a little later', async () => {
    const token = givenToken({ refused: () => 'elsewhere' });
    const sentTimes = (times: number) => {
      let cell = markedAfter(0);
      for (let n = 1; n < times; n++) cell = mark(unmark(cell, 0, false));
      return endOf(cell, [status(401), status(401), status(401), status(204)], { token });
    };
    const retried = Array(3).fill('credentials');
    expect(await sentTimes(3)).toMatchObject({ end: 'open ×0', again: true, waitMs: 0, waits: [400, 800], retried });
    expect(await sentTimes(4)).toMatchObject({ end: 'open ×0', again: false, waitMs: 400, halts: [] });
    expect(await sentTimes(20)).toMatchObject({ end: 'open ×0', again: false, waitMs: 10_000, halts: [] });
  });

  test('by a token that is refused for this id alone, until it has failed', async () => {
    const asked: string[] = [];
    const token = givenToken({
      refused: (header) => {
        asked.push(header);
        return 'again';
      },
    });
    const refusedTimes = (times: number, marked = markedAfter(1)) =>
      endOf(marked, [status(401)], { token, noteRefusal: async () => times });
    expect(await refusedTimes(3)).toMatchObject({
      end: 'open ×1',
      again: false,
      waitMs: 1_600,
      retried: ['credentials'],
    });
    expect(await refusedTimes(7)).toMatchObject({ end: 'open ×1', again: false, waitMs: 10_000 });
    expect(await refusedTimes(8)).toMatchObject({ end: 'failed http_401 ×8', again: false, waitMs: 0, retried: [] });
    expect(await refusedTimes(8, markedAfter(1, true))).toMatchObject({ end: 'unknown http_401 ×8' });
    expect(asked).toEqual([]); // the token is not blamed
    expect(await refusedTimes(0)).toMatchObject({ end: 'open ×1', again: true });
    expect(asked).toEqual(['Bearer t']);
  });

  test('by a token that is refused for good, which halts the run', async () => {
    const token = givenToken({ refused: () => ({ halt: 'the API refused the token' }) });
    const found = await endOf(markedAfter(0), [status(401)], { token });
    expect(found).toMatchObject({ end: 'open ×0', again: true, retried: [] });
    expect(found.halts).toEqual(['credentials: the API refused the token']);
  });

  test('by an unreachable target, which halts the run when patience is over', async () => {
    const unreachableFor = (unreachableMs: number) =>
      endOf(markedAfter(0), [refusedConnection], { limits: openLimits({ unreachableMs }) });
    expect(await unreachableFor(60_000)).toMatchObject({
      end: 'open ×0',
      again: true,
      retried: ['unreachable'],
      halts: [],
    });
    expect(await unreachableFor(60_001)).toMatchObject({
      end: 'open ×0',
      again: true,
      retried: ['unreachable'],
      halts: ['target_unreachable: the API cannot be reached: connection refused'],
    });
  });

  test('by a status that halts the run, though one that may have been executed leaves the id doubtful', async () => {
    expect(await endOf(markedAfter(0), [status(402)])).toMatchObject({
      end: 'open ×0',
      again: true,
      retried: [],
      halts: ['halting_status: the API answered 402, which stops a run at the first: v-7'],
    });
    const answered = { ...status(402), body: 'pay up\nnow' } as Answer;
    expect((await endOf(markedAfter(0), [answered])).halts).toEqual([
      'halting_status: the API answered 402, which stops a run at the first: v-7, answered "pay up now"',
    ]);
    const verdicts = makeVerdictTable('503=halt');
    expect(await endOf(markedAfter(0), [status(503)], { verdicts })).toMatchObject({ end: 'open ×0, doubtful' });
  });
});

test('a bug in the tries is not taken for an answer', async () => {
  const broken = { send: () => Promise.reject(new RangeError('a bug')) };
  await expect(endOf(markedAfter(0), [status(409)], broken)).rejects.toThrow('a bug');
});

test('a mark is taken back with the end of the tries: an open id has no request on its way', async () => {
  const { cell } = await endOf(markedAfter(0), [status(409), status(409), status(409)]);
  expect((cell >> 4) & 255).toBe(2);
});

describe('backoff', () => {
  const delays = [5_000, 30_000, 120_000];

  test.each([
    [1, 1, 400],
    [2, 1, 800],
    [2, 0.5, 400],
    [5, 1, 6_400],
    [6, 1, 10_000],
    [60, 1, 10_000],
    [3, 0, 0],
  ])('quick try %i + 1 with chance %d comes after %d ms', (attempt, random, ms) => {
    expect(backoffMs(attempt, random)).toBe(ms);
  });

  test('an id has three quick tries and one for each delay', () => {
    expect(maxAttempts([])).toBe(3);
    expect(maxAttempts(delays)).toBe(6);
  });

  test.each([
    ['none', 0, 0],
    ['one of the quick tries', 1, 5_000],
    ['all quick tries', 3, 5_000],
    ['one later pass', 4, 30_000],
    ['two later passes', 5, 120_000],
    ['more than there are', 6, 0],
  ])('after %s an id is due again when its delay is over', (_, attempts, ms) => {
    expect(retryDelayMs(attempts, delays)).toBe(ms);
  });

  test.each([
    [1, 5_000],
    [2, 30_000],
    [3, 120_000],
    [4, 120_000],
  ])('an id that was told %i times to wait does so', (times, ms) => {
    expect(waitDelayMs(times, delays)).toBe(ms);
  });

  test('without delays nothing waits', () => {
    expect(retryDelayMs(3, [])).toBe(0);
    expect(waitDelayMs(1, [])).toBe(0);
  });
});

describe('excerpt', () => {
  function said(body: string, headers: Record<string, string | string[]> = {}, authorization = 'Bearer secret-1') {
    return toExcerpt({ kind: 'status', status: 400, headers, body, authorization });
  }

  test('begins with the request id, by which the people of the API find it', () => {
    expect(said('no', { 'x-request-id': 'r-1' })).toBe('[r-1] no');
    expect(said('no', { 'x-correlation-id': 'c-1' })).toBe('[c-1] no');
    expect(said('no', { 'x-amzn-requestid': 'a-1' })).toBe('[a-1] no');
    expect(said('no', { 'cf-ray': 'f-1', 'x-correlation-id': 'c-1' })).toBe('[c-1] no');
    expect(said('no', { server: 'x' })).toBe('no');
  });

  test('has 200 characters at most, the request id among them', () => {
    expect(said('x'.repeat(300), { 'cf-ray': 'f' })).toBe(`[f] ${'x'.repeat(196)}`);
  });

  test('never shows a token: not the one that was sent, nor what looks like one', () => {
    expect(said('bad secret-1, and secret-1 again')).toBe('bad ***, and *** again');
    expect(said('got BEARER abc.def and bearer  xyz!')).toBe('got Bearer *** and Bearer ***');
    expect(said('got nothing', {}, '')).toBe('got nothing');
    // A token that is sent without a scheme is echoed without one, by programs that encode it in their own way.
    const echoes = ['k/1+2==', 'k\\/1+2==', 'k%2F1%2B2%3D%3D'].map((form) =>
      said(`{"x-api-key":"${form}"}`, {}, 'Bearer k/1+2=='),
    );
    expect(new Set(echoes)).toEqual(new Set(['{"x-api-key":"***"}']));
  });

  test('is one line of printable characters', () => {
    expect(said('  a\r\n\tb\u0000\u001b[31mc  ')).toBe('a b [31mc');
  });

  test('says what became of the connection where there was no answer', () => {
    expect(toExcerpt({ kind: 'not-sent', why: 'ECONNREFUSED' })).toBe('connection refused');
    expect(toExcerpt({ kind: 'maybe-sent', code: 'timeout', why: 'no answer in time' })).toBe('no answer in time');
  });
});
