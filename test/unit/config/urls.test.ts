import { describe, expect, it } from 'vitest';
import { baseUrl, folderOrUrl, listOrigins, webhookUrl, webhookUrls } from '../../../src/config/parse-url.ts';
import { shownSetting } from '../../../src/config/settings.ts';

describe('where results go', () => {
  it.each([
    ['/srv/results', '/srv/results'],
    ['results', 'results'],
    ['C:/results', 'C:/results'],
    ['https://store.example.com', 'https://store.example.com/'],
    ['HTTPS://store.example.com/a?sig=1', 'https://store.example.com/a?sig=1'],
  ])('is a folder or a URL: %s', (text, value) => {
    expect(folderOrUrl(text)).toBe(value);
  });

  it.each([
    '',
    's3://bucket/results',
    'https://',
    'https://ana:geheim@store.example.com',
    'https://store.example.com/#a',
  ])('is nothing else: %s', (text) => {
    expect(() => folderOrUrl(text)).toThrow(/^expected|^the URL cannot/);
    expect(() => folderOrUrl(text)).not.toThrow(/geheim/);
  });

  it('is shown without a query, which may be secret', () => {
    expect(shownSetting('results', 'https://store.example.com/a?sig=geheim')).toBe('https://store.example.com/a?***');
  });
});

describe('who is told', () => {
  it('is a list of URLs, of which only the hosts are shown', () => {
    const urls = webhookUrls('https://hooks.example.com/services/geheim, http://localhost:8080');
    expect(urls).toEqual(['https://hooks.example.com/services/geheim', 'http://localhost:8080/']);
    expect(shownSetting('notify', urls)).toBe('https://hooks.example.com/***,http://localhost:8080/***');
    expect(listOrigins(urls)).toBe(shownSetting('notify', urls));
  });

  it.each(['', 'hooks.example.com/geheim', 'ftp://hooks.example.com/geheim', 'https://a:geheim@b.example.com'])(
    'is refused without being shown: %s',
    (text) => {
      expect(() => webhookUrl(text)).toThrow(/^expected a URL|^the URL cannot/);
      expect(() => webhookUrl(text)).not.toThrow(/geheim/);
    },
  );

  it('is refused with the scheme that it has', () => {
    expect(() => webhookUrl('ftp://hooks.example.com/geheim')).toThrow(/, got one with ftp:$/);
  });
});

describe('a base URL', () => {
  it.each([
    ['https://api.example.com/', 'https://api.example.com'],
    ['HTTPS://API.example.com:443/v1//', 'https://api.example.com/v1'],
    ['https://api.example.com/%70rod', 'https://api.example.com/prod'],
    ['https://api.example.com/a%c3%a9', 'https://api.example.com/a%C3%A9'],
    ['https://api.example.com/eu/../us', 'https://api.example.com/us'],
  ])('has one text, which decides its target: %s', (text, value) => {
    expect(baseUrl(text)).toBe(value);
  });

  it.each([
    'https://api.example.com//prod',
    'https://api.example.com/eu/..%2fus',
    'https://api.example.com/eu/%252e%252e/us',
    'https://api.example.com/eu/..;/us',
  ])('has no path that servers read in several ways: %s', (text) => {
    expect(() => baseUrl(text)).toThrow('expected a path that every server reads alike');
  });
});
