import { Readable } from 'node:stream';
import type { Client, ProxyAgent } from 'undici';
import { describeConnectionError } from '../system-errors.ts';

/** The way to connect to a server that gets few requests, like an authorization server or a receiver of results. */
export type Route = { ca: string | null; proxy: string | null };

/** A request to such a server. `body` is read once, as fast as the server takes it. */
export type OneRequest = {
  method: 'GET' | 'POST' | 'PUT';
  url: string;
  headers: Record<string, string>;
  body: string | AsyncIterable<Uint8Array> | null;
  /** The time in ms after which the request is given up if neither side sent anything. */
  idleMs: number;
  /** Aborting it gives the request up. */
  signal: AbortSignal;
};

const connectMs = 5_000;

/** A connection to one origin. The caller destroys it after its request. Few commands send one, so the library is loaded here. */
export async function openDispatcher(origin: string, { ca, proxy }: Route): Promise<Client | ProxyAgent> {
  const { Client, ProxyAgent } = await import('undici');
  const connect = { timeout: connectMs, ...(ca === null ? {} : { ca }) };
  const shared = { allowH2: false, connect };
  if (proxy === null) return new Client(origin, shared);
  return new ProxyAgent({ ...shared, uri: proxy, requestTls: connect, connections: 1, proxyTunnel: true });
}

/**
 * Sends one request on a connection of its own, and returns the status of the answer. Redirects are not followed. Throws an Error that says in words
 * why no answer came. The error names neither the URL nor a header, which may hold secrets.
 */
export async function sendOnce(route: Route, request: OneRequest): Promise<number> {
  const { origin, pathname, search } = new URL(request.url);
  const dispatcher = await openDispatcher(origin, route);
  const idle = new AbortController();
  const timer = setTimeout(() => idle.abort(), request.idleMs);
  try {
    const signal = AbortSignal.any([request.signal, idle.signal]);
    const { method, headers, idleMs } = request;
    const isWhole = typeof request.body === 'string' || request.body === null;
    const body = isWhole
      ? (request.body as string | null)
      : Readable.from(read(request.body as AsyncIterable<Uint8Array>, timer));
    const timeouts = { headersTimeout: idleMs, bodyTimeout: idleMs };
    const options = { origin, path: pathname + search, method, headers, signal, ...timeouts };
    const answer = await dispatcher.request({ ...options, body });
    return answer.statusCode; // the body of the answer is of no use here
  } catch (error) {
    if (request.signal.aborted) throw new Error('stopped', { cause: error });
    if (idle.signal.aborted) throw new Error(`no answer in ${request.idleMs / 1_000} s`, { cause: error });
    throw new Error(describeConnectionError(error), { cause: error });
  } finally {
    clearTimeout(timer);
    await dispatcher.destroy();
  }
}

/** Why a server with this status has not done what it was asked; '' if it has. Pure. */
export function statusProblem(status: number): string {
  if (status >= 200 && status < 300) return '';
  const isRedirect = status >= 300 && status < 400;
  return isRedirect ? `it answers ${status}, a redirect, which is not followed` : `it answers ${status}`;
}

/** The body. The timer restarts with each part that the server takes. */
async function* read(body: AsyncIterable<Uint8Array>, timer: NodeJS.Timeout): AsyncGenerator<Uint8Array> {
  for await (const part of body) {
    timer.refresh();
    yield part;
  }
}
