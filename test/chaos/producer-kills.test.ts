import { describe, test } from 'vitest';
import { planKilledAt, planKilledWhileReading, planUndisturbed } from '../support/producer-kills.ts';
import { isFull } from '../support/size.ts';

describe('a producer that is killed and started again', () => {
  /** @invariant same-list-same-run: The same list makes the same run, even if its producer was killed. The same ids of a run make the same retry. */
  test('leaves the same run as one that was not, and nothing else', async ({ expect, onTestFinished }) => {
    const { planned, commands } = await planUndisturbed(onTestFinished);
    expect(planned).toMatchObject({ runs: 1, state: 'running', next: 4, jobs: 4, spools: [] });
    expect(planned.open).toEqual({ 0: '0', 1: '0', 2: '0', 3: '0' });
    const points = [0.35, 0.75].map((part) => Math.round(part * commands));
    for (const [i, n] of points.entries()) {
      const again = await planKilledAt(n, i % 2 === 0, onTestFinished);
      expect(again, `killed at command ${n} of ${commands}`).toEqual(planned);
    }
    expect(await planKilledWhileReading(3_000, onTestFinished), 'killed while reading').toEqual(planned);
  });
});

if (isFull)
  test('a producer that is killed at any of its commands and started again leaves the same run, and nothing else', async ({
    expect,
    onTestFinished,
  }) => {
    const { planned, commands } = await planUndisturbed(onTestFinished);
    expect(planned).toMatchObject({ runs: 1, state: 'running', spools: [] });
    for (let n = 1; n <= commands; n++) {
      for (const passOn of [true, false]) {
        // Connections interleave, so the last commands may not come in every run.
        const again = await planKilledAt(n, passOn, onTestFinished).catch((error: Error) => error.message);
        if (typeof again === 'string' && n > commands - 8) expect(again).toMatch(/ended before its command/);
        else expect(again, `killed at command ${n} of ${commands}, passed on: ${passOn}`).toEqual(planned);
      }
    }
    for (const rows of [1, 500, 5_000]) {
      expect(await planKilledWhileReading(rows, onTestFinished), `killed while reading ${rows} rows`).toEqual(planned);
    }
    console.log(`${2 * commands + 3} producers killed, ${commands} commands each`);
  });
