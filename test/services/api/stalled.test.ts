import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { Hono } from 'hono';
import { describe, expect, onTestFinished, test } from 'vitest';
import { openApi } from '../../support/api.ts';
import { makeIds } from '../../support/ids.ts';
import { until } from '../../support/processes.ts';
import { serveApp } from '../../support/served-app.ts';

/** A connection that sends a request and never reads what comes. */
function ask(url: string, path: string, headers: Record<string, string> = {}): Socket {
  const socket = connect(Number(new URL(url).port), '127.0.0.1');
  onTestFinished(() => void socket.destroy());
  socket.on('error', () => {});
  const lines = Object.entries({ host: new URL(url).host, ...headers }).map(([name, value]) => `${name}: ${value}`);
  socket.write(`GET ${path} HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n`);
  return socket;
}

/** An endless answer for each request to /endless; `left` has the names of those whose connections are closed. */
async function openEndless(stalledMs: number) {
  const left = new Set<string>();
  const app = new Hono();
  app.get('/endless/:name', (context) => {
    const cancel = () => void left.add(context.req.param('name'));
    const pull = (controller: ReadableStreamDefaultController) => controller.enqueue(new Uint8Array(65_536));
    return new Response(new ReadableStream({ pull, cancel }));
  });
  return { url: await serveApp(onTestFinished, app, stalledMs), left };
}

describe('a connection that takes nothing of its answer', () => {
  test('is closed, and one that reads is not', async () => {
    const { url, left } = await openEndless(400);
    const reading = ask(url, '/endless/reading').resume();
    ask(url, '/endless/stalled');
    await until('the stalled one is closed', () => left.has('stalled'));
    const before = reading.bytesRead;
    await until('the other one goes on', () => reading.bytesRead > before + 1_000_000);
    expect([...left]).toEqual(['stalled']);
  });

  test('is closed though it sends something again and again', async () => {
    const { url, left } = await openEndless(400);
    const socket = ask(url, '/endless/chatty');
    const timer = setInterval(() => socket.write('GET /more HTTP/1.1\r\nhost: x\r\n\r\n'), 20);
    onTestFinished(() => clearInterval(timer));
    await until('it is closed', () => left.has('chatty'));
  });
});

describe('downloads that nobody reads', () => {
  test('are as many as there may be: others are told when to come again, probes and requests are answered', async () => {
    const { url, call, token, harness } = await openApi(onTestFinished, { args: ['worker', '--http', '0'] });
    const list = harness.list(makeIds('d', 150_000));
    const made = await harness.run([list, '--resource', 'views', '--detach', '--yes', '--json', '--rate', '1/h']);
    expect(made.code, made.stderr).toBe(0);
    const { id } = await harness.onlyRun();
    const authorization = `Bearer ${await token('read')}`;
    const path = `/api/v1/runs/${id}/report`;
    const sockets = Array.from({ length: 8 }, () => ask(url, path, { authorization }));
    await Promise.all(sockets.map((socket) => once(socket, 'readable')));
    const refused = await call('read', `/runs/${id}/report?format=ndjson`);
    expect(refused).toMatchObject({ status: 503, body: { code: 'unavailable' } });
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
    for (const probe of ['//healthz', '//readyz']) expect((await call(null, probe)).status).toBe(200);
    expect((await call('read', '/overview')).status).toBe(200);
    sockets[0]!.destroy();
    await until(
      'there is room again',
      async () => (await call('read', `/runs/${id}/report?only=failed`)).status === 200,
    );
  });
});
