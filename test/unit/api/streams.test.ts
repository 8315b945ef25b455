import { Hono } from 'hono';
import { describe, expect, it } from 'vitest';
import { Live } from '../../../src/api/live.ts';
import { Problem } from '../../../src/api/problem.ts';
import { Streams } from '../../../src/api/streams.ts';
import { createLogger } from '../../../src/logger.ts';

const log = createLogger({ level: 'silent', format: 'json', stderr: process.stderr });

function openApp(streams: Streams) {
  const wait = () => new Promise<void>((resolve) => void setImmediate(resolve));
  const live = new Live({ read: async () => 'all', event: 'snapshot', everyMs: 0, wait, problem: () => ({}) });
  const app = new Hono();
  app.get('/', (context) =>
    streams.send(context, live, { name: 'ana', role: 'read', reach: null, by: 'token' }, async () => true),
  );
  return app;
}

describe('a stream', () => {
  it('ends after its time, whoever looks', async () => {
    const streams = new Streams(log, { streamMs: 50 });
    const answer = await openApp(streams).request('/');
    expect(await answer.text()).toContain('event: snapshot');
    await expect.poll(() => streams.open).toBe(0);
  });

  it('ends after its time, though its viewer never reads', async () => {
    const streams = new Streams(log, { streamMs: 50 });
    await openApp(streams).request('/');
    await expect.poll(() => streams.open).toBe(0);
  });
});

describe('downloads', () => {
  it('are as many as there may be, and one more when one has ended', () => {
    const streams = new Streams(log, { downloads: 2 });
    const [end] = [streams.begin('downloads'), streams.begin('downloads')];
    expect(() => streams.begin('downloads')).toThrow(Problem);
    end!();
    streams.begin('downloads');
    expect(() => streams.begin('downloads')).toThrow(Problem);
  });
});
