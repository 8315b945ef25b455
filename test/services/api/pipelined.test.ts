import { connect } from 'node:net';
import { Hono } from 'hono';
import { expect, onTestFinished, test } from 'vitest';
import { assetAnswer, readAsset } from '../../../src/api/assets.ts';
import { until } from '../../support/processes.ts';
import { serveApp } from '../../support/served-app.ts';

/** What is served without a login: the files of the pages, and a probe. */
async function openFiles(stalledMs: number): Promise<string> {
  const app = new Hono();
  app.get('/healthz', (context) => context.json({ ok: true }));
  app.get('/assets/*', async ({ req }) => assetAnswer((await readAsset(req.path.slice('/assets/'.length)))!, ''));
  return serveApp(onTestFinished, app, stalledMs);
}

test('a connection that asks for many files, each of them small, and reads none is closed', async () => {
  const url = await openFiles(400);
  const request = `GET /assets/uplot/uPlot.esm.js HTTP/1.1\r\nHost: ${new URL(url).host}\r\n\r\n`;
  const socket = connect(Number(new URL(url).port), '127.0.0.1').pause();
  onTestFinished(() => void socket.destroy());
  let isClosed = false;
  socket.on('error', () => {
    isClosed = true; // what it sends is refused: it reads nothing and cannot see an end
  });
  socket.write(request.repeat(1_000));
  expect((await fetch(`${url}/healthz`)).status).toBe(200);
  await until('it is closed', () => {
    if (!isClosed) socket.write(request);
    return isClosed;
  });
  expect((await fetch(`${url}/healthz`)).status).toBe(200);
});
