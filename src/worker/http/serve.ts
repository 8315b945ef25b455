import { once } from 'node:events';
import type { AddressInfo, Server } from 'node:net';
import { createAdaptorServer } from '@hono/node-server';
import type { Hono } from 'hono';
import { ExpungeError, systemCode } from '../../errors.ts';
import type { Log } from '../../logger.ts';
import { type ListenAddress, listenText } from '../../parse-setting.ts';
import type { Part } from '../parts.ts';

const connectionsAtMost = 128;

/** The part that answers HTTP. It stands first in the list, so that it tells of starting and draining, too. Throws USAGE where it cannot listen. */
export function httpPart(address: ListenAddress, app: Hono, log: Log): Part {
  const server = createAdaptorServer({ fetch: app.fetch, overrideGlobalObjects: false }) as Server & {
    closeAllConnections(): void;
  };
  server.maxConnections = connectionsAtMost;
  return {
    name: 'http',
    start: async () => {
      await listen(server, address);
      const { address: host, port } = server.address() as AddressInfo;
      log.info({ http: `http://${listenText({ host, port })}` }, 'listening');
    },
    drain: () => {
      server.close();
      server.closeAllConnections();
    },
  };
}

async function listen(server: Server, { host, port }: ListenAddress): Promise<void> {
  try {
    server.listen(port, host);
    await once(server, 'listening');
  } catch (error) {
    const code = systemCode(error);
    const why = `--http ${listenText({ host, port })}: ${whyNot[code] ?? code}`;
    throw new ExpungeError('USAGE', why, {
      cause: error,
      next: 'choose another port, or another address of this machine',
    });
  }
}

const whyNot: Record<string, string> = {
  EADDRINUSE: 'something listens there already',
  EADDRNOTAVAIL: 'this machine has no such address',
  EACCES: 'no permission to listen there',
  ENOTFOUND: 'no such host',
  ERR_SOCKET_BAD_PORT: 'there is no such port',
};
