import type { HeaderFields } from '../http/retry-after.ts';

// HTTP allows a 204 no body. If one comes all the same, its bytes must not answer the next request:
// - Headers announce it: undici closes the connection behind the 204.
// - It comes unannounced, before the next request is written: undici closes the connection.
// - It comes while the next request waits for its answer: bytes that do not begin an answer end that request as `maybe-sent`, so its id is in
//   doubt. From then on each request of that connection has a socket of its own, on which no late body is noticed any more.
// Only a late body that is itself a whole HTTP answer looks like the answer to the next request; `--strict-connections` rules it out.

/** Whether the headers of a 204 announce a body. Many servers send a length of 0, which announces none. Pure, and called for each 204. */
export function announcesBody(headers: HeaderFields): boolean {
  return Number(headers['content-length'] ?? 0) > 0 || headers['transfer-encoding'] !== undefined;
}

/**
 * Whether undici closed a socket because bytes came behind an answer; it says so in words only. `isWaiting`: a request was waiting for its
 * answer, so what came had to begin one; else nothing had to come. Pure.
 */
export function isSurplus({ name, message }: Error, isWaiting: boolean): boolean {
  if (isWaiting) return name === 'HTTPParserError' && message.includes('(Expected HTTP/');
  return name === 'SocketError' && message === 'bad response';
}
