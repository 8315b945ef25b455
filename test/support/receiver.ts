import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { AtEnd } from './harness.ts';

/** A request as it came. */
export type Received = {
  method: string;
  path: string; // with its query
  headers: Record<string, string | string[] | undefined>;
  body: string;
  status: number; // what it was answered
};

/** What a receiver answers: a status, a redirect to a URL, or nothing at all. */
type Answer = number | { location: string } | 'nothing';

/** A server that takes files and events, and remembers what came. `answer` decides about each request; it may wait. */
export type ReceiverServer = {
  url: string;
  /** In the order in which they were answered. */
  received: Received[];
  /** Paths of requests whose body has come and that are not answered yet. */
  open: Set<string>;
  /** The bodies of requests that were answered with 200, the last one of each path. */
  files(): Map<string, string>;
  answer: (request: Omit<Received, 'status'>) => Answer | Promise<Answer>;
};

export async function openReceiver(atEnd: AtEnd): Promise<ReceiverServer> {
  const server = createServer((request, response) => void handle(request, response));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  atEnd(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  const receiver: ReceiverServer = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    received: [],
    open: new Set(),
    files: () =>
      new Map(receiver.received.filter(({ status }) => status === 200).map(({ path, body }) => [path, body])),
    answer: () => 200,
  };
  const handle = async (request: IncomingMessage, response: ServerResponse) => {
    let body = '';
    try {
      for await (const part of request.setEncoding('utf8')) body += part;
    } catch {
      return; // its sender was killed
    }
    const came = { method: request.method!, path: request.url!, headers: request.headers, body };
    receiver.open.add(came.path);
    const answer = await receiver.answer(came);
    receiver.open.delete(came.path);
    if (answer === 'nothing') return;
    const status = typeof answer === 'number' ? answer : 307;
    receiver.received.push({ ...came, status });
    response.writeHead(status, typeof answer === 'number' ? {} : answer).end();
  };
  return receiver;
}
