import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import type { AtEnd } from './harness.ts';

/** A server that writes what it is told, byte for byte, and the requests it got: each with its line and its headers. */
export type RawServer = { url: string; seen: string[] };

/** The bytes of an answer. `isCutOff`: the connection ends behind them. */
export type RawAnswer = { bytes: string; isCutOff?: boolean };

/** `answer`: what to write for a request, of which this is the nth for its path, counted from 1. */
export async function openRawServer(
  atEnd: AtEnd,
  answer: (request: string, nth: number) => RawAnswer,
): Promise<RawServer> {
  const seen: string[] = [];
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket.on('error', () => {}));
    let received = '';
    socket.on('data', (data) => {
      received += data.toString('latin1');
      const end = received.indexOf('\r\n\r\n');
      if (end === -1) return;
      const request = received.slice(0, end);
      received = received.slice(end + 4);
      seen.push(request);
      const [line] = request.split('\r\n');
      const { bytes, isCutOff } = answer(request, seen.filter((other) => other.startsWith(`${line}\r\n`)).length);
      if (isCutOff) socket.end(bytes);
      else socket.write(bytes);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  atEnd(async () => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, seen };
}

/** A complete answer. */
export function rawAnswer(status: number, body = '', headers: readonly string[] = []): RawAnswer {
  const length = status === 204 ? [] : [`Content-Length: ${Buffer.byteLength(body)}`];
  return { bytes: [`HTTP/1.1 ${status} Status`, ...length, ...headers, '', body].join('\r\n') };
}
