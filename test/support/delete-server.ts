import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { AtEnd } from './harness.ts';

/** A server that answers each DELETE as it is told to, and the paths it was asked for. */
export type DeleteServer = { url: string; seen: string[] };

/** An answer: its status, or all of it. Without a body, `answer 404` is the body of a 404. */
export type Told = number | { status: number; body: string; headers?: Record<string, string> };

/** `answerTo`: the answer for a path, of which this is the nth request, counted from 1. */
export async function openDeleteServer(
  atEnd: AtEnd,
  answerTo: (path: string, nth: number, authorization: string) => Told | Promise<Told>,
): Promise<DeleteServer> {
  const seen: string[] = [];
  const server = createServer(async (request, response) => {
    const path = request.url!;
    seen.push(path);
    const nth = seen.filter((one) => one === path).length;
    const told = await answerTo(path, nth, request.headers.authorization ?? '');
    const { status, body, headers = {} } = typeof told === 'number' ? { status: told, body: `answer ${told}` } : told;
    response.writeHead(status, headers).end(status === 204 ? undefined : body);
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
