import type { Redis } from 'ioredis';
import { describe, expect, onTestFinished, test } from 'vitest';
import { addressFromUrl } from '../../../src/redis/address.ts';
import { checkRedis } from '../../../src/redis/boot-check.ts';
import { describeRedisError } from '../../../src/redis/errors.ts';
import { readServerIdentity } from '../../../src/redis/server-identity.ts';
import { loginRule } from '../../support/login.ts';
import { type OwnRedis, openOwnRedis } from '../../support/own-redis.ts';
import { openLedgerOn } from '../../support/redis.ts';

/** A connection with the login of the README and these further rights, or without some. */
async function logIn({ url, connect }: OwnRedis, ...more: string[]): Promise<Redis> {
  await connect().acl('SETUSER', 'expunge', ...loginRule('secret'), ...more);
  const redis = await openLedgerOn(addressFromUrl(`${url}?username=expunge&password=secret`, false));
  onTestFinished(() => redis.disconnect());
  return redis as Redis;
}

/** What Redis says to a command. */
async function said(redis: Redis, [command = '', ...args]: string[]): Promise<string> {
  return redis.call(command, ...args).then(String, describeRedisError);
}

const refused = /^(the login lacks the permission for |ERR unknown command)/; // an older Redis does not have them all

describe('the login of the README', () => {
  test('may do nothing but what is needed', async () => {
    const own = await openOwnRedis(onTestFinished);
    const redis = await logIn(own);
    await own.connect().set('foreign', 'theirs');
    const denied = `
      FLUSHALL, FLUSHDB, CONFIG GET *, CONFIG SET appendonly no, KEYS *, SCAN 0, RANDOMKEY, DBSIZE, SWAPDB 0 1, SELECT 1,
      SCRIPT FLUSH, SCRIPT KILL, FUNCTION FLUSH, FUNCTION LIST, ACL LIST, ACL WHOAMI, MONITOR, CLIENT KILL TYPE normal,
      CLIENT PAUSE 10, SHUTDOWN, BGREWRITEAOF, REPLICAOF NO ONE, CLUSTER INFO, MEMORY DOCTOR, PUBLISH c m, SUBSCRIBE c,
      MOVE expunge:x 1, SORT expunge:x, DUMP expunge:x, MIGRATE h 1 expunge:x 0 1, COPY expunge:x expunge:y`.split(',');
    const found = await Promise.all(
      denied.map(async (command) => [command, await said(redis, command.trim().split(' '))]),
    );
    expect(found.filter(([, words]) => !refused.test(words!))).toEqual([]);
  });

  test('asks for no setting of Redis that it may not read: no entry of ACL LOG is ours', async () => {
    const own = await openOwnRedis(onTestFinished);
    const redis = await logIn(own);
    const admin = own.connect();
    const entries = async () => (await admin.call('ACL', 'LOG')) as unknown[];
    await admin.call('ACL', 'LOG', 'RESET');
    expect((await readServerIdentity(redis, 'r1')).isDurable).toBeNull();
    expect(await entries()).toEqual([]);
    await admin.acl('SETUSER', 'expunge', '+config|get');
    expect((await readServerIdentity(redis, 'r1')).isDurable, 'negative control').toEqual(expect.any(Boolean));
    expect(await entries()).toEqual([]);
  });

  test('reaches no key but ours, by no way', async () => {
    const own = await openOwnRedis(onTestFinished);
    const redis = await logIn(own);
    await own.connect().set('foreign', 'theirs');
    const ways = [
      ['GET', 'foreign'],
      ['SET', 'foreign', ''],
      ['DEL', 'foreign'],
      ['RENAME', 'expunge:x', 'foreign'],
      ['MGET', 'expunge:x', 'foreign'],
      ['RPOPLPUSH', 'foreign', 'expunge:x'],
      ['EVAL', 'return 1', '1', 'foreign'],
      ['EVAL', "return redis.call('GET', 'foreign')", '0'],
      ['EVAL', "return redis.call('DEL', ARGV[1])", '0', 'foreign'],
    ];
    expect(new Set(await Promise.all(ways.map((way) => said(redis, way))))).toEqual(
      new Set(['the login lacks the permission for a key; ours begin with expunge (NOPERM)']),
    );
    const inScript = await said(redis, ['EVAL', "return redis.call('FLUSHALL')", '0']);
    expect(inScript).toMatch(/^the login lacks the permission for (flushall|a command of a script) \(NOPERM\)$/);
    expect(await own.connect().get('foreign')).toBe('theirs');
  });

  test.each([
    [['-hset', '-bzpopmin'], /lacks the permission for hset, bzpopmin, on keys expunge\*/],
    [['resetkeys', '~else*'], /lacks the permission for exists, del, .* and \d+ more, on keys expunge\*/],
    [['-info'], /INFO: the login lacks the permission for info/],
  ])('is refused before anything is begun where it is less: %j', async (less, words) => {
    const redis = await logIn(await openOwnRedis(onTestFinished), ...less);
    await expect(checkRedis(redis)).rejects.toMatchObject({
      code: 'UNREACHABLE',
      message: expect.stringMatching(words),
    });
  });

  test('is enough to be taken, and so is everything', async () => {
    const own = await openOwnRedis(onTestFinished);
    for (const more of ['+ping', '+@all'])
      expect(await checkRedis(await logIn(own, more))).toMatchObject({ warnings: [] });
  });
});
