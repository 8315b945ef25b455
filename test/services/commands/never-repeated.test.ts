import { describe, test } from 'vitest';
import { openHarness } from '../../support/harness.ts';
import { annotations, makeIds } from '../../support/ids.ts';
import { until } from '../../support/processes.ts';

const ids = makeIds('k', 120);

describe.concurrent('requests in flight when a run is killed', () => {
  test.for([
    ['are sent again by default', {}, false],
    ['are never sent again if their DELETE must not be repeated', { annotations: { repeat: 'never' } }, true],
  ] as const)('%s', async ([, resources, isNever], { expect, onTestFinished }) => {
    const requests = new Map<string, number>();
    const script = (_: string, id: string) => {
      requests.set(id, (requests.get(id) ?? 0) + 1);
      return null;
    };
    const harness = await openHarness(onTestFinished, {
      objects: annotations(ids),
      latencyMs: 400,
      faults: { script },
    });
    const env = {
      EXPUNGE_CONFIG: harness.file('c.json', JSON.stringify({ resources })),
      EXPUNGE_MAX_CONCURRENCY: '16',
    };
    const args = ['run', harness.list(ids), '--resource', 'annotations', '--yes'];
    const killed = harness.spawn(args, env);
    await until('some are in flight', () => requests.size > 40);
    killed.signal('SIGKILL');
    await killed.ended;
    const { code } = await harness.spawn(args, env).ended;
    const { counts } = await harness.onlyRun();
    const twice = [...requests.values()].filter((count) => count > 1).length;
    if (isNever) {
      expect([code, twice, counts.deleted + counts.unknown]).toEqual([3, 0, ids.length]);
      expect(counts.unknown).toBeGreaterThan(0);
    } else {
      expect([code, counts.unknown]).toEqual([0, 0]);
      expect(twice).toBeGreaterThan(0);
    }
  });
});
