import { Client, type Dispatcher, ProxyAgent } from 'undici';
import { connectionWords } from '../system-words.ts';

/** How to reach a server that is asked rarely, as the authorization server is. */
export type TokenRoute = { ca: string | null; proxy: string | null };

/** The request as `oauth4webapi` makes it. */
type TokenRequest = {
  method: 'POST';
  headers: Record<string, string>;
  body: URLSearchParams;
  signal?: AbortSignal | undefined;
};

/** No answer came: the message says why in words. */
export class NoAnswer extends Error {}

const deadlineMs = 10_000;
const bodyAtMost = 65_536;

/**
 * Sends one request for a token, on a connection of its own: it is rare, and nothing is left open. Redirects are not followed.
 * Throws NoAnswer when no whole answer of at most 64 KiB came within 10 s.
 */
export async function sendTokenRequest(route: TokenRoute, url: string, request: TokenRequest): Promise<Response> {
  const dispatcher = openDispatcher(new URL(url).origin, route);
  const given = new AbortController();
  const giveUp = () => given.abort(new NoAnswer('no answer'));
  const timer = setTimeout(() => given.abort(new NoAnswer(`no answer in ${deadlineMs / 1_000} s`)), deadlineMs);
  request.signal?.addEventListener('abort', giveUp, { once: true });
  if (request.signal?.aborted) giveUp();
  try {
    return await exchange(dispatcher, url, request, given.signal);
  } catch (error) {
    throw error instanceof NoAnswer ? error : new NoAnswer(connectionWords(error), { cause: error });
  } finally {
    clearTimeout(timer);
    request.signal?.removeEventListener('abort', giveUp);
    await dispatcher.destroy();
  }
}

async function exchange(
  dispatcher: Dispatcher,
  url: string,
  { method, headers, body }: TokenRequest,
  signal: AbortSignal,
): Promise<Response> {
  const { origin, pathname, search } = new URL(url);
  const options = { origin, path: pathname + search, method, headers, body: body.toString(), signal };
  const answer = await dispatcher.request(options);
  const text = await readBody(answer.body);
  // Without a body where the constructor wants none: those answers say nothing anyway.
  return new Response([204, 205, 304].includes(answer.statusCode) ? null : text, {
    status: answer.statusCode,
    headers: Object.entries(answer.headers).flatMap(([name, value]) =>
      [value ?? []].flat().map((one): [string, string] => [name, one]),
    ),
  });
}

async function readBody(body: AsyncIterable<Buffer>): Promise<string> {
  const parts: Buffer[] = [];
  let length = 0;
  for await (const part of body) {
    length += part.length;
    if (length > bodyAtMost) throw new NoAnswer('its answer is too long');
    parts.push(part);
  }
  return Buffer.concat(parts).toString('utf8');
}

/** A connection of its own to one origin; to be destroyed after one request. */
export function openDispatcher(origin: string, { ca, proxy }: TokenRoute): Client | ProxyAgent {
  const connect = { timeout: deadlineMs / 2, ...(ca === null ? {} : { ca }) };
  const shared = { allowH2: false, connect };
  if (proxy === null) return new Client(origin, shared);
  return new ProxyAgent({ ...shared, uri: proxy, requestTls: connect, connections: 1, proxyTunnel: true });
}
