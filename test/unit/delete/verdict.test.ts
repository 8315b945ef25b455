import fc from 'fast-check';
import { describe, expect, it, test } from 'vitest';
import { type Answer, makeVerdictTable, verdictOf, verdictTable } from '../../../src/delete/verdict.ts';
import { formatOnStatus, parseOnStatus } from '../../../src/model/on-status.ts';
import { type StatusAction, statusActions } from '../../../src/model/status.ts';

function answered(status: number, headers: Record<string, string> = {}): Answer & { kind: 'status' } {
  return { kind: 'status', status, headers, body: '', authorization: 'Bearer t' };
}

/** A verdict in a word or two: `failed`, `retry!` (may have been executed), `wait`, `halt forbidden`. */
function wordOf(answer: Answer, doubtful: boolean, table = verdictTable): string {
  const verdict = verdictOf(answer, doubtful, table);
  if (verdict.kind === 'settle') return verdict.outcome;
  const ambiguous = 'ambiguous' in verdict && verdict.ambiguous ? '!' : '';
  return verdict.kind === 'halt' ? `halt ${verdict.halt}${ambiguous}` : verdict.kind + ambiguous;
}

const range = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, i) => from + i);
const special = [204, 401, 402, 404, 406, 407, 408, 409, 410, 421, 423, 425, 429, 451, 501, 505];
const others = (from: number, to: number) => range(from, to).filter((status) => !special.includes(status));

const expected: [statuses: number[], fresh: string, doubtful: string][] = [
  [[204], 'deleted', 'deleted'],
  [[...others(200, 399), 406], 'unknown', 'unknown'],
  [[401], 'credentials', 'credentials'],
  [[402, 407, 451], 'halt halting_status', 'halt halting_status'],
  [[404, 410], 'absent', 'gone_unconfirmed'],
  [[408], 'retry!', 'retry!'],
  [[409, 421, 423, 425], 'retry', 'retry'],
  [[429], 'wait', 'wait'],
  [others(400, 499), 'failed', 'unknown'],
  [[501, 505], 'failed', 'unknown'],
  [others(500, 599), 'retry!', 'retry!'],
  [[600, 999], 'retry!', 'retry!'],
];

describe('an answer', () => {
  test.each(expected)('with status %j means %s, after doubt %s', (statuses, fresh, doubtful) => {
    for (const status of statuses) {
      expect([status, wordOf(answered(status), false), wordOf(answered(status), true)]).toEqual([
        status,
        fresh,
        doubtful,
      ]);
    }
  });

  /** @invariant one-verdict: Every status has a verdict, and only a 204 is `deleted`. */
  test('is told for every status there is', () => {
    expect(expected.flatMap(([statuses]) => statuses).filter((status) => status < 600)).toHaveLength(400);
  });

  test('that never came may have been executed; a request that never left was not', () => {
    expect(wordOf({ kind: 'maybe-sent', code: 'timeout', why: 'no answer in time' }, false)).toBe('retry!');
    expect(wordOf({ kind: 'not-sent', why: 'ECONNREFUSED' }, false)).toBe('unreachable');
    expect(wordOf({ kind: 'not-sent', why: 'CERT_HAS_EXPIRED' }, false)).toBe('halt target_configuration');
    expect(wordOf({ kind: 'not-sent', why: 'ENOTFOUND' }, true)).toBe('halt target_configuration');
  });

  it.each([
    ['Bearer realm="x", error="insufficient_scope", scope="delete"', 'halt forbidden'],
    ['Bearer error=insufficient_scope', 'halt forbidden'],
    ['Bearer error="invalid_token"', 'credentials'],
    ['Bearer error_description="no insufficient_scope here"', 'failed'],
  ])('403 with WWW-Authenticate %s means %s', (header, means) => {
    expect(wordOf(answered(403, { 'www-authenticate': header }), false)).toBe(means);
  });
});

describe('an answer that was cut off', () => {
  /** @invariant one-verdict */
  it('settles no id, whatever its status, and leaves it in doubt', () => {
    for (const table of [verdictTable, makeVerdictTable('409=absent', { success: [200], absent: [404] })]) {
      for (const status of range(200, 999)) {
        const cutOff: Answer = { ...answered(status), isCutOff: true };
        const isAboutAll = status !== 204 && ['credentials', 'wait'].includes(wordOf(answered(status), false, table));
        const halts = wordOf(answered(status), false, table).startsWith('halt');
        for (const doubtful of [false, true]) {
          const means = wordOf(cutOff, doubtful, table);
          if (isAboutAll || halts) expect(means).toMatch(/^(credentials|wait!|halt \w+!)$/);
          else expect([status, means]).toEqual([status, 'retry!']);
        }
      }
    }
  });
});

describe('--on-status', () => {
  const headers = { 'www-authenticate': 'Bearer error="insufficient_scope"' };

  it.each([
    ['404=failed', 404, 'failed', 'unknown'],
    ['404=retry', 404, 'retry', 'retry'],
    ['409=retry', 409, 'retry', 'retry'],
    ['409=absent', 409, 'absent', 'gone_unconfirmed'],
    ['409=wait', 409, 'wait', 'wait'],
    ['202=retry', 202, 'retry!', 'retry!'],
    ['200=failed', 200, 'failed', 'unknown'],
    ['303=failed', 303, 'failed', 'unknown'],
    ['303=retry', 303, 'retry!', 'retry!'],
    ['406=retry', 406, 'retry!', 'retry!'],
    ['200=halt', 200, 'halt halting_status!', 'halt halting_status!'],
    ['503=wait', 503, 'wait!', 'wait!'],
    ['503=failed', 503, 'failed', 'unknown'],
    ['500=halt', 500, 'halt halting_status!', 'halt halting_status!'],
    ['501=retry', 501, 'retry', 'retry'],
    ['501=wait', 501, 'wait', 'wait'],
    ['505=halt', 505, 'halt halting_status', 'halt halting_status'],
    ['408=wait', 408, 'wait!', 'wait!'],
    ['451=failed', 451, 'failed', 'unknown'],
    ['422=halt', 422, 'halt halting_status', 'halt halting_status'],
    ['401=halt', 401, 'halt halting_status', 'halt halting_status'],
  ])('%s: a %i is %s, after doubt %s', (onStatus, status, fresh, doubtful) => {
    const table = makeVerdictTable(onStatus);
    expect([wordOf(answered(status), false, table), wordOf(answered(status), true, table)]).toEqual([fresh, doubtful]);
  });

  it('changes nothing for other statuses, also of the same rule', () => {
    const table = makeVerdictTable('404=failed,503=wait');
    for (const status of range(200, 599).filter((one) => one !== 404 && one !== 503)) {
      expect(wordOf(answered(status), false, table)).toBe(wordOf(answered(status), false));
    }
  });

  it('goes before what 403 says about a scope', () => {
    expect(wordOf(answered(403, headers), false, makeVerdictTable('403=failed'))).toBe('failed');
  });

  it('marks its rows, and takes the status out of the row it stood in', () => {
    const rows = makeVerdictTable('410=failed');
    expect(rows[0]).toMatchObject({ name: null, answers: '410', means: 'failed' });
    expect(rows.map(({ answers }) => answers)).toContain('404');
    expect(makeVerdictTable('404=failed,410=failed').map(({ answers }) => answers)).not.toContain('');
  });

  it('is the same text for the same meaning', () => {
    expect(formatOnStatus(parseOnStatus('409=retry, 404=failed'))).toBe('404=failed,409=retry');
  });

  it.each([
    ['204=failed', '204 cannot be failed: it is the one answer that says deleted'],
    ['404=deleted', '404: "deleted" is not one of failed, absent, retry, wait, halt.'],
    ['404=retyr', '404: "retyr" is not one of failed, absent, retry, wait, halt. Did you mean retry?'],
    [
      '200=absent',
      '200 cannot be absent: it may have been executed, and nothing says that it was; it can be failed, retry, halt',
    ],
    [
      '302=absent',
      '302 cannot be absent: it may have been executed, and nothing says that it was; it can be failed, retry, halt',
    ],
    [
      '406=absent',
      '406 cannot be absent: it may have been executed, and nothing says that it was; it can be failed, retry, halt',
    ],
    [
      '500=absent',
      '500 cannot be absent: it says nothing about whether the object is there; it can be failed, retry, wait, halt',
    ],
    ['501=absent', '501 cannot be absent: it says nothing about whether the object is there; it can be failed, retry'],
    ['401=wait', '401 cannot be wait: it speaks about the token, not about the id; it can be failed, halt'],
    ['429=failed', '429 cannot be failed: no id is lost to a rate limit; it can be wait, halt'],
    ['404=wait', '404 cannot be wait: waiting would never end; it can be failed, absent, retry, halt'],
    ['404=failed,404=retry', '404 is given twice'],
    ['404', 'expected a status from 200 to 599 and what it means, like 409=retry, got "404"'],
    ['4xx=failed', 'expected a status from 200 to 599 and what it means, like 409=retry, got "4xx=failed"'],
    ['600=failed', 'expected a status from 200 to 599 and what it means, like 409=retry, got "600=failed"'],
    ['199=failed', 'expected a status from 200 to 599 and what it means, like 409=retry, got "199=failed"'],
    ['404=failed,', 'expected a status from 200 to 599 and what it means, like 409=retry, got ""'],
  ])('%s is refused', (onStatus, message) => {
    expect(() => parseOnStatus(onStatus)).toThrow(
      expect.objectContaining({ message: expect.stringContaining(message) }),
    );
  });

  const treatment = fc.record({ status: fc.integer({ min: 200, max: 599 }), word: fc.constantFrom(...statusActions) });
  const onStatusTexts = fc
    .uniqueArray(treatment, { selector: ({ status }) => status, maxLength: 12 })
    .map((list) => list.filter((one) => isAllowed(one)))
    .map((list) => formatOnStatus(list));

  /** @invariant one-verdict */
  it('lets no status but 204 be deleted, and none that is no 4xx be absent', () => {
    const words = statusActions.map(
      (word) => [word, range(200, 599).filter((status) => isAllowed({ status, word }))] as const,
    );
    for (const [word, statuses] of words) {
      const table = makeVerdictTable(formatOnStatus(statuses.map((status) => ({ status, word }))));
      for (const status of range(200, 999)) {
        const outcomes = [wordOf(answered(status), false, table), wordOf(answered(status), true, table)];
        if (status !== 204) expect(outcomes).not.toContain('deleted');
        if (status < 400 || status > 499) expect(outcomes).not.toContain('absent');
      }
    }
    fc.assert(
      fc.property(onStatusTexts, fc.integer({ min: 200, max: 999 }), fc.boolean(), (onStatus, status, doubtful) => {
        expect(wordOf(answered(status), doubtful, makeVerdictTable(onStatus)) === 'deleted').toBe(status === 204);
      }),
    );
  });

  it('keeps the doubt as it is: what may have been executed stays in doubt, and what is in doubt is never sure', () => {
    fc.assert(
      fc.property(onStatusTexts, fc.integer({ min: 200, max: 599 }), (onStatus, status) => {
        const table = makeVerdictTable(onStatus);
        const verdict = verdictOf(answered(status), false, table);
        const mayBe =
          status !== 204 &&
          (status < 400 || [406, 408].includes(status) || (status >= 500 && ![501, 505].includes(status)));
        if ('ambiguous' in verdict) expect(verdict.ambiguous).toBe(mayBe);
        expect(['absent', 'failed']).not.toContain(wordOf(answered(status), true, table));
      }),
    );
  });
});

function isAllowed({ status, word }: { status: number; word: StatusAction }): boolean {
  try {
    return parseOnStatus(`${status}=${word}`).length === 1;
  } catch {
    return false;
  }
}

describe('an answer for a resource of the configuration file', () => {
  const tableOf = (success: number[], absent: number[], onStatus = '') =>
    makeVerdictTable(onStatus, { success, absent });
  const word = (answer: Answer, table: ReturnType<typeof tableOf>, doubtful = false) => wordOf(answer, doubtful, table);

  test.each<[success: number[], status: number, word: string]>([
    [[200], 200, 'deleted'],
    [[200], 204, 'unknown'],
    [[200], 202, 'unknown'],
    [[202], 202, 'deleted'],
    [[202], 200, 'unknown'],
    [[202], 204, 'unknown'],
    [[200, 204], 204, 'deleted'],
    [[200, 202, 204], 203, 'unknown'],
  ])('with success %j: %i is %s', (success, status, expected) => {
    expect(word(answered(status), tableOf(success, [404]))).toBe(expected);
  });

  test.each<[absent: number[], status: number, word: string]>([
    [[404, 410], 404, 'absent'],
    [[410], 404, 'failed'],
    [[410], 410, 'absent'],
    [[], 404, 'failed'],
    [[], 410, 'failed'],
    [[409], 409, 'absent'],
    [[409], 404, 'failed'],
    [[403], 403, 'absent'],
  ])('with absent %j: %i is %s', (absent, status, expected) => {
    expect(word(answered(status), tableOf([200], absent))).toBe(expected);
    const isAbsent = expected === 'absent';
    expect(word(answered(status), tableOf([200], absent), true)).toBe(isAbsent ? 'gone_unconfirmed' : 'unknown');
  });

  test.each<[what: string, headers: Record<string, string>, body: string, word: string]>([
    ['a type of HTML', { 'content-type': 'Text/HTML; charset=utf-8' }, '', 'unknown'],
    ['a body of HTML without a type', {}, '<!DOCTYPE html><title>Sign in</title>', 'unknown'],
    ['a body of HTML as text', { 'content-type': 'text/plain' }, '<html>', 'unknown'],
    [
      'a body of XML after a mark and white space',
      { 'content-type': 'application/xml' },
      '\ufeff\r\n <Error>',
      'unknown',
    ],
    ['JSON', { 'content-type': 'application/json' }, '{"html":"<p>"}', 'deleted'],
    ['text', { 'content-type': 'text/plain' }, 'deleted <d-1>', 'deleted'],
  ])('is a success by the form of its body: %s', (_, headers, body, expected) => {
    for (const status of [200, 202]) {
      const answer = { ...answered(status, headers), body };
      expect(word(answer, tableOf([200, 202], []))).toBe(expected);
    }
  });

  test('is about the rate if it says so, and about the token if it says so, although its status can mean absent', () => {
    const table = tableOf([200], [400, 403, 409]);
    expect(word(answered(403, { 'www-authenticate': 'Bearer error="insufficient_scope"' }), table)).toBe(
      'halt forbidden',
    );
    expect(word(answered(403, { 'x-ratelimit-remaining': '0' }), table)).toBe('wait');
    expect(word(answered(409, { 'retry-after': '5' }), table)).toBe('wait');
    expect(word(answered(202, { 'retry-after': '5' }), tableOf([202], []))).toBe('deleted');
  });

  test('has one rule: the definition says what is a success, and --on-status what is absent', () => {
    const table = tableOf([200], [404], '200=failed,404=failed,410=retry');
    expect([200, 404, 410].map((status) => word(answered(status), table))).toEqual(['deleted', 'failed', 'retry']);
    const statuses = table.flatMap(({ answers }) => answers.split(', '));
    expect(new Set(statuses).size).toBe(statuses.length);
  });
});
