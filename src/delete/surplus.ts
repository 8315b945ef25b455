import type { HeaderFields } from '../http/retry-after.ts';

// HTTP allows no body in a 204. If a body comes anyway, its bytes must not answer the next request:
// - If headers announce it, undici closes the connection after the 204.
// - If it comes unannounced, before the next request is written, undici closes the connection.
// - If it comes while the next request waits for its answer, bytes that do not begin an answer end that request as `maybe-sent`, so its id is in
//   doubt. From then on each request of that connection has a socket of its own, on which a late body is no longer noticed.
// Only a late body that is itself a whole HTTP answer looks like the answer to the next request.

/** Whether the headers of a 204 announce a body. Many servers send a length of 0, which does not. Pure, and called for each 204. */
export function announcesBody(headers: HeaderFields): boolean {
  return Number(headers['content-length'] ?? 0) > 0 || headers['transfer-encoding'] !== undefined;
}

/**
 * Whether undici closed a socket because bytes came after an answer; undici reports it only in words. `isWaiting`: a request was waiting for its
 * answer, so the bytes had to begin an answer; otherwise no bytes were expected. Pure.
 */
export function isSurplus({ name, message }: Error, isWaiting: boolean): boolean {
  if (isWaiting) return name === 'HTTPParserError' && message.includes('(Expected HTTP/');
  return name === 'SocketError' && message === 'bad response';
}
