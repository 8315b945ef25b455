import { describe, test } from 'vitest';
import { openBodyServer } from '../../support/body-server.ts';
import { summaryIn } from '../../support/command.ts';
import { openHarness } from '../../support/harness.ts';
import { makeIds } from '../../support/ids.ts';

const ids = makeIds('b', 3_000);
const list = ['--resource', 'annotations', '--yes', '--json'];

describe.concurrent('answers that are a 204 with a body', () => {
  test('are counted and reported by a run', async ({ expect, onTestFinished }) => {
    const server = await openBodyServer(onTestFinished, 'length');
    const harness = await openHarness(onTestFinished);
    const command = harness.spawn(['run', harness.list(ids), ...list], { EXPUNGE_BASE_URL: server.url });
    expect(await command.ended, command.stderr).toMatchObject({ code: 0 });
    expect(summaryIn(command)).toMatchObject({ deleted: ids.length, answers_with_body: ids.length, exit: 0 });
    expect(command.stderr).toContain('3,000 answers were 204 with a body, which HTTP does not allow');
    expect([server.requests.length, server.deleted.size]).toEqual([ids.length, ids.length]);
  });

  test('are counted over all processes in the record of a run that workers delete', async ({
    expect,
    onTestFinished,
  }) => {
    const server = await openBodyServer(onTestFinished, 'samePacket');
    const harness = await openHarness(onTestFinished);
    const env = { EXPUNGE_BASE_URL: server.url };
    harness.spawn(['worker', '--workers', '3', '--max-concurrency', '2'], env);
    await harness.run([harness.list(ids), ...list, '--detach'], { env });
    const run = await harness.runIs('counted', ({ bodies }) => bodies === ids.length);
    await harness.runIs('completed', ({ state }) => state === 'completed');
    expect((await harness.onlyRun()).counts).toMatchObject({ deleted: ids.length });
    expect((await harness.expunge(['status', run.id])).stdout).toContain('3,000 answers were 204 with a body');
  });

  test('are none where they have no body', async ({ expect, onTestFinished }) => {
    const server = await openBodyServer(onTestFinished, 'proper');
    const harness = await openHarness(onTestFinished);
    const command = harness.spawn(['run', harness.list(ids), ...list], { EXPUNGE_BASE_URL: server.url });
    expect(await command.ended, command.stderr).toMatchObject({ code: 0 });
    expect(summaryIn(command)).toMatchObject({ deleted: ids.length, answers_with_body: 0 });
    expect(command.stderr).not.toContain('with a body');
  });
});
