import { expect, test } from 'vitest';
import { useKillSwitch } from '../support/kill-switch.ts';

test.for([4, 4, 2, 2, 0, 0])(
  'the kill switch lets nothing leave a second later, at 1,000/s with %i workers (0: a run by itself)',
  async (workers, { onTestFinished }) => {
    const {
      byCommand,
      byFile,
      problem: trouble,
    } = await useKillSwitch(onTestFinished, { workers, ids: 25_000, least: 900 });
    for (const [way, seen] of Object.entries({ byCommand, byFile })) {
      const { perSecond, lastAfterMs, wentOnAfterMs } = seen;
      console.log(
        `${workers} workers, ${way}, at ${perSecond}/s: last request after ${lastAfterMs} ms, the first again ${wentOnAfterMs} ms after it was lifted`,
      );
      expect(lastAfterMs).toBeLessThanOrEqual(1_000);
    }
    expect(trouble).toBeNull();
  },
);
