import { describe, expect, test } from 'vitest';
import { addressFromUrl } from '../../../src/redis/address.ts';

describe('REDIS_URL of several hosts', () => {
  test.each([
    [
      'redis+sentinel://localhost,127.0.0.1:26380/main?db=2',
      {
        sentinels: [
          { host: 'localhost', port: 26_379 },
          { host: '127.0.0.1', port: 26_380 },
        ],
        name: 'main',
        db: 2,
      },
    ],
    [
      'rediss+sentinel://:p%3Aw@[2001:db8::1]:5000,b.example/main',
      {
        sentinels: [
          { host: '2001:db8::1', port: 5000 },
          { host: 'b.example', port: 26_379 },
        ],
        name: 'main',
        password: 'p:w',
        db: 0,
        tls: {},
        sentinelTLS: {},
        enableTLSForSentinelMode: true,
      },
    ],
  ])('%s is read', (text, options) => {
    expect(addressFromUrl(text, false).options).toEqual(options);
  });

  test('of a cluster names any of its nodes', () => {
    const { nodes, options, label } = addressFromUrl('rediss+cluster://u:secret@a.example,[::1]:7001/0', false);
    expect(nodes).toEqual([
      { host: 'a.example', port: 6379 },
      { host: '::1', port: 7001 },
    ]);
    expect(options).toEqual({ username: 'u', password: 'secret', tls: {} });
    expect(label).toBe('rediss+cluster://a.example:6379,[::1]:7001');
  });

  test.each([
    ['redis+sentinel://u:secret@a:1,b:2/main?db=3', 'redis+sentinel://a:1,b:2/main?db=3'],
    ['redis+cluster://:secret@a,b:2', 'redis+cluster://a:6379,b:2'],
  ])('%s is shown without its password', (text, label) => {
    expect(addressFromUrl(text, true).label).toBe(label);
  });

  test.each([
    ['redis+sentinel://localhost:1,secret.example:2/main', 'secret.example is another machine'],
    ['redis+cluster://127.0.0.1:1,[2001:db8::1]:2', '2001:db8::1 is another machine'],
  ])('%s is refused for the host that no TLS protects', (text, words) => {
    expect(() => addressFromUrl(text, false)).toThrow(words);
    expect(() => addressFromUrl(text, true)).not.toThrow();
  });

  test.each([
    ['redis+sentinel://:secret@127.0.0.1:26379', 'expected the name that the sentinels give the primary'],
    ['redis+sentinel://:secret@127.0.0.1:26379/main/2', 'expected the name that the sentinels give the primary'],
    ['redis+sentinel://:secret@127.0.0.1:26379/main?secret=1', 'after "?" only db, username and password'],
    ['redis+sentinel://:secret@,127.0.0.1/main', 'expected redis://'],
    ['redis+sentinel://:secret@127.0.0.1:99999/main', 'expected redis://'],
    ['redis+sentinel:/:secret@127.0.0.1/main', 'expected redis://'],
    ['redis+cluster://:secret@127.0.0.1/3', 'a cluster has no databases but 0'],
    ['redis+other://:secret@127.0.0.1', 'expected redis://'],
    ['redis+sentinel://127.0.0.1/the%20secret', 'expected the name that the sentinels give the primary'],
  ])('%s is refused, and its password is not repeated', (text, words) => {
    expect(() => addressFromUrl(text, false)).toThrow(
      expect.objectContaining({ code: 'USAGE', message: expect.stringContaining(words) }),
    );
    expect(() => addressFromUrl(text, false)).not.toThrow(/secret/);
  });
});
