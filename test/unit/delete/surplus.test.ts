import { describe, expect, test } from 'vitest';
import { announcesBody, isSurplus } from '../../../src/delete/surplus.ts';

describe('a body of a 204', () => {
  test.for([
    [{}, false],
    [{ 'content-length': '0' }, false],
    [{ 'content-length': '00' }, false],
    [{ 'content-length': '1' }, true],
    [{ 'content-length': '5', 'content-type': 'text/html' }, true],
    [{ 'content-type': 'text/html' }, false],
    [{ 'transfer-encoding': 'chunked' }, true],
    [{ 'transfer-encoding': 'identity' }, true],
  ] as const)('is announced by its length or encoding: %j %s', ([headers, expected]) => {
    expect(announcesBody(headers)).toBe(expected);
  });

  const notHttp = 'Response does not match the HTTP/1.1 protocol (Expected HTTP/, RTSP/ or ICE/)';
  test.for([
    ['SocketError', 'bad response', false, true],
    ['SocketError', 'other side closed', false, false],
    ['InformationalError', 'reset', false, false],
    ['HTTPParserError', notHttp, true, true],
    ['HTTPParserError', 'Response does not match the HTTP/1.1 protocol (Invalid header token)', true, false],
    ['SocketError', 'bad response', true, false], // a 100 as the only answer
    ['SocketError', 'other side closed', true, false],
    ['Error', 'read ECONNRESET', true, false],
  ] as const)(
    'is what closed the socket: %s "%s", while a request waits: %s → %s',
    ([name, message, isWaiting, is]) => {
      expect(isSurplus(Object.assign(new Error(message), { name }), isWaiting)).toBe(is);
    },
  );
});
