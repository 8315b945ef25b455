import { expect, it } from 'vitest';
import { countRefusals, noRefusals } from '../../../../src/limiter/learning/refusals.ts';
import { sums } from '../../../support/sums.ts';

it('counts refusals that came together, among the answers since those before', () => {
  const count = (...looks: [now: number, accepted: number, refused: number][]) =>
    looks.reduce(
      (state, [now, accepted, refused]) => countRefusals(state, sums({ now, accepted, refused })),
      noRefusals,
    );
  expect(count([100, 9, 0])).toMatchObject({ refused: 0, acceptedSince: 9 });
  expect(count([100, 9, 0], [5_000, 10, 1], [5_900, 4, 1])).toMatchObject({ refused: 2, answers: 25, atMs: 5_900 });
  expect(count([100, 9, 0], [5_000, 10, 1], [6_100, 4, 1])).toMatchObject({ refused: 1, answers: 5, atMs: 6_100 });
  expect(count([5_000, 10, 1], [5_900, 4, 0], [9_000, 4, 0])).toMatchObject({ answers: 11, acceptedSince: 8 });
});
