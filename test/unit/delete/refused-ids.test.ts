import { describe, expect, test } from 'vitest';
import { maxRefusals, RefusedIds } from '../../../src/delete/refused-ids.ts';

/** A refusal: when it came, with which header, and when the last request that got through was sent. */
type Refusal = [atMs: number, header: string, workedAtMs: number];

const never = Number.NEGATIVE_INFINITY;

/** What is said of each refusal of one id in turn. */
function said(refusals: readonly Refusal[]): number[] {
  let now = 0;
  const ids = new RefusedIds(() => now);
  return refusals.map(([atMs, header, workedAtMs]) => {
    now = atMs;
    return ids.note('r 0.1', header, workedAtMs);
  });
}

describe('refusals of one id', () => {
  test.each<[name: string, refusals: Refusal[], said: number[]]>([
    [
      'are about the token while nothing gets through',
      [
        [10, 'a', never],
        [20, 'a', never],
        [9_000, 'a', never],
      ],
      [0, 0, 0],
    ],
    [
      'are about the token if what got through was sent before, however late its answer came',
      [
        [10, 'a', 5],
        [20, 'a', 9],
        [30, 'a', 10],
      ],
      [0, 0, 0],
    ],
    [
      'are about the id if something that was sent in between got through',
      [
        [10, 'a', 5],
        [20, 'a', 11],
        [30, 'a', 11],
      ],
      [0, 2, 3],
    ],
    [
      'of another token prove nothing',
      [
        [10, 'a', 5],
        [20, 'b', 15],
        [30, 'a', 25],
      ],
      [0, 0, 0],
    ],
    [
      'stay about the id with another token',
      [
        [10, 'a', 5],
        [20, 'a', 15],
        [30, 'b', never],
      ],
      [0, 2, 3],
    ],
  ])('%s', (_, refusals, expected) => {
    expect(said(refusals)).toEqual(expected);
  });

  test('are counted for each id alone', () => {
    let now = 0;
    const ids = new RefusedIds(() => now);
    for (const id of ['r 0.1', 'r 0.2', 's 0.1']) expect(ids.note(id, 'a', now++)).toBe(0);
  });

  test('are taken over from another process', () => {
    const ids = new RefusedIds(() => 0);
    expect(ids.knows('r 0.1')).toBe(false);
    ids.learn('r 0.1');
    expect([ids.knows('r 0.1'), ids.note('r 0.1', 'a', never)]).toEqual([true, 5]);
    expect(maxRefusals).toBeGreaterThan(5);
  });

  test('are forgotten from the oldest on', () => {
    const ids = new RefusedIds(() => 0);
    for (let n = 0; n <= 10_000; n++) ids.note(`r ${n}`, 'a', never);
    expect([ids.knows('r 0'), ids.knows('r 1'), ids.knows('r 10000')]).toEqual([false, true, true]);
  });
});
