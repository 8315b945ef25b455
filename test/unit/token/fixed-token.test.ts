import { describe, expect, it } from 'vitest';
import { maskSecrets } from '../../../src/token/fixed-token.ts';

describe('secret text', () => {
  const secret = 'p+q&r=s %:ß';

  describe('text from outside is shown', () => {
    it.each([
      ['without the secret', `no: ${secret}!`, 'no: ***!'],
      ['without its form in a URL', `no: ${encodeURIComponent(secret)}!`, 'no: ***!'],
      ['without its form in a form', `no: ${new URLSearchParams({ s: secret }).toString().slice(2)}!`, 'no: ***!'],
      ['without a bearer token', 'Authorization: Bearer abc.def', 'Authorization: Bearer ***'],
      ['without what is called a secret', 'client_secret=abc, "token": "x"', 'client_secret=*** "token": ***'],
      ['without what looks like one', 'got eyJhbGciOiJSUzI1NiIsInR5cCI6IkpXVCJ9.e30.xyz', 'got ***'],
      ['in one line without control characters', 'a\u001b[31m\r\n\tb\u202e', 'a [31m b'],
      ['with its words', 'AADSTS7000215: Invalid client provided.', 'AADSTS7000215: Invalid client provided.'],
    ])('%s', (_, text, words) => {
      expect(maskSecrets(text, [secret])).toBe(words);
    });

    it('at most 200 characters of it', () => {
      expect(maskSecrets('word '.repeat(100), [])).toHaveLength(200);
    });
  });
});
