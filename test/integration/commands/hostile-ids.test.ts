import { expect, it } from 'vitest';
import { hostileWays, sendHostileIds } from '../../support/hostile-ids.ts';

it.each(hostileWays)(
  'of 250 hostile ids of $kinds resources in $format, with "$allowed" allowed, only accepted ones are requested, at their own path',
  async (way) => {
    await sendHostileIds(250, 1, way);
    expect.hasAssertions();
  },
);
