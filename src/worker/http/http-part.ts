import { once } from 'node:events';
import type { AddressInfo, Server } from 'node:net';
import { createAdaptorServer } from '@hono/node-server';
import type { Hono } from 'hono';
import { type ListenAddress, listenText } from '../../config/parse-setting.ts';
import { ExpungeError } from '../../errors.ts';
import { explainListenError } from '../../system-errors.ts';
import type { Part } from '../parts.ts';

const connectionsAtMost = 512;
const requestTimeoutMs = 3_600_000; // a list that is sent may be large
// Who sends no whole header holds a connection no longer than this: nobody who is not logged in keeps probes from getting one.
const late = { headersTimeout: 5_000, connectionsCheckingInterval: 1_000 };

export type HttpPartOptions = {
  flag: string; // what names the address: --http
  /** Called with the URL once it listens. */
  onListening(url: string): void;
};

/** It is the first part of a process, so that it also answers while the others start and drain. Its start throws USAGE if it cannot listen there. */
export function httpPart(address: ListenAddress, app: Hono, { flag, onListening }: HttpPartOptions): Part {
  const adapted = { fetch: app.fetch, overrideGlobalObjects: false, serverOptions: late };
  const server = createAdaptorServer(adapted) as Server & {
    closeAllConnections(): void;
    requestTimeout: number;
  };
  server.maxConnections = connectionsAtMost;
  server.requestTimeout = requestTimeoutMs;
  return {
    name: 'http',
    start: async () => {
      await listen(server, address, flag);
      const { address: host, port } = server.address() as AddressInfo;
      onListening(`http://${listenText({ host, port })}`);
    },
    drain: () => {
      server.close();
      server.closeAllConnections();
    },
  };
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
