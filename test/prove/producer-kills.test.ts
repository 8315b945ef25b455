import { expect, onTestFinished, test } from 'vitest';
import { planKilledAt, planKilledWhileReading, planUndisturbed } from '../support/producer-kills.ts';

test('a producer that is killed at any of its commands and started again leaves the same run, and nothing else', async () => {
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
