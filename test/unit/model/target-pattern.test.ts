import { describe, expect, it } from 'vitest';
import { matchesTarget, targetPattern } from '../../../src/model/target-pattern.ts';

describe('a pattern of targets', () => {
  it.each([
    ['api.example.com', 'https://api.example.com', true],
    ['api.example.com', 'http://api.example.com:8443/v1', true],
    ['api.example.com', 'https://api.example.com.', true],
    ['API.Example.com', 'https://api.example.com', true],
    ['api.example.com', 'https://api.example.com.evil.com', false],
    ['api.example.com', 'https://evil-api.example.com', false],
    ['api.example.com', 'https://apixexample.com', false],
    ['https://api.example.com', 'http://api.example.com', false],
    ['https://api.example.com/eu', 'https://api.example.com/eu', true],
    ['https://api.example.com/eu/', 'https://api.example.com/eu/v1', true],
    ['https://api.example.com/eu', 'https://api.example.com/europe', false],
    ['https://api.example.com/eu', 'https://api.example.com', false],
    ['*.example.com', 'https://api.example.com', true],
    ['*.example.com', 'https://a.b.example.com', true],
    ['*.example.com', 'https://example.com', false],
    ['*.example.com', 'https://example.com.evil.com', false],
    ['*', 'https://whatever.example.org/path', true],
    ['localhost:*', 'http://localhost:8208', true],
    ['localhost:8208', 'http://localhost:8208', true],
    ['localhost:8208', 'http://localhost:8209', false],
    ['example.com:443', 'https://example.com', true],
    ['example.com:443', 'http://example.com', false],
    ['[::1]:8208', 'http://[::1]:8208', true],
    ['bücher.example', 'https://xn--bcher-kva.example', true],
    ['127.0.0.1', 'http://127.0.0.1:8080', true],
    ['https://api.example.com/%65u', 'https://api.example.com/eu', true],
    ['api.example.com:0443', 'https://api.example.com', true],
    ['a+b.example.com', 'https://a+b.example.com', true],
    ['a(b.example.com', 'https://a(b.example.com', true],
    ['*.bücher.example', 'https://api.xn--bcher-kva.example', true],
  ])('%s: %s → %s', (pattern, baseUrl, isMatch) => {
    expect(matchesTarget(targetPattern(pattern, true), baseUrl)).toBe(isMatch);
  });

  it.each([
    ['*prod*', 'https://api-prod.example.com', true],
    ['*prod*', 'https://api.product.example.com', true],
    ['*prod*', 'https://api.example.com/prod', false],
    ['*prod*', 'https://prod', true],
    ['*-prod.*.com', 'https://api-prod.example.com', true],
    ['*-prod.*.com', 'https://api-prod.com', false],
    ['aba*aba', 'https://aba', false],
    ['aba*aba', 'https://ababa', false],
    ['api.*', 'https://api.example.com', true],
  ])('%s can protect: %s → %s', (pattern, baseUrl, isMatch) => {
    expect(matchesTarget(targetPattern(pattern, false), baseUrl)).toBe(isMatch);
  });

  it.each(['api.*', '*api.example.com', 'a*.example.com', '**.example.com'])(
    'refuses %s where it would allow hosts of other people',
    (text) => {
      expect(() => targetPattern(text, true)).toThrow('can only be the first label');
    },
  );

  it.each([
    '',
    ' ',
    'ftp://example.com',
    'https://',
    'user@example.com',
    'example.com?x',
    'exa mple.com',
    '/path',
    '[::1',
    'a:b',
    'example.com:65536',
    '*..example.com',
  ])('refuses "%s"', (text) => {
    expect(() => targetPattern(text, false)).toThrow('expected a pattern like');
  });

  it.each([
    'https://api.example.com//eu',
    'https://api.example.com///eu',
    'api.example.com/eu/..%2Fus',
    'api.example.com/eu/%252e%252e/us',
    'api.example.com/eu/..;/us',
    'api.example.com/eu%5cus',
  ])('refuses "%s", which servers read in several ways', (text) => {
    expect(() => targetPattern(text, true)).toThrow('expected a path that every server reads alike');
  });

  it('needs no more than the time of a test for a pattern of many stars', () => {
    const pattern = targetPattern(`${'*a'.repeat(30)}*b`, false);
    expect(matchesTarget(pattern, `https://${'a'.repeat(5_000)}.example`)).toBe(false);
  });

  it.each(['https://api.example.com/eu', '*.example.com:*', '[::1]:80'])('keeps %s as it is written', (text) => {
    expect(targetPattern(text, false)).toBe(text);
    expect(targetPattern(targetPattern(text, false), false)).toBe(text);
  });
});
