import { once } from 'node:events';
import { createServer as createHttpServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';
import type { AtEnd } from './harness.ts';

/** Something between a command and its API. */
export type Relay = { port: number; connections: number; close(): Promise<void> };

/** Passes on every connection to a server on this machine, and counts them; with a certificate it speaks TLS to the outside. */
export async function startRelay(targetUrl: string, tls?: { key: string; cert: string }): Promise<Relay> {
  const port = Number(new URL(targetUrl).port);
  const forward = (client: Socket) => join(client, connect(port, '127.0.0.1'));
  return listenAndCount(
    tls ? createTlsServer(tls, forward) : createServer(forward),
    tls ? 'secureConnection' : 'connection',
  );
}

/** An HTTP proxy that knows CONNECT and nothing else, and counts the tunnels. Each is open `opensAfter` that. */
export async function startProxy(opensAfter: Promise<unknown> = Promise.resolve()): Promise<Relay> {
  const server = createHttpServer((_, response) => response.writeHead(405).end());
  server.on('connect', async (request, client: Socket) => {
    await opensAfter;
    const { hostname, port } = new URL(`http://${request.url}`);
    const upstream = connect(Number(port), hostname, () => client.write('HTTP/1.1 200 Connection established\r\n\r\n'));
    join(client, upstream);
  });
  return listenAndCount(server, 'connect');
}

type Relayed = {
  asked: IncomingMessage;
  answer: ServerResponse;
  /** Has the server do it. What it says goes to `answer`; null: the connection breaks instead. */
  forward(answer: ServerResponse | null): void;
};

/** The URL of something between a command and its server, which decides about each request. */
export async function relayRequests(
  atEnd: AtEnd,
  url: string,
  decide: (one: Relayed) => void | Promise<void>,
): Promise<string> {
  const server = createHttpServer((asked, answer) => {
    const forward: Relayed['forward'] = (to) => {
      const { method, url: path, headers } = asked;
      const sent = request(url + path, { method, headers }, (got) => {
        if (to === null) got.resume().on('end', () => answer.destroy());
        else got.pipe(to.writeHead(got.statusCode!, got.headers));
      });
      asked.pipe(sent);
    };
    void decide({ asked, answer, forward });
  });
  const relay = await listenAndCount(server, 'request');
  atEnd(relay.close);
  return `http://127.0.0.1:${relay.port}`;
}

function join(client: Socket, upstream: Socket): void {
  const drop = () => {
    client.destroy();
    upstream.destroy();
  };
  client.on('error', drop).on('close', drop).pipe(upstream);
  upstream.on('error', drop).on('close', drop).pipe(client);
}

async function listenAndCount(server: Server, counted: string): Promise<Relay> {
  const sockets = new Set<Socket>();
  server.on('connection', (socket: Socket) => sockets.add(socket));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const relay: Relay = {
    port: (server.address() as AddressInfo).port,
    connections: 0,
    close: async () => {
      server.close();
      for (const socket of sockets) socket.destroy();
      await once(server, 'close');
    },
  };
  server.on(counted, () => {
    relay.connections += 1;
  });
  return relay;
}
