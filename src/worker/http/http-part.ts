import { once } from 'node:events';
import type { AddressInfo, Server, Socket } from 'node:net';
import { createAdaptorServer } from '@hono/node-server';
import type { Hono } from 'hono';
import { type ListenAddress, listenText } from '../../config/parse-setting.ts';
import { ExpungeError } from '../../errors.ts';
import { boundStrangers } from '../../http/strangers.ts';
import { explainListenError } from '../../system-errors.ts';
import type { Part } from '../parts.ts';

const requestTimeoutMs = 3_600_000; // an uploaded list may be large; unauthenticated clients get less time
// A client that sends no whole header holds a connection no longer than this, so clients that are not logged in cannot block the probes.
const late = { headersTimeout: 5_000, connectionsCheckingInterval: 1_000 };

const stalledMs = 60_000;
const looksPerLimit = 4;

type HttpPartOptions = {
  flag: string; // what names the address: --http
  /** The time for which a connection may take nothing of the answer that waits for it, in ms. */
  stalledMs?: number;
  /** Called with the URL once it listens. */
  onListening(url: string): void;
};

/**
 * The part that serves HTTP. It is the first part of a process, so that it answers while the others start and drain. Its start throws USAGE if it
 * cannot listen there.
 */
export function httpPart(address: ListenAddress, app: Hono, options: HttpPartOptions): Part {
  const { flag, onListening } = options;
  const adapted = { fetch: app.fetch, overrideGlobalObjects: false, serverOptions: late };
  const server = createAdaptorServer(adapted) as Server & {
    closeAllConnections(): void;
    requestTimeout: number;
  };
  boundStrangers(server);
  server.requestTimeout = requestTimeoutMs;
  const stopLooking = closeStalled(server, options.stalledMs ?? stalledMs);
  return {
    name: 'http',
    start: async () => {
      await listen(server, address, flag);
      const { address: host, port } = server.address() as AddressInfo;
      onListening(`http://${listenText({ host, port })}`);
    },
    drain: () => {
      stopLooking();
      server.close();
      server.closeAllConnections();
    },
  };
}

/**
 * Closes each connection that takes nothing of an answer for `ms`: otherwise it and the unsent data would stay for ever. Data that its peer sends in
 * the meantime does not count. Returns a function that ends this.
 */
function closeStalled(server: Server, ms: number): () => void {
  const known = new Map<Socket, { taken: number; at: number }>();
  server.on('connection', (socket: Socket) => {
    known.set(socket, { taken: 0, at: performance.now() });
    socket.once('close', () => known.delete(socket));
  });
  const look = () => {
    const now = performance.now();
    for (const [socket, last] of known) {
      const taken = socket.bytesWritten - socket.writableLength; // bytesWritten also counts waiting bytes
      if (socket.writableLength === 0 || taken !== last.taken) known.set(socket, { taken, at: now });
      else if (now - last.at >= ms) socket.destroy();
    }
  };
  const timer = setInterval(look, ms / looksPerLimit).unref();
  return () => clearInterval(timer);
}

async function listen(server: Server, { host, port }: ListenAddress, flag: string): Promise<void> {
  try {
    server.listen(port, host);
    await once(server, 'listening');
  } catch (error) {
    const { words, next } = explainListenError(error);
    throw new ExpungeError('USAGE', `${flag} ${listenText({ host, port })}: ${words}`, { cause: error, next });
  }
}
