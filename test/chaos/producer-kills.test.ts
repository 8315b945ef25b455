import { describe, test } from 'vitest';
import { planKilledAt, planKilledWhileReading, planUndisturbed } from '../support/producer-kills.ts';

describe('a producer that is killed and started again', () => {
  test('leaves the same run as one that was not, and nothing else', async ({ expect, onTestFinished }) => {
    const { planned, commands } = await planUndisturbed(onTestFinished);
    expect(planned).toMatchObject({ runs: 1, state: 'running', next: 4, jobs: 4, spools: [] });
    expect(planned.open).toEqual({ 0: '0', 1: '0', 2: '0', 3: '0' });
    const points = [0.1, 0.35, 0.55, 0.75, 0.95].map((part) => Math.round(part * commands));
    for (const [i, n] of points.entries()) {
      const again = await planKilledAt(n, i % 2 === 0, onTestFinished);
      expect(again, `killed at command ${n} of ${commands}`).toEqual(planned);
    }
    expect(await planKilledWhileReading(3_000, onTestFinished), 'killed while reading').toEqual(planned);
  });
});
