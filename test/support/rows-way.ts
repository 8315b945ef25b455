import { once } from 'node:events';
import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { AtEnd } from './harness.ts';

/** Starts a server on this machine until the test is over, and returns its URL. */
export async function listen(server: Server, atEnd: AtEnd): Promise<string> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  atEnd(async () => void server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** A way to a server of expunge on which `end` ends the answers with rows. */
export function openRowsWay(
  url: string,
  end: (answer: ServerResponse, text: string) => unknown,
  atEnd: AtEnd,
): Promise<string> {
  const way = createServer(async ({ url: path, headers }, answer) => {
    const got = await fetch(url + path, { headers: { authorization: headers.authorization!, connection: 'close' } });
    const text = await got.text();
    answer.statusCode = got.status;
    answer.setHeader('content-type', got.headers.get('content-type')!);
    if (/\/(report|outcomes)\b/.test(path!)) end(answer, text);
    else answer.end(text);
  });
  return listen(way, atEnd);
}
