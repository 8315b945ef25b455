import { describe, expect, it } from 'vitest';
import type { Cause } from '../../../src/ledger/standing.ts';
import { type Wait, waitChanges } from '../../../src/notify/waits.ts';

const minute = 60_000;
const hour = 60 * minute;

type Look = [afterMs: number, why: Cause | null, settled?: number];

/** At which of these looks at a run which cause is told. */
function told(looks: readonly Look[]): string[] {
  const known = new Map<Cause, Wait>();
  let now = Date.parse('2027-01-01T12:00Z');
  return looks.map(([afterMs, why, settled = 0]) => {
    now += afterMs;
    const changes = waitChanges(known, { why, settled }, now);
    for (const change of changes) {
      if (change.to === null) known.delete(change.why);
      else known.set(change.why, change.to);
    }
    return changes.flatMap((change) => (change.isNewlyPublished ? change.why : [])).join();
  });
}

describe('of a run that makes no progress it is told', () => {
  it.each<[string, Look[], string[]]>([
    [
      'once, after a quarter of an hour',
      [
        [0, 'stop'],
        [14 * minute, 'stop'],
        [minute, 'stop'],
        [hour, 'stop'],
      ],
      ['', '', 'stop', ''],
    ],
    [
      'nothing if it went on meanwhile',
      [
        [0, 'circuit'],
        [14 * minute, 'circuit', 5],
        [14 * minute, 'circuit', 5],
      ],
      ['', '', ''],
    ],
    [
      'nothing if it was for two causes in turn',
      [
        [0, 'circuit'],
        [9 * minute, 'retry_after'],
        [9 * minute, 'circuit'],
      ],
      ['', '', ''],
    ],
    [
      'nothing of its own time window, rate or retries',
      (['window', 'run_rate', 'retry', 'paused'] as const).flatMap((why): Look[] => [
        [0, why],
        [hour, why],
      ]),
      Array(8).fill(''),
    ],
    [
      'again where an operator stops it once more',
      [
        [0, 'stop'],
        [hour, 'stop'],
        [minute, null],
        [minute, 'stop'],
        [hour, 'stop'],
      ],
      ['', 'stop', '', '', 'stop'],
    ],
    [
      'not each day that its limit is used up again',
      [
        [0, 'limit'],
        [hour, 'limit'],
        [20 * hour, null],
        [4 * hour, 'limit', 250],
        [hour, 'limit', 250],
        [25 * hour, 'limit', 250],
      ],
      ['', 'limit', '', '', '', ''],
    ],
    [
      'not each window of a limiter that alternates, but after an hour without',
      [
        [0, 'retry_after'],
        [hour, 'retry_after'],
        [minute, null],
        [minute, 'retry_after', 9],
        [hour, 'retry_after', 9],
        [minute, null],
        [2 * hour, null],
        [minute, 'retry_after', 99],
        [hour, 'retry_after', 99],
      ],
      ['', 'retry_after', '', '', '', '', '', '', 'retry_after'],
    ],
    [
      'also of a second cause',
      [
        [0, 'limit'],
        [hour, 'limit'],
        [minute, 'stop'],
        [hour, 'stop'],
        [minute, 'limit'],
        [hour, 'limit'],
      ],
      ['', 'limit', '', 'stop', '', ''],
    ],
  ])('%s', (_, looks, expected) => {
    expect(told(looks)).toEqual(expected);
  });
});
