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
  /** Closes its port: who connects is refused, until it is back. */
  leave(): Promise<void>;
  comeBack(): Promise<void>;
};

export async function openReceiver(atEnd: AtEnd): Promise<ReceiverServer> {
  const server = createServer((request, response) => void handle(request, response));
  const listen = (port: number) => new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
  const leave = async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  };
  await listen(0);
  atEnd(leave);
  const { port } = server.address() as AddressInfo;
  const receiver: ReceiverServer = {
    url: `http://127.0.0.1:${port}`,
    received: [],
    open: new Set(),
    files: () =>
      new Map(receiver.received.filter(({ status }) => status === 200).map(({ path, body }) => [path, body])),
    answer: () => 200,
    leave,
    comeBack: () => listen(port),
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
