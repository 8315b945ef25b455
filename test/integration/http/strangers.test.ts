import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import { boundStrangers, noteMember } from '../../../src/http/strangers.ts';
import { until } from '../../support/processes.ts';

const longMs = 600_000;

/** A server with these limits, whose `/in` is that of somebody who is logged in. */
async function serve(limits: Parameters<typeof boundStrangers>[1]) {
  const answer: RequestListener = (request, response) => {
    if (request.url === '/in') noteMember(request.socket);
    if (request.method === 'GET') response.end('{}');
    else request.resume().once('end', () => response.end('{}'));
  };
  const server = createServer(answer);
  boundStrangers(server, limits);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  /** `said`: what was answered so far. `isOver`: whether the connection is closed. */
  const dial = async (text = '') => {
    const socket: Socket = connect(port, '127.0.0.1');
    onTestFinished(() => void socket.destroy());
    const peer = { socket, said: '', isOver: false };
    socket.on('error', () => {});
    socket.on('close', () => {
      peer.isOver = true;
    });
    socket.on('data', (data) => {
      peer.said += data;
    });
    await once(socket, 'connect');
    socket.write(text);
    return peer;
  };
  return { dial, ask: () => fetch(`http://127.0.0.1:${port}/healthz`) };
}

const long = { maxConnections: 512, wholeRequestMs: longMs };
const slowly = (method: string, path: string, bytes = 100_000) =>
  `${method} ${path} HTTP/1.1\r\nhost: x\r\ncontent-length: ${bytes}\r\n\r\n{`;

describe('a connection of somebody who is not logged in', () => {
  test('ends after the answer if its request is not read to the end', async () => {
    const { dial } = await serve(long);
    const peer = await dial(slowly('GET', '/healthz'));
    await until('it is answered', () => peer.said.includes('200 OK'));
    await until('it is closed', () => peer.isOver);
  });

  test.each([
    ['of a short body', '/healthz', 100_000],
    ['of a long body, and it is that of somebody who is', '/in', 3_000_000],
  ])('stays after the answer if the rest comes then %s', async (_, path, bytes) => {
    const { dial } = await serve(long);
    const peer = await dial(slowly('GET', path, bytes));
    await until('it is answered', () => peer.said.includes('200 OK'));
    peer.socket.write('x'.repeat(bytes - 1));
    peer.socket.write(`GET ${path} HTTP/1.1\r\nhost: x\r\n\r\n`);
    await until('the next request is answered', () => peer.said.split('200 OK').length === 3);
  });

  test('ends where its request takes too long, and not that of somebody who is', async () => {
    const { dial } = await serve({ maxConnections: 512, wholeRequestMs: 1_500 });
    const stranger = await dial(slowly('POST', '/login'));
    const member = await dial('GET /in HTTP/1.1\r\nhost: x\r\n\r\n');
    await until('the member is answered', () => member.said !== '');
    member.socket.write(slowly('POST', '/in'));
    await until('the stranger is closed', () => stranger.isOver);
    expect(member.isOver).toBe(false);
  });

  test('gives way to a new one where there are too many, and not that of somebody who is', async () => {
    const { dial, ask } = await serve({ maxConnections: 8, wholeRequestMs: longMs });
    const member = await dial('GET /in HTTP/1.1\r\nhost: x\r\n\r\n');
    await until('the member is answered', () => member.said !== '');
    const silent: Awaited<ReturnType<typeof dial>>[] = [];
    for (let n = 0; n < 20; n++) silent.push(await dial());
    expect((await ask()).status).toBe(200);
    await until('the oldest are closed', () => silent.filter(({ isOver }) => isOver).length >= 13);
    expect([member.isOver, silent[0]!.isOver, silent.at(-1)!.isOver]).toEqual([false, true, false]);
  });

  test('stays while there is room', async () => {
    const { dial, ask } = await serve(long);
    const silent = await Promise.all(Array.from({ length: 20 }, () => dial()));
    expect((await ask()).status).toBe(200);
    expect(silent.filter(({ isOver }) => isOver)).toEqual([]);
  });
});

describe('requests that are sent on one connection without waiting', () => {
  /** A server that answers when it is told to; `asked`: the paths that it was asked for so far. */
  async function serveHeld() {
    const asked: string[] = [];
    const held: (() => void)[] = [];
    const server = createServer((request, response) => {
      asked.push(request.url!);
      held.push(() => void response.end(request.url));
    });
    boundStrangers(server, long);
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    onTestFinished(() => {
      server.closeAllConnections();
      server.close();
    });
    const peer = { said: '', isOver: false };
    const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
    onTestFinished(() => void socket.destroy());
    socket.on('error', () => {});
    socket.on('close', () => {
      peer.isOver = true;
    });
    socket.on('data', (data) => {
      peer.said += data;
    });
    const ask = (paths: readonly string[]) =>
      socket.write(paths.map((path) => `GET ${path} HTTP/1.1\r\nhost: x\r\n\r\n`).join(''));
    return { asked, answerNext: () => held.shift()!(), peer, socket, ask };
  }

  test('are answered one at a time, in their order', async () => {
    const { asked, answerNext, peer, ask } = await serveHeld();
    ask(['/a', '/b', '/c']);
    await until('the first is asked for', () => asked.length > 0);
    for (const [n, path] of ['/a', '/b', '/c'].entries()) {
      await until(`${path} is asked for`, () => asked.length === n + 1);
      answerNext();
      await until(`${path} is answered`, () => peer.said.endsWith(path));
    }
    ask(['/d']);
    await until('a later one is asked for', () => asked.at(-1) === '/d');
  });

  test('are not begun any more once the connection is closed', async () => {
    const { asked, peer, socket, ask } = await serveHeld();
    ask(['/a', '/b']);
    await until('the first is asked for', () => asked.length > 0);
    socket.destroy();
    await until('it is closed', () => peer.isOver);
    expect(asked).toEqual(['/a']);
  });

  test('close it if they are too many', async () => {
    const { asked, peer, ask } = await serveHeld();
    ask(Array.from({ length: 50 }, (_, n) => `/${n}`));
    await until('it is closed', () => peer.isOver);
    expect(asked).toEqual(['/0']);
  });
});
