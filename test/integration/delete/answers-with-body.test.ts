import { setTimeout as sleep } from 'node:timers/promises';
import { describe, test } from 'vitest';
import { TargetConnection } from '../../../src/delete/send-delete.ts';
import { type Answer, noContent } from '../../../src/delete/verdict.ts';
import { bearerForm } from '../../../src/model/resource.ts';
import { type Framing, openBodyServer } from '../../support/body-server.ts';
import type { AtEnd } from '../../support/harness.ts';
import { until } from '../../support/processes.ts';
import { startProxy } from '../../support/relay.ts';

/** A connection to such a server; `noted` are the paths whose 204 came with a body. */
async function open(atEnd: AtEnd, framing: Framing, proxy: string | null = null, answerMs = 2) {
  const server = await openBodyServer(atEnd, framing, { answerMs });
  const options = { origin: server.url, requestTimeoutMs: 60_000, ca: null, proxy };
  const connection = new TargetConnection(options);
  atEnd(async () => connection.close());
  const noted: string[] = [];
  const send = (path: string) =>
    new Promise<Answer | null>((done) => {
      const request = {
        path,
        form: bearerForm,
        authorization: 'Bearer t',
        maySend: () => true,
        noteBody: () => void noted.push(path),
      };
      connection.send(request, done);
    });
  return { server, send, noted };
}

const paths = ['/a', '/b', '/c', '/d'];

describe.concurrent('a 204 with a body', () => {
  test.for(['length', 'lengthOnly', 'chunked', 'samePacket', 'lengthAndAnswer', 'samePacketAnswer'] as const)(
    'is a 204, noted for its own request, and leaves nothing for the next one: %s',
    async (framing, { expect, onTestFinished }) => {
      const { server, send, noted } = await open(onTestFinished, framing);
      for (const path of paths) expect(await send(path)).toBe(noContent);
      await until('the last one is noted', () => noted.length >= paths.length);
      expect(noted).toEqual(paths);
      // Each had a connection of its own: what was left on one answered no other request.
      expect([server.requests, server.connections()]).toEqual([paths, paths.length]);
      expect(await send('/a')).toMatchObject({ status: 404 });
    },
  );

  test('is noted when its body comes in a later packet and the connection is idle', async ({
    expect,
    onTestFinished,
  }) => {
    const { send, noted } = await open(onTestFinished, 'laterPacket');
    expect(await send('/a')).toBe(noContent);
    expect(noted).toEqual([]);
    await until('it is noted', () => noted.length > 0);
    expect(noted).toEqual(['/a']);
    expect(await send('/b')).toBe(noContent);
  });

  test('leaves the request in doubt that its late body meets, and no other: later ones have a connection each', async ({
    expect,
    onTestFinished,
  }) => {
    const { server, send, noted } = await open(onTestFinished, 'laterPacket', null, 30);
    expect(await send('/a')).toBe(noContent);
    expect(await send('/b')).toMatchObject({ kind: 'maybe-sent', code: 'protocol' });
    expect(noted).toEqual(['/a']);
    expect(await send('/b')).toMatchObject({ status: 404 }); // it was executed
    for (const path of ['/c', '/d']) expect(await send(path)).toBe(noContent);
    expect(server.requests).toEqual(['/a', '/b', '/b', '/c', '/d']);
  });

  test.for(['length', 'samePacket', 'laterPacket'] as const)(
    'is noted through a proxy, too: %s',
    async (framing, { expect, onTestFinished }) => {
      const proxy = await startProxy();
      onTestFinished(proxy.close);
      const { send, noted } = await open(onTestFinished, framing, `http://127.0.0.1:${proxy.port}`);
      expect(await send('/a')).toBe(noContent);
      await until('it is noted', () => noted.length > 0);
      expect(noted).toEqual(['/a']);
    },
  );
});

describe.concurrent('a 204 without a body', () => {
  test.for(['proper', 'lengthZero'] as const)(
    'is not noted, and its connection serves the next request: %s',
    async (framing, { expect, onTestFinished }) => {
      const { server, send, noted } = await open(onTestFinished, framing);
      for (const path of paths) expect(await send(path)).toBe(noContent);
      await sleep(50);
      expect([noted, server.connections()]).toEqual([[], 1]);
    },
  );
});
