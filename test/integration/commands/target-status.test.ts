import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { summaryIn } from '../../support/command.ts';
import { openHarness } from '../../support/harness.ts';

test('one look at a target says of each of its runs why nothing of it is sent, and a cause of the target once', async ({
  onTestFinished,
}) => {
  const harness = await openHarness(onTestFinished, { objects: { annotations: 9, views: 0 } });
  const submit = async (id: string, ...more: string[]) => {
    writeFileSync(join(harness.folder, `${id}.txt`), `a-000001\n${id}\n`);
    const run = await harness.run([`${id}.txt`, '--resource', 'annotations', '--yes', '--json', '--detach', ...more]);
    return summaryIn(run).run as string;
  };
  const look = async () => (await harness.expunge(['status'])).stdout;
  const paused = await submit('a-000002');
  const slow = await submit('a-000003', '--rate', '5/min');
  await harness.expunge(['pause', paused, '--reason', 'which list?'], { env: { EXPUNGE_USER: 'bob' } });

  const said = await look();
  expect(said).toMatch(
    new RegExp(
      `Run ${paused} of a-000002.txt, by .*: 2 of 2 ids left\\. Paused by bob: which list\\?, since [\\d:]+\\.\\n    Resume with: .*resume ${paused}`,
    ),
  );
  expect(said).toMatch(
    new RegExp(`Run ${slow} .*: 2 of 2 ids left\\. No worker of this target is alive\\.\\n    Start one: .*worker`),
  );

  await harness.expunge(['stop-all', '--reason', 'they phoned'], { env: { EXPUNGE_USER: 'ana' } });
  const stopped = await look();
  expect(stopped.match(/they phoned/g)).toHaveLength(2); // the stop, and the audit trail
  expect(stopped).toMatch(new RegExp(`Run ${slow} .*: 2 of 2 ids left\\. Held: stop\\.`));
  const { stdout } = await harness.expunge(['status', '--json']);
  expect(JSON.parse(stdout)).toMatchObject({
    standing: { why: 'stop' },
    runs: [
      { run: slow, state: 'running', pending: 2, standing: { why: 'stop', also: ['no_worker'] } },
      { run: paused, state: 'paused', pending: 2, standing: { why: 'paused', by: 'bob' } },
    ],
    has_more_runs: false,
  });

  await harness.expunge(['cancel', slow, '--yes']);
  expect(await look()).not.toContain(slow); // it has ended
});
