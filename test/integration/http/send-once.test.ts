import { describe, expect, test } from 'vitest';
import { type OneRequest, sendOnce } from '../../../src/http/send-once.ts';
import { openReceiver } from '../../support/receiver.ts';

const direct = { ca: null, proxy: null };
const request: Omit<OneRequest, 'url'> = {
  method: 'PUT',
  headers: {},
  body: 'x',
  idleMs: 30_000,
  signal: new AbortController().signal,
};

async function* pieces(count: number, each: () => void = () => {}): AsyncGenerator<Uint8Array> {
  for (let n = 0; n < count; n++) {
    each();
    yield Buffer.alloc(65_536, 'x');
  }
}

describe('a request to a server that gets few', () => {
  test('returns the status, whatever it is, and follows no redirect', async ({ onTestFinished }) => {
    const [receiver, other] = [await openReceiver(onTestFinished), await openReceiver(onTestFinished)];
    const answers = [200, 404, 500, { location: other.url }];
    receiver.answer = () => answers[receiver.received.length]!;
    const statuses = [];
    for (const _ of answers) statuses.push(await sendOnce(direct, { ...request, url: `${receiver.url}/a?b=c` }));
    expect(statuses).toEqual([200, 404, 500, 307]);
    expect(receiver.received[0]).toMatchObject({ method: 'PUT', path: '/a?b=c', body: 'x' });
    expect(other.received).toEqual([]);
  });

  test('gives up a server that never answers', async ({ onTestFinished }) => {
    const receiver = await openReceiver(onTestFinished);
    receiver.answer = () => 'nothing';
    await expect(sendOnce(direct, { ...request, url: receiver.url, idleMs: 200 })).rejects.toThrow(
      'no answer in 0.2 s',
    );
  });

  test('says why a server is away, and names neither its address nor a header', async ({ onTestFinished }) => {
    const receiver = await openReceiver(onTestFinished);
    const url = receiver.url.replace(/\d+$/, '9');
    const headers = { authorization: 'Bearer geheim' };
    const sent = sendOnce(direct, { ...request, url: `${url}/verschwiegen`, headers });
    await expect(sent).rejects.toThrow(/^connection refused$/);
  });

  test('reads a body as fast as the server takes it, and stops with its signal', async ({ onTestFinished }) => {
    const receiver = await openReceiver(onTestFinished);
    const status = await sendOnce(direct, { ...request, url: receiver.url, body: pieces(40) });
    expect([status, receiver.received[0]!.body.length]).toEqual([200, 40 * 65_536]);
    const stop = new AbortController();
    let read = 0;
    const endless = pieces(Number.POSITIVE_INFINITY, () => {
      if (++read === 40) stop.abort();
    });
    const stopped = sendOnce(direct, { ...request, url: receiver.url, body: endless, signal: stop.signal });
    await expect(stopped).rejects.toThrow('stopped');
    expect(read).toBeLessThan(60);
  });
});
