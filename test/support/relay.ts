import { once } from 'node:events';
import { createServer as createHttpServer } from 'node:http';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';

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

/** An HTTP proxy that knows CONNECT and nothing else, and counts the tunnels. */
export async function startProxy(): Promise<Relay> {
  const server = createHttpServer((_, response) => response.writeHead(405).end());
  server.on('connect', (request, client: Socket) => {
    const { hostname, port } = new URL(`http://${request.url}`);
    const upstream = connect(Number(port), hostname, () => client.write('HTTP/1.1 200 Connection established\r\n\r\n'));
    join(client, upstream);
  });
  return listenAndCount(server, 'connect');
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
