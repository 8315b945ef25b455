import { describe, expect, test } from 'vitest';
import { Exchange } from '../../../src/delete/send-delete.ts';
import { type Answer, noContent } from '../../../src/delete/verdict.ts';
import { bearerForm } from '../../../src/model/resource.ts';

describe('exchange', () => {
  /** An exchange as the HTTP client drives it, and the answers it gave. */
  function openExchange(maySend = () => true, noteBody = () => {}) {
    const answers: (Answer | null)[] = [];
    const aborts: string[] = [];
    const request = { path: '/a', form: bearerForm, authorization: 'Bearer t', maySend, noteBody };
    const exchange = new Exchange(request, (answer) => answers.push(answer));
    const controller = { abort: (error: Error) => void aborts.push(error.message) };
    const fail = async (error: Error) => {
      exchange.onResponseError(controller, error);
      await Promise.resolve(); // it tells in the next moment
    };
    return { exchange, controller, answers, aborts, fail };
  }

  function failure(code: string, more: object = {}): Error {
    return Object.assign(new Error(code), { code, ...more });
  }

  describe('an answer', () => {
    test('has its status, its headers, its body and the header it was sent with', () => {
      const { exchange, controller, answers } = openExchange();
      exchange.onRequestStart(controller);
      exchange.onResponseStart(controller, 409, { 'retry-after': '1' });
      exchange.onResponseData(controller, Buffer.from('not '));
      exchange.onResponseData(controller, Buffer.from('now'));
      expect(answers).toEqual([]);
      exchange.onResponseEnd();
      const headers = { 'retry-after': '1' };
      expect(answers).toEqual([{ kind: 'status', status: 409, headers, body: 'not now', authorization: 'Bearer t' }]);
    });

    test('of 204 is the shared success, unless it says something about the rate', () => {
      const plain = openExchange();
      plain.exchange.onResponseStart(plain.controller, 204, { date: 'today' });
      plain.exchange.onResponseEnd();
      expect(plain.answers[0]).toBe(noContent);
      const telling = openExchange();
      telling.exchange.onResponseStart(telling.controller, 204, {
        'x-ratelimit-remaining': '1',
        'x-ratelimit-reset': '9',
      });
      telling.exchange.onResponseEnd();
      expect(telling.answers[0]).not.toBe(noContent);
      expect(telling.answers[0]).toMatchObject({ kind: 'status', status: 204, body: '' });
    });

    test('is the final one, not an interim one', () => {
      const { exchange, controller, answers } = openExchange();
      exchange.onResponseStart(controller, 103, {});
      exchange.onResponseStart(controller, 200, {});
      exchange.onResponseEnd();
      expect(answers).toMatchObject([{ status: 200 }]);
      const broken = openExchange();
      broken.exchange.onRequestStart(broken.controller);
      broken.exchange.onResponseStart(broken.controller, 199, {});
      void broken.fail(failure('ECONNRESET'));
      return Promise.resolve().then(() => expect(broken.answers).toMatchObject([{ kind: 'maybe-sent' }]));
    });

    test('says whether it was cut off, unless more of it was not wanted', async () => {
      const broken = openExchange();
      broken.exchange.onRequestStart(broken.controller);
      broken.exchange.onResponseStart(broken.controller, 200, {});
      broken.exchange.onResponseData(broken.controller, Buffer.from('{"status": "del'));
      await broken.fail(failure('UND_ERR_SOCKET'));
      expect(broken.answers).toMatchObject([{ kind: 'status', status: 200, isCutOff: true }]);
      const long = openExchange();
      long.exchange.onRequestStart(long.controller);
      long.exchange.onResponseStart(long.controller, 200, {});
      long.exchange.onResponseData(long.controller, Buffer.alloc(70_000));
      await long.fail(failure('UND_ERR_ABORTED'));
      expect(long.answers).toMatchObject([{ kind: 'status', status: 200 }]);
      expect(long.answers[0]).not.toHaveProperty('isCutOff');
      const empty = openExchange();
      empty.exchange.onRequestStart(empty.controller);
      empty.exchange.onResponseStart(empty.controller, 204, {});
      await empty.fail(failure('UND_ERR_SOCKET'));
      expect(empty.answers[0]).toBe(noContent);
    });

    test('keeps 2 kB of its body, and is cut off where it has more than 64 kB', () => {
      const { exchange, controller, answers, aborts } = openExchange();
      exchange.onResponseStart(controller, 500, {});
      exchange.onResponseData(controller, Buffer.alloc(2_000, 'a'));
      exchange.onResponseData(controller, Buffer.alloc(100, 'b'));
      exchange.onResponseData(controller, Buffer.alloc(63_436, 'c'));
      expect(aborts).toEqual([]);
      exchange.onResponseData(controller, Buffer.alloc(1, 'd'));
      expect(aborts).toEqual(['body too large']);
      exchange.onResponseEnd();
      expect(answers).toMatchObject([{ body: 'a'.repeat(2_000) + 'b'.repeat(48) }]);
    });

    test('counts though the connection breaks within its body', async () => {
      const { exchange, controller, answers, fail } = openExchange();
      exchange.onRequestStart(controller);
      exchange.onResponseStart(controller, 404, {});
      exchange.onResponseData(controller, Buffer.from('go'));
      await fail(failure('ECONNRESET'));
      expect(answers).toMatchObject([{ kind: 'status', status: 404, body: 'go' }]);
    });
  });

  describe('without an answer', () => {
    test('a request that was never written was not sent', async () => {
      const { exchange, answers, fail } = openExchange();
      expect(exchange.isWritten).toBe(false);
      await fail(failure('ECONNREFUSED'));
      expect(answers).toEqual([{ kind: 'not-sent', why: 'ECONNREFUSED' }]);
    });

    test('one that was written may have been executed, whatever the code says', async () => {
      const { exchange, controller, answers, fail } = openExchange();
      exchange.onRequestStart(controller);
      expect(exchange.isWritten).toBe(true);
      await fail(failure('ECONNREFUSED'));
      expect(answers).toEqual([{ kind: 'maybe-sent', code: 'reset', why: 'ECONNREFUSED' }]);
    });

    test.each([
      ['what is no HTTP', failure('HPE_INVALID', { name: 'HTTPParserError' }), 'HPE_INVALID'],
      ['headers without end', failure('UND_ERR_HEADERS_OVERFLOW'), 'UND_ERR_HEADERS_OVERFLOW'],
    ])('%s is told as a matter of the protocol', async (_, error, why) => {
      const { exchange, controller, answers, fail } = openExchange();
      exchange.onRequestStart(controller);
      await fail(error);
      expect(answers).toEqual([{ kind: 'maybe-sent', code: 'protocol', why }]);
    });

    test.each<[string, Error, string]>([
      [
        'of every address of a name',
        failure('', { code: undefined, errors: [failure('EHOSTUNREACH')] }),
        'EHOSTUNREACH',
      ],
      ['that the client wrapped', failure('UND_ERR', { cause: failure('ECONNREFUSED') }), 'ECONNREFUSED'],
      ['with a cause, but a code of its own', failure('EPIPE', { cause: failure('ECONNREFUSED') }), 'EPIPE'],
      ['without any code', new TypeError('odd'), 'TypeError'],
    ])('an error %s is named by what went wrong', async (_, error, why) => {
      const { answers, fail } = openExchange();
      await fail(error);
      expect(answers).toEqual([{ kind: 'not-sent', why }]);
    });

    test('one that may no longer be sent when its connection is there is kept from being written, and has none', async () => {
      const { exchange, controller, answers, fail } = openExchange(() => false);
      expect(() => exchange.onRequestStart(controller)).toThrow('no longer allowed');
      expect(exchange.isWritten).toBe(false);
      await fail(failure('no longer allowed'));
      expect(answers).toEqual([null]);
      expect(exchange.isOver).toBe(true);
    });

    test('the deadline ends one that waits for its connection, which is then kept from being written', async () => {
      const { exchange, controller, answers, fail } = openExchange();
      expect(exchange.isOver).toBe(false);
      exchange.expire();
      expect(exchange.isOver).toBe(true);
      expect(answers).toEqual([{ kind: 'not-sent', why: 'CONNECT_TIMEOUT' }]);
      expect(() => exchange.onRequestStart(controller)).toThrow('timed out before it was sent');
      await fail(failure('timed out before it was sent'));
      expect(answers).toHaveLength(1);
    });

    test('the deadline cuts off one that was written, and then it timed out', async () => {
      const { exchange, controller, answers, aborts, fail } = openExchange();
      exchange.onRequestStart(controller);
      exchange.expire();
      expect(aborts).toEqual(['deadline']);
      expect(answers).toEqual([]);
      await fail(failure('UND_ERR_ABORTED'));
      expect(answers).toEqual([{ kind: 'maybe-sent', code: 'timeout', why: 'no answer in time' }]);
    });

    test('it is told after the client has done with the connection, and once', async () => {
      const { exchange, controller, answers } = openExchange();
      exchange.onResponseError(controller, failure('ECONNRESET'));
      expect(answers).toEqual([]);
      await Promise.resolve();
      exchange.onResponseEnd();
      expect(answers).toHaveLength(1);
    });
  });
});
