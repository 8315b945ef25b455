import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { type RedisAccess, refuseAccess, withAccess } from '../../../src/redis/access.ts';
import { addressFromUrl } from '../../../src/redis/address.ts';
import { toRedisOptions } from '../../../src/redis/client.ts';

const folder = mkdtempSync(join(tmpdir(), 'expunge-access-'));
afterAll(() => rmSync(folder, { recursive: true }));

let files = 0;
const fileOf = (text: string) => {
  const path = join(folder, `secret-${files++}`);
  writeFileSync(path, text);
  return path;
};
const address = (url: string, access: RedisAccess) => withAccess(addressFromUrl(url, false), access);

describe('what logs in beside REDIS_URL', () => {
  test('is read from files, for Redis and for its sentinels', () => {
    const access = {
      redisUsernameFile: fileOf('me\n'),
      redisPasswordFile: fileOf('p w\r\n'),
      sentinelUsernameFile: fileOf('watcher'),
      sentinelPasswordFile: fileOf('other'),
    };
    expect(address('redis+sentinel://localhost/main', access).options).toMatchObject({
      username: 'me',
      password: 'p w',
      sentinelUsername: 'watcher',
      sentinelPassword: 'other',
    });
  });

  test('is read again before each reconnect, and stays while its file cannot be read or is empty', () => {
    const path = fileOf('before');
    const options = { ...toRedisOptions(address('redis://localhost', { redisPasswordFile: path })) };
    writeFileSync(path, 'after\n');
    expect(options.retryStrategy?.(1)).toBe(100);
    expect(options.password).toBe('after');
    writeFileSync(path, '');
    options.retryStrategy?.(2);
    rmSync(path);
    options.retryStrategy?.(3);
    expect(options.password).toBe('after');
  });

  test.each<[string, RedisAccess, string, string]>([
    ['redis://localhost', { redisPasswordFile: join(folder, 'none') }, 'CREDENTIALS', 'EXPUNGE_REDIS_PASSWORD_FILE'],
    ['redis://localhost', { redisPasswordFile: fileOf('\n') }, 'CREDENTIALS', 'it is empty'],
    ['redis://:pw@localhost', { redisPasswordFile: 'f' }, 'USAGE', 'both hold a password'],
    ['redis://me@localhost', { redisUsernameFile: 'f' }, 'USAGE', 'both name a user'],
    ['redis://localhost', { sentinelPasswordFile: 'f' }, 'USAGE', 'is for sentinels'],
    ['redis://localhost', { redisCaFile: 'f' }, 'USAGE', 'is for TLS, and REDIS_URL has none: expected rediss://'],
    ['unix:///run/redis.sock', { redisServerName: 'a' }, 'USAGE', 'EXPUNGE_REDIS_SERVER_NAME is for TLS'],
    ['rediss://localhost', { redisCaFile: join(folder, 'none') }, 'USAGE', 'EXPUNGE_REDIS_CA_FILE'],
    [
      'rediss://localhost',
      { redisKeyFile: 'f' },
      'USAGE',
      'expected EXPUNGE_REDIS_CERT_FILE and EXPUNGE_REDIS_KEY_FILE',
    ],
  ])('is refused for %s with %j', (url, access, code, words) => {
    expect(() => address(url, access)).toThrow(
      expect.objectContaining({ code, message: expect.stringContaining(words) }),
    );
  });

  test('is refused where no REDIS_URL is set', () => {
    expect(() => refuseAccess({ redisPasswordFile: 'f' })).toThrow(
      'EXPUNGE_REDIS_PASSWORD_FILE is for the Redis of REDIS_URL',
    );
    expect(() => refuseAccess({})).not.toThrow();
  });

  test('names the user in the URL while the password comes from a file', () => {
    const { options } = address('rediss://me@localhost', { redisPasswordFile: fileOf('pw') });
    expect(options).toMatchObject({ username: 'me', password: 'pw' });
  });
});
