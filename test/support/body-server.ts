import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import type { AtEnd } from './harness.ts';

const head = 'HTTP/1.1 204 No Content\r\n';

/** Ways to write a 204. HTTP allows it no body; a length of 0 says that there is none. */
export const framings = {
  proper: (socket) => void socket.write(`${head}\r\n`),
  lengthZero: (socket) => void socket.write(`${head}Content-Length: 0\r\n\r\n`),
  length: (socket) => void socket.write(`${head}Content-Length: 5\r\n\r\nhello`),
  lengthOnly: (socket) => void socket.write(`${head}Content-Length: 5\r\n\r\n`),
  chunked: (socket) => void socket.write(`${head}Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n`),
  samePacket: (socket) => void socket.write(`${head}\r\nhello`),
  laterPacket: (socket, later) => {
    socket.write(`${head}\r\n`);
    later(() => socket.write('hello'));
  },
  // What a cache or a broken proxy may send. It must not answer the next request.
  lengthAndAnswer: (socket) => void socket.write(`${head}Content-Length: 27\r\n\r\n${head}\r\n`),
  samePacketAnswer: (socket) => void socket.write(`${head}\r\n${head}\r\n`),
} satisfies Record<string, (socket: Socket, later: Later) => void>;

/** Calls what sends a body that comes in a later packet. */
type Later = (send: () => void) => void;

export type Framing = keyof typeof framings;

const soon: Later = (send) => void setTimeout(send, 10);

/**
 * A server that answers 204 in this framing to the first DELETE of each path and 404 to all others, so that a wrong outcome shows.
 * `answerMs`: how long an answer takes.
 */
export async function openBodyServer(atEnd: AtEnd, framing: Framing, { answerMs = 2, later = soon } = {}) {
  const deleted = new Set<string>();
  const requests: string[] = [];
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket.on('error', () => {}));
    socket.on('data', (data) => {
      for (const [, path = ''] of data.toString('latin1').matchAll(/^DELETE (\S+) /gm)) {
        const isThere = !deleted.has(path);
        requests.push(path);
        deleted.add(path);
        const notFound = () => socket.write('HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n');
        setTimeout(() => (isThere ? framings[framing](socket, later) : notFound()), answerMs);
      }
    });
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  atEnd(async () => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    deleted,
    requests,
    connections: () => sockets.size,
  };
}
