import { describe, expect, test } from 'vitest';
import { evaluateSentinels, type SentinelAnswer } from '../../../src/redis/sentinels.ts';
import { evaluateSlots } from '../../../src/redis/server.ts';

const [first, second] = [
  { host: '10.0.0.1', port: 6379 },
  { host: '10.0.0.2', port: 6379 },
];
const names = (
  primary: typeof first | null,
  quorum = 'OK 3 usable Sentinels',
  others: string[] = [],
): SentinelAnswer => {
  return { sentinel: 's', primary, quorum, others };
};
const away = (error: string): SentinelAnswer => ({ sentinel: 'c:26379', error });

describe('sentinels', () => {
  test.each<[string, SentinelAnswer[], typeof first | null]>([
    [
      'ok 3 of 3 name 10.0.0.1:6379 the primary, and enough of them are running to elect another one',
      [names(first), names(first), names(first)],
      first,
    ],
    [
      'warn 2 of 3 name 10.0.0.1:6379 the primary; c:26379: connection refused',
      [names(first), names(first), away('connection refused')],
      first,
    ],
    [
      'warn 1 of 1 name 10.0.0.1:6379 the primary, but too few of them are running to elect another one',
      [names(first, 'NOQUORUM 1 usable')],
      first,
    ],
    ['fail they disagree about the primary: 10.0.0.1:6379, 10.0.0.2:6379', [names(first), names(second)], null],
    [
      'ok 2 of 3 name 10.0.0.1:6379 the primary, and enough of them are running to elect another one',
      [names(first), names(second), names(first)],
      first,
    ],
    [
      'fail they know no primary called "main", only mymaster',
      [names(null, '', ['mymaster']), names(null, '', ['mymaster'])],
      null,
    ],
    [
      'fail none of them answers: c:26379: NOAUTH Authentication required.',
      [away('NOAUTH Authentication required.')],
      null,
    ],
  ])('%s', (words, answers, expected) => {
    const { finding, primary } = evaluateSentinels('main', answers);
    expect(`${finding.state} ${finding.words}`).toBe(words);
    expect(primary).toEqual(expected);
    expect(finding.next === null).toBe(finding.state === 'ok');
  });

  test('that want a password are told where to name it', () => {
    expect(evaluateSentinels('main', [away('NOAUTH Authentication required.')]).finding.next).toContain(
      'EXPUNGE_SENTINEL_PASSWORD_FILE',
    );
  });
});

describe('the slots of a cluster', () => {
  test.each<[string, Parameters<typeof evaluateSlots>[0]]>([
    [
      'ok 16384 of 16384 slots are served by 2 primaries',
      [
        [0, 99, ['h', 1, 'a'], ['h', 2, 'c']],
        [100, 8_191, ['h', 1, 'a']],
        [8_192, 16_383, ['h', 3, 'b']],
      ],
    ],
    ['fail 8192 of 16384 slots are served by 1 primary: runs in the others would stop', [[0, 8_191, ['h', 1, 'a']]]],
  ])('%s', (words, ranges) => {
    const { state, words: said } = evaluateSlots(ranges);
    expect(`${state} ${said}`).toBe(words);
  });
});
