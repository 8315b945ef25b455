import { expect, onTestFinished, test } from 'vitest';
import { keys } from '../../../src/redis/keys.ts';
import { summaryIn } from '../../support/command.ts';
import { openHarness } from '../../support/harness.ts';

test('a run that Redis has lost a part of is not searched, and the others are', async () => {
  const harness = await openHarness(onTestFinished);
  const submit = async (list: string, id: string) => {
    harness.file(list, `id\n${id}\n`);
    const args = [list, '--resource', 'annotations', '--detach', '--yes', '--json'];
    return summaryIn(await harness.run(args)).run;
  };
  const [whole, damaged] = [await submit('whole.csv', 'a-1'), await submit('damaged.csv', 'a-2')];
  await harness.redis.del(keys.manifest(damaged, 0));
  const { code, stdout, stderr } = await harness.expunge(['explain', 'annotations', 'a-1']);
  expect([code, stdout]).toEqual([0, expect.stringContaining(`Run ${whole} · running · whole.csv:2`)]);
  expect(stderr).toContain(`warning: run ${damaged} is not searched: run ${damaged}: manifest chunk 0 is missing`);
});
