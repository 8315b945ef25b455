import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { Hono } from 'hono';
import { expect, onTestFinished, test } from 'vitest';
import { readText } from '../../../src/api/read-body.ts';
import { serveApp } from '../../support/served-app.ts';

const megabyte = 1_024 * 1_024;
const part = Buffer.alloc(megabyte, 'x');
const longMs = 60_000;

/** Serves `/read`, which refuses a body once it has read 64 KB of it, and `/unread`, which refuses it at once. */
async function openRefusing(): Promise<string> {
  const app = new Hono();
  app.post('/unread', (context) => context.text('not logged in', 401));
  app.post('/read', async (context) => context.text(await readText(context)));
  app.onError((_, context) => context.text('too large', 413));
  return serveApp(onTestFinished, app, longMs);
}

/** Sends a body for as long as somebody takes it. `sent`: how many MB were taken, those in the buffers of the system included. */
async function sendEndless(url: string, path: string): Promise<{ said: string; sent: number }> {
  const socket = connect(Number(new URL(url).port), '127.0.0.1');
  onTestFinished(() => void socket.destroy());
  const peer = { said: '', sent: 0 };
  socket.on('error', () => {});
  socket.on('data', (data) => {
    peer.said += data;
  });
  socket.write(`POST ${path} HTTP/1.1\r\nhost: x\r\ncontent-length: 1000000000\r\n\r\n`);
  while (!socket.destroyed && peer.sent < 900) {
    if (!socket.write(part)) while (socket.writableNeedDrain && !socket.destroyed) await sleep(1);
    peer.sent += 1;
  }
  return peer;
}

const buffersMb = 20; // more than the system keeps for the two ends of a connection

test.each([
  ['/read', '413'],
  ['/unread', '401'],
])('a stranger whose endless body is refused is answered, and no more of it is read: %s', async (path, status) => {
  const { said, sent } = await sendEndless(await openRefusing(), path);
  expect(said).toContain(`HTTP/1.1 ${status}`);
  expect(sent).toBeLessThan(buffersMb);
});

test.each([
  ['/read', 413],
  ['/unread', 401],
])('a stranger who sends a whole body before reading gets the answer to it: %s', async (path, status) => {
  const url = await openRefusing();
  const answer = await fetch(url + path, { method: 'POST', body: part });
  expect(answer.status).toBe(status);
});
