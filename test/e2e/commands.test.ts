import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { openHarness } from '../support/harness.ts';
import { annotations, makeIds } from '../support/ids.ts';
import { bin, runProgram, until } from '../support/processes.ts';

const ids = makeIds('e', 30);

/** The first of so many free ports in a row, below those that the system gives to others: nobody takes one before it is used. */
async function freePorts(count: number): Promise<number> {
  const first = randomInt(20_000, 30_000);
  const servers = Array.from({ length: count }, () => createServer());
  try {
    for (const [n, server] of servers.entries()) {
      server.listen(first + n, '127.0.0.1');
      await once(server, 'listening');
    }
    return first;
  } catch {
    return freePorts(count);
  } finally {
    for (const server of servers) server.close();
  }
}

const isReady = (port: number) =>
  fetch(`http://127.0.0.1:${port}/readyz`).then(
    ({ ok }) => ok,
    () => false,
  );

test('the command as it is shipped takes a list to supervised workers with a port each, and reports', async () => {
  const harness = await openHarness(onTestFinished, { objects: annotations(ids) });
  const call = (...args: string[]) =>
    runProgram(process.execPath, [bin, ...args], { cwd: harness.folder, env: harness.env });
  harness.list(ids);
  const submitted = await call('run', 'list.txt', '--resource', 'annotations', '--yes', '--detach', '--json');
  expect([submitted.code, submitted.stderr]).toEqual([0, expect.stringMatching(/Stop it: .*bin\.js pause/)]);
  const { id } = await harness.onlyRun();
  const port = await freePorts(2);
  const workers = harness.spawn(['worker', '--workers', '2', '--http', `${port}`]);
  for (const at of [port, port + 1]) await until(`there is a ready worker at ${at}`, () => isReady(at));
  await harness.runIs('completed', ({ state }) => state === 'completed');
  workers.signal('SIGTERM');
  expect(await workers.ended).toEqual({ code: 0, signal: null });
  const report = await call('report', id);
  expect([report.code, report.stdout.match(/,deleted,/g)]).toEqual([0, ids.map(() => ',deleted,')]);
});
