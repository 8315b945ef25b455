import { expect, it } from 'vitest';
import { timeOfDay } from '../../../src/format.ts';
import { parseRate } from '../../../src/model/rate.ts';
import { paceWords } from '../../../src/terminal/pace.ts';
import { heldLines, pinText } from '../../../src/terminal/target-text.ts';
import { snapshot } from './snapshots.ts';
import { target } from './target-states.ts';

const now = Date.UTC(2026, 10, 20, 16, 0);

it('what holds a target is told with its end or its beginning, and why', () => {
  const hold = { reason: 'the server answered 429\u001b[31m', leftMs: 3_540_000 };
  const outage = { reason: 'the API answers 503 to everything', since: now - 600_000 };
  expect(heldLines([target({ hold }), target({ scope: 'views', outage, advised: 0.5 })], now)).toEqual([
    `nothing is sent until ${timeOfDay(now + 3_540_000, now)} (59 min): the server answered 429`,
    'views: at most 30/min: the server says that no more is left of its limit',
    `views: circuit open since ${timeOfDay(now - 600_000, now)}: the API answers 503 to everything`,
  ]);
  expect(heldLines([target()], now)).toEqual([]);
});

it('a pinned rate is told with who pinned it and why', () => {
  const pin = { rate: parseRate('6000/min'), who: 'ana', reason: 'as\nagreed', at: now };
  expect(pinText(pin)).toBe('pinned to 6,000/min by ana: as agreed');
  expect(pinText({ ...pin, reason: '' })).toBe('pinned to 6,000/min by ana');
});

it('a run that goes as fast as its target is pinned says so, also where it does not use all of it', () => {
  const pinned = { rate: 200, ceiling: 200, pinned: 200, limitMet: 0 };
  expect(paceWords(snapshot({ targets: [target({ ...pinned, use: 0.98 })] }))).toBe(
    'Deleting at 200/s, as the target is pinned.',
  );
  expect(paceWords(snapshot({ targets: [target({ ...pinned, use: 0.2 })] }))).toBe(
    'Deleting; the target is pinned to 200/s.',
  );
  const slower = target({ ...pinned, rate: 100, ceiling: 100, use: 0.98 });
  expect(paceWords(snapshot({ targets: [slower] }))).toBe('Deleting at 100/s, as --rate allows.');
});
