import { describe, expect, test } from 'vitest';
import { namesLimit, refusesToken } from '../../../src/delete/named-codes.ts';
import { toSignal } from '../../../src/delete/target-limits.ts';
import { makeVerdictTable, verdictOf } from '../../../src/delete/verdict.ts';
import { status } from './tries.ts';

const google = (reason: string) =>
  JSON.stringify({ error: { code: 403, errors: [{ domain: 'usageLimits', reason }] } });
const answer = (code: number, headers: Record<string, string>, body = '') => ({ ...status(code, headers), body });

describe('an answer that names a limit', () => {
  test.each([
    ['a 403 with Retry-After', 403, { 'retry-after': '8' }, ''],
    ['a 409 with Retry-After', 409, { 'retry-after': '8' }, ''],
    ['a 400 with Retry-After', 400, { 'retry-after': '8' }, ''],
    ['a 403 of which nothing remains', 403, { 'x-ratelimit-remaining': '0' }, ''],
    ['a 403 rateLimitExceeded', 403, {}, google('rateLimitExceeded')],
    ['a 403 userRateLimitExceeded', 403, {}, google('userRateLimitExceeded')],
    ['a 403 quotaExceeded', 403, {}, google('quotaExceeded')],
    ['a 400 ThrottlingException', 400, { 'x-amzn-errortype': 'ThrottlingException:http://x/' }, ''],
    ['a 400 with a __type', 400, {}, '{"__type":"com.amazon.coral.availability#ThrottlingException"}'],
    ['a 403 REQUEST_LIMIT_EXCEEDED', 403, {}, '[{"errorCode":"REQUEST_LIMIT_EXCEEDED","message":"x"}]'],
  ])('is one: %s', (_, code, headers, body) => {
    expect(namesLimit(answer(code, headers, body))).toBe(true);
    expect(verdictOf(answer(code, headers, body), false)).toEqual({ kind: 'wait', ambiguous: false });
    expect(toSignal(answer(code, headers, body), new Set())).toBe('refused');
  });

  test.each([
    ['a plain 403', 403, {}, '{"message":"forbidden"}'],
    ['a 403 with something left', 403, { 'x-ratelimit-remaining': '4321' }, ''],
    ['a 403 for another reason', 403, {}, google('insufficientPermissions')],
    ['a text that says so', 403, {}, '{"message":"rateLimitExceeded"}'],
    ['a code in another field', 403, {}, '{"name":"x","errors":[{"reason":"rateLimitExceeded"}]}'],
    ['a code of another status', 400, {}, google('rateLimitExceeded')],
    ['a body that is cut off', 403, {}, google('rateLimitExceeded').slice(0, -1)],
    ['a Retry-After that cannot be read', 403, { 'retry-after': 'soon' }, ''],
    ['a 401', 401, { 'retry-after': '8' }, ''],
    ['a 404', 404, { 'retry-after': '8' }, google('rateLimitExceeded')],
    ['a 410', 410, { 'retry-after': '8' }, ''],
    ['a 402', 402, { 'retry-after': '8' }, ''],
    ['a 408, which may have been executed', 408, { 'retry-after': '8' }, ''],
    ['a redirect', 302, { 'retry-after': '8' }, ''],
  ])('is none: %s', (_, code, headers, body) => {
    expect(namesLimit(answer(code, headers, body))).toBe(false);
    expect(verdictOf(answer(code, headers, body), false).kind).not.toBe('wait');
  });

  test('means for its id what --on-status says, if that says anything', () => {
    const answered = answer(403, { 'retry-after': '8' });
    expect(verdictOf(answered, false, makeVerdictTable('403=failed'))).toEqual({ kind: 'settle', outcome: 'failed' });
  });

  test('halts the run where the scope is missing', () => {
    const headers = { 'retry-after': '8', 'www-authenticate': 'Bearer error="insufficient_scope"' };
    expect(verdictOf(answer(403, headers), false)).toMatchObject({ kind: 'halt', halt: 'forbidden' });
  });
});

describe('an answer that refuses the token', () => {
  const azure = (code: string | number) => JSON.stringify({ error: { code, message: 'The access token expired.' } });
  const expired = { 'www-authenticate': 'Bearer realm="x", error="invalid_token"' };
  test.each([
    ['a 401', 401, {}, ''],
    ['a 403 ExpiredTokenException', 403, { 'x-amzn-errortype': 'ExpiredTokenException:http://x/' }, ''],
    ['a 400 with a __type', 400, {}, '{"__type":"com.amazon.coral.service#ExpiredTokenException"}'],
    ['a 400 ExpiredAuthenticationToken', 400, {}, azure('ExpiredAuthenticationToken')],
    ['a 403 InvalidAuthenticationToken', 403, {}, azure('InvalidAuthenticationToken')],
    ['a 498 with its code', 498, {}, azure(498)],
    ['a 440 expired_token', 440, {}, '{"error":"expired_token"}'],
    ['a 403 with the challenge of RFC 6750', 403, expired, ''],
    ['a 403 that also asks to wait', 403, { ...expired, 'retry-after': '8' }, ''],
  ])('is one: %s', (_, code, headers, body) => {
    expect(refusesToken(answer(code, headers, body))).toBe(true);
    expect(verdictOf(answer(code, headers, body), false)).toEqual({ kind: 'credentials' });
    expect(toSignal(answer(code, headers, body), new Set())).toBe('nothing');
  });

  test.each([
    ['a plain 403', 403, {}, '{"error":"forbidden"}', 'settle'],
    ['a plain 440', 440, {}, '', 'settle'],
    ['a plain 498', 498, {}, '', 'settle'],
    ['a text that says so', 403, {}, '{"message":"ExpiredTokenException"}', 'settle'],
    ['a longer code', 403, { 'x-amzn-errortype': 'ExpiredTokenExceptionNot' }, '', 'settle'],
    ['a code of another status', 422, {}, '{"error":"expired_token"}', 'settle'],
    ['a 404 with a code', 404, {}, '{"error":"expired_token"}', 'settle'],
    ['a 503 with a code', 503, {}, '{"error":"expired_token"}', 'retry'],
    ['a limit', 403, { 'retry-after': '8' }, '', 'wait'],
  ])('is none: %s', (_, code, headers, body, kind) => {
    expect(refusesToken(answer(code, headers, body))).toBe(false);
    expect(verdictOf(answer(code, headers, body), false).kind).toBe(kind);
  });

  test('means for its id what --on-status says, if that says anything', () => {
    const table = makeVerdictTable('401=failed,403=failed');
    for (const code of [401, 403])
      expect(verdictOf(answer(code, expired), false, table)).toEqual({ kind: 'settle', outcome: 'failed' });
  });
});
