import { describe, expect, it } from 'vitest';
import { readErrorAnswer } from '../../../src/token/token-request.ts';

describe('token answer', () => {
  const secret = 'p+q&r=s %:ß';

  describe('an answer without a token', () => {
    const read = (status: number, body: Record<string, unknown> | null, headers: Record<string, string> = {}) =>
      readErrorAnswer({ status, body, headers: new Headers(headers) }, [secret]);

    it.each([
      [400, 'invalid_client'],
      [401, 'invalid_client'],
      [400, 'invalid_grant'],
      [400, 'unauthorized_client'],
      [400, 'invalid_scope'],
      [400, 'unsupported_grant_type'],
      [403, 'access_denied'],
      [200, 'bad_verification_code'],
    ])('%i %s is a refusal for good', (status, error) => {
      expect(read(status, { error })).toMatchObject({
        kind: 'refused',
        reason: expect.stringContaining(`${status} ${error}`),
      });
    });

    it.each([401, 403, 404, 405])('%i without an OAuth error is one too', (status) => {
      expect(read(status, null).kind).toBe('refused');
    });

    it.each([
      [500, {}],
      [503, { error: 'invalid_client' }],
      [429, { error: 'slow_down' }],
      [408, null],
      [400, { error: 'temporarily_unavailable' }],
      [301, null],
      [307, null],
      [200, null],
      [204, null],
    ])('%i %j may pass', (status, body) => {
      expect(read(status, body).kind).toBe('unavailable');
    });

    it.each([
      [{ 'retry-after': '7' }, 7_000],
      [{ 'retry-after': 'Fri, 20 Nov 2026 12:00:30 GMT', date: 'Fri, 20 Nov 2026 12:00:00 GMT' }, 30_000],
      [{ 'retry-after': 'soon' }, null],
      [{}, null],
    ])('with %j asks for %j ms', (headers, askedMs) => {
      expect(read(503, null, headers as Record<string, string>)).toMatchObject({ askedMs });
    });

    it.each([
      [503, 'temporarily_unavailable'],
      [400, 'slow_down'],
    ])('that only defers (%i %s) is told with its description, without the secret', (status, error) => {
      const description = `maintenance until 14:00 for ${secret}`;
      expect(read(status, { error, error_description: description })).toMatchObject({
        kind: 'unavailable',
        reason: `the token endpoint answers ${status} (${error}: maintenance until 14:00 for ***)`,
      });
      expect(read(503, { error_description: 'back soon' })).toMatchObject({
        reason: expect.stringMatching(/503 \(back soon\)$/),
      });
    });

    it('says where it redirects, without the query', () => {
      expect(read(302, null, { location: 'https://login.example.com/x?code=geheim#y' })).toMatchObject({
        reason:
          'the token endpoint redirects to https://login.example.com/x (302), which is not followed; is --token-url right?',
      });
    });

    it('never shows the secret that a server echoes', () => {
      const end = read(400, { error: secret, error_description: `client_secret was ${secret}` });
      expect(JSON.stringify(end)).not.toContain('p+q');
    });
  });
});
