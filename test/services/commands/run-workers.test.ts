import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, test } from 'vitest';
import { summaryIn } from '../../support/command.ts';
import { type AtEnd, openHarness } from '../../support/harness.ts';
import { annotations, makeIds } from '../../support/ids.ts';
import { until } from '../../support/processes.ts';

const ids = makeIds('w', 6_000);
const list = ['--resource', 'annotations', '--yes'];

/** A server that answers 204 after 2 ms, and counts the requests of each connection. */
async function openServer(atEnd: AtEnd) {
  const connections = new Map<object, number>();
  const deleted = new Set<string>();
  const now = { inFlight: 0, most: 0 };
  const server = createServer(async (request, response) => {
    connections.set(request.socket, (connections.get(request.socket) ?? 0) + 1);
    deleted.add(request.url!);
    now.most = Math.max(now.most, ++now.inFlight);
    await sleep(2);
    now.inFlight--;
    response.writeHead(204).end();
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  atEnd(async () => {
    server.closeAllConnections();
    server.close();
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return { url, deleted, now, requests: () => [...connections.values()] };
}

/** The processes that a process has started. */
function childrenOf(pid: number): number[] {
  const lines = execFileSync('ps', ['-A', '-o', 'pid=,ppid='], { encoding: 'utf8' }).trim().split('\n');
  return lines
    .map((line) => line.trim().split(/\s+/).map(Number))
    .flatMap(([child, ppid]) => (ppid === pid ? [child!] : []));
}

describe.concurrent('a run with --workers', () => {
  test('sends from each process, with no more requests at once than the run may have, and reports once', async ({
    expect,
    onTestFinished,
  }) => {
    const server = await openServer(onTestFinished);
    const harness = await openHarness(onTestFinished);
    const args = ['--workers', '3', '--max-concurrency', '3', '--json'];
    const command = harness.spawn(['run', harness.list(ids), ...list, ...args], { EXPUNGE_BASE_URL: server.url });
    expect(await command.ended, command.stderr).toMatchObject({ code: 0 });
    expect(summaryIn(command)).toMatchObject({ rows: ids.length, deleted: ids.length, attempts: ids.length, exit: 0 });
    expect(server.requests()).toHaveLength(3); // one connection each
    for (const requests of server.requests()) expect(requests).toBeGreaterThan(100);
    expect(server.now.most).toBeLessThanOrEqual(3);
    expect(server.deleted.size).toBe(ids.length);
    expect(command.stderr).toContain('  Workers   3 processes (--workers)\n');
    expect(command.stderr.match(/ completed: /g)).toHaveLength(1);
    const { id } = await harness.onlyRun();
    expect(harness.outcomes(id)).toHaveLength(ids.length);
  });

  test.for([
    [[], /^a worker exited unexpectedly, restarting it: worker 1, ended by SIGKILL$/m],
    [['--quiet'], /^warning: a worker exited unexpectedly, restarting it: worker 1, ended by SIGKILL$/m],
  ] as const)('says that one has died (%j)', async ([flags, words], { expect, onTestFinished }) => {
    const harness = await openHarness(onTestFinished, { objects: annotations(ids), latencyMs: 20 });
    const command = harness.spawn(['run', harness.list(ids), ...list, '--workers', '2', ...flags]);
    const [worker] = await until('there is a worker', () => {
      const children = harness.arrivals.length > 0 ? childrenOf(command.pid) : [];
      return children.length > 0 && children;
    });
    process.kill(worker!, 'SIGKILL');
    await until('it says so', () => words.test(command.stderr));
    command.signal('SIGTERM');
    expect(await command.ended, command.stderr).toMatchObject({ code: 143 });
  });

  test('has as many as requests at once, and one for a small list or a low rate', async ({
    expect,
    onTestFinished,
  }) => {
    const harness = await openHarness(onTestFinished);
    const planOf = async (...args: string[]) =>
      (await harness.run([harness.list(ids), ...list, '--dry-run', ...args])).stdout;
    expect(await planOf('--workers', '3', '--max-concurrency', '2')).toContain(
      '  Workers   2 processes (--max-concurrency 2 is one request each)\n',
    );
    expect(await planOf()).not.toContain('Workers');
    expect(await planOf('--rate', '2000/s')).not.toContain('Workers');
  });

  test('leaves it to the workers where it is detached', async ({ expect, onTestFinished }) => {
    const harness = await openHarness(onTestFinished);
    const { code, stderr } = await harness.run([harness.list(ids), ...list, '--detach', '--workers', '2']);
    expect(code).toBe(2);
    expect(stderr).toContain('--workers: with --detach, workers send the requests with their own settings');
  });

  test('starts its processes itself', async ({ expect, onTestFinished }) => {
    const harness = await openHarness(onTestFinished);
    expect(await harness.expunge(['run-worker', 'm4tz'])).toMatchObject({
      code: 2,
      stderr: 'error: run-worker is started by expunge run\n  expunge run FILE --workers 4\n',
    });
  });
});
