import { describe, expect, test } from 'vitest';
import { judgeAnswer } from '../../../src/dashboard/trouble.ts';

describe('a trouble', () => {
  test.each([
    [{ status: 0 }, 'The server does not answer', ''],
    [{ status: 502 }, 'A proxy answers 502 in place of the server', 'The server behind it does not answer.'],
    [{ status: 504 }, 'A proxy answers 504 in place of the server', 'The server behind it does not answer.'],
    [{ status: 503, detail: 'Redis: no answer within 3 s' }, 'Redis does not answer', 'Redis: no answer within 3 s.'],
    [{ status: 500, detail: 'it is in the log' }, 'The server has a fault', 'It is in the log.'],
    [{ status: 503 }, 'The server has a fault', 'It answered 503.'],
    [
      { status: 403, title: 'this role is not allowed to do that' },
      'The server refuses to show this',
      'This role is not allowed to do that.',
    ],
  ])('of %j is "%s"', (answer, title, detail) => {
    const trouble = judgeAnswer(answer);
    expect([trouble.title, trouble.detail]).toEqual([title, detail]);
    expect(trouble.advice).not.toBe('');
  });
});
