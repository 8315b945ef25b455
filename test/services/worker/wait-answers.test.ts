import { expect, test } from 'vitest';
import { annotations, makeIds } from '../../support/ids.ts';
import { openLocalWorkers } from '../../support/local-workers.ts';
import { until } from '../../support/processes.ts';

test('an id that is told to wait by --on-status comes back after the retry delays, and it costs no attempt', async ({
  onTestFinished,
}) => {
  const ids = makeIds('w', 60);
  const locked = ids[59]!;
  const { sandbox, submit, run } = await openLocalWorkers(
    onTestFinished,
    {
      objects: annotations(ids),
      faults: { script: (_, id, nth) => (id === locked && nth <= 3 ? 'status-423' : null) },
    },
    { retryDelaysMs: [200, 400, 600, 600, 600] },
  );
  const id = await submit(ids, { onStatus: '423=wait' });
  await until('the run ends', async () => (await run(id)).state === 'completed');
  const { seen, arrivals } = sandbox;
  const at = arrivals.atMs.filter((_, n) => seen[n]!.endsWith(`/${locked}`));
  const waited = at.slice(1).map((ms, n) => ms - at[n]!);
  expect(waited.map((ms, n) => ms >= 200 * (n + 1))).toEqual([true, true, true]);
  expect(await run(id)).toMatchObject({ attempts: 60, counts: { deleted: 60 } });
});
