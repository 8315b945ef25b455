import { existsSync, mkdirSync, readdirSync, truncateSync, utimesSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { Uploads } from '../../../src/api/uploads.ts';
import { noteTarget } from '../../../src/ledger/known-targets.ts';
import { openApi } from '../../support/api.ts';
import { until } from '../../support/processes.ts';

const day = 86_400_000;

/** A server, and lists of so many bytes that others have sent to it; on the disk they take nothing. */
async function openWithLists(...lists: number[]) {
  const api = await openApi(onTestFinished);
  const { target, stateDir } = api.harness;
  await noteTarget(api.redis, target, Date.now());
  const uploads = join(stateDir, 'uploads');
  const folders = lists.map((bytes, n) => {
    const folder = join(uploads, String(n).padStart(18, '0'));
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, 'list.csv'), '');
    truncateSync(join(folder, 'list.csv'), bytes);
    return folder;
  });
  const path = `/plans?target=${target.fp}&resource=views`;
  const send = (raw: RequestInit['body']) =>
    api.call('operate', path, { method: 'POST', raw: raw!, headers: { 'content-type': 'text/csv' } });
  return { ...api, uploads, folders, path, send };
}

/** A list of so many bytes whose length nobody knows before its end. */
function listOf(bytes: number): ReadableStream<Uint8Array> {
  let left = bytes;
  return new ReadableStream({
    pull(controller) {
      if (left <= 0) return controller.close();
      controller.enqueue(Buffer.from('x-00001\n'.repeat(8_192)));
      left -= 65_536;
    },
  });
}

describe('the lists of a server', () => {
  test('are removed when it starts once they are a day old, and no sooner', async () => {
    const { harness, folders } = await openWithLists(10, 20);
    const [old, young] = folders as [string, string];
    for (const [folder, age] of [
      [old, day + 60_000],
      [young, day - 60_000],
    ] as const)
      utimesSync(folder, (Date.now() - age) / 1_000, (Date.now() - age) / 1_000);
    harness.start(['dashboard', '--port', '0']);
    await until('the old one is gone', () => !existsSync(old));
    expect(existsSync(young)).toBe(true);
  });

  test('may have so many bytes together: a further one is refused with when there is room, and none is removed for it', async () => {
    const { send, uploads, call, folders } = await openWithLists(15.9e9, 16.2e9);
    const refused = await send('id\na\n');
    expect(refused.body).toMatchObject({ status: 507, code: 'no_space', detail: expect.stringContaining('32.1 GB') });
    expect(refused.body.next).toMatch(/when they have been read.*\d{4}-\d\d-\d\dT/);
    truncateSync(join(folders[0]!, 'list.csv'), 15e9);
    const planned = await send('id\na\n');
    expect(planned.status, planned.text).toBe(201);
    expect((await call('operate', `/plans/${planned.body.plan}`, { method: 'DELETE' })).status).toBe(200);
    expect(readdirSync(uploads)).toHaveLength(2);
  });

  test('are bounded also for one whose length is not said before, and nothing of it stays', async () => {
    const { send, uploads } = await openWithLists(16e9, 15.99e9);
    expect((await send(listOf(40e6))).body).toMatchObject({ status: 507, code: 'no_space' });
    expect(readdirSync(uploads)).toHaveLength(2);
  });

  test('are given up where nothing comes for a minute', async () => {
    const { harness } = await openWithLists();
    const store = new Uploads(harness.stateDir);
    const { list } = await store.open('list.csv', 0);
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    onTestFinished(() => void vi.useRealTimers());
    const written = store.write(new ReadableStream(), list);
    vi.advanceTimersByTime(60_000);
    await expect(written).rejects.toMatchObject({ kind: 'slow' });
  });

  test('are refused at once where one says that it is too large', async () => {
    const { url, token, path } = await openWithLists();
    const socket = connect(Number(new URL(url).port), '127.0.0.1');
    onTestFinished(() => void socket.destroy());
    let answer = '';
    socket.on('data', (chunk) => {
      answer += String(chunk);
    });
    const head = ['host: 127.0.0.1', 'content-type: text/csv', `authorization: Bearer ${await token('operate')}`];
    socket.write(`POST /api/v1${path} HTTP/1.1\r\n${head.join('\r\n')}\r\ncontent-length: 16000000001\r\n\r\nid\n`);
    await until('it is answered', () => answer.includes('\r\n\r\n'));
    expect(answer).toMatch(/^HTTP\/1\.1 413 /);
  });
});
