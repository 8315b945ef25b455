import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { type AddressInfo, createServer as createTcpServer, type Server } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { toExcerpt } from '../../../src/delete/delete-id.ts';
import { reachOrigin, TargetConnection, type TargetConnectionOptions } from '../../../src/delete/send-delete.ts';
import { explainAnswer } from '../../../src/delete/target-limits.ts';
import type { Answer } from '../../../src/delete/verdict.ts';
import { bearerForm } from '../../../src/model/resource.ts';

type Seen = { method?: string; url?: string; authorization?: string; connection?: string };

async function listen(server: Server): Promise<string> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** A lane to a server that answers as given, and what the server saw. */
async function openLane(
  answer: (request: IncomingMessage, response: ServerResponse) => void,
  odd: Partial<TargetConnectionOptions> = {},
) {
  const seen: Seen[] = [];
  const server = createServer((request, response) => {
    const { authorization, connection } = request.headers;
    const { method, url } = request;
    seen.push({
      ...(method && { method }),
      ...(url && { url }),
      ...(authorization && { authorization }),
      ...(connection && { connection }),
    });
    answer(request, response);
  });
  let connections = 0;
  server.on('connection', () => connections++);
  const origin = await listen(server);
  const options = { origin, requestTimeoutMs: 10_000, ca: null, proxy: null, ...odd };
  const lane = new TargetConnection(options);
  onTestFinished(() => {
    lane.close();
    server.closeAllConnections();
    server.close();
  });
  const send = (path: string, authorization = 'Bearer t', maySend = () => true) =>
    new Promise<Answer | null>((done) =>
      lane.send({ path, form: bearerForm, authorization, maySend, noteBody: () => {} }, done),
    );
  return { lane, send, seen, options, connections: () => connections };
}

const noContent = (_: IncomingMessage, response: ServerResponse) => void response.writeHead(204).end();

test('a lane sends DELETEs one after another over one connection, each with the header it was given', async () => {
  const { send, seen, connections } = await openLane(noContent);
  expect(await send('/a', 'Bearer one')).toMatchObject({ status: 204 });
  expect(await send('/b', 'Bearer two')).toMatchObject({ status: 204 });
  const told = seen.map(({ method, url, authorization }) => [method, url, authorization]);
  expect(told).toEqual([
    ['DELETE', '/a', 'Bearer one'],
    ['DELETE', '/b', 'Bearer two'],
  ]);
  expect(connections()).toBe(1);
});

test('a request without an answer ends at its deadline, and the next one has a deadline of its own', async () => {
  let answers = false;
  const { send, options } = await openLane((request, response) => answers && noContent(request, response), {
    requestTimeoutMs: 100,
  });
  expect(await send('/a')).toEqual({ kind: 'maybe-sent', code: 'timeout', why: 'no answer in time' });
  answers = true;
  options.requestTimeoutMs = 2_000; // a busy machine may take more than 100 ms to answer
  expect(await send('/b')).toMatchObject({ status: 204 });
  answers = false;
  expect(await send('/c')).toMatchObject({ kind: 'maybe-sent', code: 'timeout' });
});

test('a lane that is closed says of its request that it may have been executed', async () => {
  const { lane, send, seen } = await openLane(() => lane.close());
  expect(await send('/a')).toMatchObject({ kind: 'maybe-sent', code: 'reset' });
  expect(seen).toHaveLength(1);
});

test('a request that gets no connection through its proxy in time was never sent', async () => {
  const proxy = createTcpServer(() => {}); // takes connections and says nothing
  const address = await listen(proxy);
  onTestFinished(() => void proxy.close());
  const { send, seen } = await openLane(noContent, { proxy: address, requestTimeoutMs: 100 });
  expect(await send('/a')).toEqual({ kind: 'not-sent', why: 'CONNECT_TIMEOUT' });
  expect(await send('/b')).toEqual({ kind: 'not-sent', why: 'CONNECT_TIMEOUT' });
  expect(seen).toEqual([]);
});

test('a request that may no longer be sent once its connection is there is not written, and the connection serves the next', async () => {
  const { send, seen, connections } = await openLane(noContent);
  let asked = 0;
  const notAnyMore = () => ++asked === 0;
  expect(await send('/a', 'Bearer t', notAnyMore)).toBeNull();
  expect(asked).toBe(1);
  expect(await send('/b')).toMatchObject({ status: 204 });
  expect(seen.map(({ url }) => url)).toEqual(['/b']);
  expect(connections()).toBe(1);
});

test('a check of the connection sends nothing, and says why there is none', async () => {
  const { options, seen } = await openLane(noContent);
  await expect(reachOrigin(options)).resolves.toBeUndefined();
  expect(seen).toEqual([]);
  const gone = createTcpServer();
  const origin = await listen(gone);
  await new Promise((resolve) => gone.close(resolve));
  await expect(reachOrigin({ ...options, origin })).rejects.toMatchObject({ code: 'ECONNREFUSED' });
  const silent = createTcpServer(() => {});
  const proxy = await listen(silent);
  onTestFinished(() => void silent.close());
  await expect(reachOrigin({ ...options, proxy, requestTimeoutMs: 100 })).rejects.toMatchObject({
    code: 'CONNECT_TIMEOUT',
  });
});

test('headers of up to 64 kB are read, and more are said to be that', async () => {
  const large = (request: IncomingMessage, response: ServerResponse) =>
    void response.writeHead(204, { 'x-large': 'x'.repeat(request.url === '/a' ? 70_000 : 60_000) }).end();
  const { send } = await openLane(large);
  const answer = (await send('/a'))!;
  expect(answer).toMatchObject({ kind: 'maybe-sent', code: 'protocol', why: 'UND_ERR_HEADERS_OVERFLOW' });
  expect(toExcerpt(answer)).toBe('the headers of its answer are larger than 64 kB');
  expect(explainAnswer(answer)).toBe('the API gives no answers (the headers of its answer are larger than 64 kB)');
  expect(await send('/b')).toMatchObject({ status: 204 });
});
