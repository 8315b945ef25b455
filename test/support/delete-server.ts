import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { AtEnd } from './harness.ts';

/** A server that answers each DELETE as it is told to, and the paths it was asked for. */
export type DeleteServer = { url: string; seen: string[] };

/** `statusOf`: the status for a path, of which this is the nth request, counted from 1. */
export async function openDeleteServer(
  atEnd: AtEnd,
  statusOf: (path: string, nth: number) => number | Promise<number>,
): Promise<DeleteServer> {
  const seen: string[] = [];
  const server = createServer(async (request, response) => {
    const path = request.url!;
    seen.push(path);
    const status = await statusOf(path, seen.filter((one) => one === path).length);
    response.writeHead(status).end(status === 204 ? undefined : `answer ${status}`);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  atEnd(async () => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, seen };
}

/**
 * A server whose objects are all there until it deletes them: then it answers 404. It answers 204 for the ids of `ignored`, too, the first time,
 * and leaves them.
 */
export function forgetful(ignored: (path: string) => boolean): (path: string, nth: number) => number {
  return (path, nth) => (nth === 1 || (nth === 2 && ignored(path)) ? 204 : 404);
}
