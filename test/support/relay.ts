import { once } from 'node:events';
import { createServer as createHttpServer } from 'node:http';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';

/** Something between a command and its API. */
export type Relay = { port: number; connections: number; close(): Promise<void> };

/** Passes on every connection to a server on this machine, and counts them; with a certificate it speaks TLS to the outside. */
export async function startRelay(targetUrl: string, tls?: { key: string; cert: string }): Promise<Relay> {
  const port = Number(new URL(targetUrl).port);
  const pass = (client: Socket) => join(client, connect(port, '127.0.0.1'));
  return present(tls ? createTlsServer(tls, pass) : createServer(pass), tls ? 'secureConnection' : 'connection');
}

/** An HTTP proxy that knows CONNECT and nothing else, and counts the tunnels. */
export async function startProxy(): Promise<Relay> {
  const server = createHttpServer((_, response) => response.writeHead(405).end());
  server.on('connect', (request, client: Socket) => {
    const { hostname, port } = new URL(`http://${request.url}`);
    const there = connect(Number(port), hostname, () => client.write('HTTP/1.1 200 Connection established\r\n\r\n'));
    join(client, there);
  });
  return present(server, 'connect');
}

function join(client: Socket, there: Socket): void {
  const drop = () => {
    client.destroy();
    there.destroy();
  };
  client.on('error', drop).on('close', drop).pipe(there);
  there.on('error', drop).on('close', drop).pipe(client);
}

async function present(server: Server, counted: string): Promise<Relay> {
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
