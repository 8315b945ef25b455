import { expect, it } from 'vitest';
import { hostileWays, sendHostileIds } from '../../support/hostile-ids.ts';

it.each(hostileWays)(
  'of 100 hostile ids of $kinds resources in $format, with "$allowed" allowed, only accepted ones are requested, at their own path',
  async (way) => {
    await sendHostileIds(100, 1, way);
    expect.hasAssertions();
  },
);
