import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, test } from 'vitest';
import { summaryIn } from '../../support/command.ts';
import { type AtEnd, openHarness } from '../../support/harness.ts';
import { makeIds } from '../../support/ids.ts';
import { until } from '../../support/processes.ts';

const ids = makeIds('w', 3_000);
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
  server.keepAliveTimeout = 60_000; // on a busy machine a process may pause
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

describe.concurrent('--workers', () => {
  test('lets a worker send from that many processes, each with --max-concurrency requests', async ({
    expect,
    onTestFinished,
  }) => {
    const server = await openServer(onTestFinished);
    const harness = await openHarness(onTestFinished);
    const env = { EXPUNGE_BASE_URL: server.url };
    const worker = harness.spawn(['worker', '--workers', '3', '--max-concurrency', '1'], env);
    await until('all are ready', () => worker.stderr.match(/"ready"/g)?.length === 3);
    expect(childrenOf(worker.pid)).toHaveLength(3);
    expect((await harness.run([harness.list(ids), ...list, '--detach'], { env })).code).toBe(0);
    const { counts } = await harness.runIs('completed', ({ state }) => state === 'completed');
    expect(counts).toMatchObject({ deleted: ids.length });
    expect(server.requests().filter((requests) => requests > 10)).toHaveLength(3); // one connection each
    expect(server.now.most).toBe(3);
    expect(server.deleted.size).toBe(ids.length);
  });

  test('of a worker in a configuration file leaves a run on the same machine one process', async ({
    expect,
    onTestFinished,
  }) => {
    const server = await openServer(onTestFinished);
    const harness = await openHarness(onTestFinished);
    const env = { EXPUNGE_BASE_URL: server.url };
    const config = ['--config', harness.file('config.json', '{ "workers": 3 }')];
    const shown = await harness.expunge(['config', 'show', ...config], { env });
    expect(shown.stdout).toMatch(/^workers +3 /m);
    const args = ['run', harness.list(ids), ...list, ...config, '--max-concurrency', '1', '--json'];
    const command = harness.spawn(args, env);
    await until('it deletes', () => server.deleted.size > 100);
    expect(childrenOf(command.pid)).toEqual([]);
    expect(await command.ended, command.stderr).toMatchObject({ code: 0 });
    expect(summaryIn(command)).toMatchObject({ rows: ids.length, deleted: ids.length, attempts: ids.length, exit: 0 });
    expect(server.now.most).toBe(1);
    expect(command.stderr.match(/ completed: /g)).toHaveLength(1);
  });
});
