import { once } from 'node:events';
import type { AddressInfo, Server } from 'node:net';
import { createAdaptorServer } from '@hono/node-server';
import type { Hono } from 'hono';
import { type ListenAddress, listenText } from '../../config/parse-setting.ts';
import { ExpungeError } from '../../errors.ts';
import type { Log } from '../../logger.ts';
import { listenTrouble } from '../../system-words.ts';
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
    const { words, next } = listenTrouble(error);
    throw new ExpungeError('USAGE', `--http ${listenText({ host, port })}: ${words}`, { cause: error, next });
  }
}
