import { expect, test } from 'vitest';
import { setLimit } from '../../../src/ledger/steer-target.ts';
import { readLimit } from '../../../src/limiter/read-target.ts';
import { parseRate } from '../../../src/model/rate.ts';
import { annotations, makeIds } from '../../support/ids.ts';
import { openLocalWorkers } from '../../support/local-workers.ts';
import { never, until } from '../../support/processes.ts';

const [a, v] = [makeIds('a', 120), makeIds('v', 80)];
const objects = [...annotations(a), ...v.map((id) => ({ resource: 'views' as const, id }))];
const author = { who: 'ana', reason: 'as agreed', at: 7 };

test('five runs at once, on three processes, never exceed the limit of their target by one', async ({
  onTestFinished,
}) => {
  const sandboxOptions = {
    objects,
    latencyMs: 5,
    faults: { script: (_: unknown, __: string, nth: number) => (nth === 1 ? 'status-503' : null) },
  } as const;
  const workers = await openLocalWorkers(onTestFinished, sandboxOptions, {
    retryDelaysMs: [50, 50, 50, 50, 50],
  });
  const { redis, fp, sandbox } = workers;
  await workers.add();
  await workers.add();
  const allow = (text: string | null) => setLimit(redis, fp, text === null ? null : parseRate(text), author);
  expect(await allow('60/day')).toBe(true);
  const runs = await Promise.all([
    ...[0, 40, 80].map((from) => workers.submit(a.slice(from, from + 40))),
    ...[0, 40].map((from) => workers.submit(v.slice(from, from + 40), { resource: 'views' })),
  ]);
  await until('the limit is used up', () => sandbox.seen.length === 60);
  await never('it is exceeded', () => sandbox.seen.length > 60, 1_500);
  expect((await readLimit(redis, fp)).limit).toMatchObject({ ...author, used: [60] });
  await allow('75/day,1000/h');
  await until('a larger one is used up', () => sandbox.seen.length === 75);
  await never('it is exceeded', () => sandbox.seen.length > 75, 1_500);
  await allow(null);
  for (const run of runs) await until('the run ends', async () => (await workers.run(run)).state === 'completed');
  expect((await readLimit(redis, fp)).limit).toBeNull();
});
