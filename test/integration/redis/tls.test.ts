import { copyFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, type ExpectStatic, type TestContext, test } from 'vitest';
import { type RedisAccess, withAccess } from '../../../src/redis/access.ts';
import { addressFromUrl } from '../../../src/redis/address.ts';
import { openLedgerOn } from '../../support/redis.ts';
import {
  type Certificates,
  hasOpenssl,
  makeCertificates,
  startTlsRedis,
  type TlsRedisOptions,
} from '../../support/tls.ts';

type AtEnd = TestContext['onTestFinished'];

const hasCertificates = hasOpenssl();
const atTheEnd: (() => Promise<void>)[] = [];
let made: Certificates;

beforeAll(() => {
  if (hasCertificates) made = makeCertificates((task) => void atTheEnd.push(task));
});
afterAll(async () => {
  for (const task of atTheEnd) await task();
});

/** What becomes of a connection to such a Redis: `PONG`, or the words of the error. */
async function connecting(
  atEnd: AtEnd,
  server: (made: Certificates) => TlsRedisOptions,
  access: (made: Certificates) => RedisAccess,
): Promise<{ said: string; next: string | null }> {
  const { port } = await startTlsRedis(atEnd, made, server(made));
  try {
    const redis = await openLedgerOn(withAccess(addressFromUrl(`rediss://127.0.0.1:${port}`, false), access(made)));
    atEnd(() => redis.disconnect());
    return { said: await redis.ping(), next: null };
  } catch (error) {
    const { message, next } = error as { message: string; next: string };
    return { said: message.replace(/.*:\d+: /, ''), next };
  }
}

const ours = ({ ca }: Certificates): RedisAccess => ({ redisCaFile: ca });
const withClient = (made: Certificates): RedisAccess => ({
  ...ours(made),
  redisCertFile: made.client.cert,
  redisKeyFile: made.client.key,
});

describe.runIf(hasCertificates).concurrent('a Redis behind TLS', () => {
  test.for<[string, (made: Certificates) => TlsRedisOptions, (made: Certificates) => RedisAccess]>([
    ['whose authority is named', () => ({}), ours],
    ['that wants a certificate of ours and gets it', () => ({ wantsClientCertificate: true }), withClient],
    [
      'that has another name, which is given',
      ({ otherName }) => ({ shows: otherName }),
      (made) => ({ ...ours(made), redisServerName: 'redis.example' }),
    ],
  ])('%s is used', async ([, server, access], { expect, onTestFinished }) => {
    expect(await connecting(onTestFinished, server, access)).toEqual({ said: 'PONG', next: null });
  });

  test.for<[string, string, (made: Certificates) => TlsRedisOptions, (made: Certificates) => RedisAccess, string]>([
    [
      'no authority is named',
      'signed by an authority that is not trusted here',
      () => ({}),
      () => ({}),
      'EXPUNGE_REDIS_CA_FILE',
    ],
    [
      'another authority is named',
      'signed by an authority that is not trusted here',
      () => ({}),
      ({ otherCa }) => ({ redisCaFile: otherCa }),
      'EXPUNGE_REDIS_CA_FILE',
    ],
    ['it has expired', 'its certificate has expired', ({ expired }) => ({ shows: expired }), ours, 'renewed'],
    [
      'it is for another host',
      'its certificate is for redis.example, not for 127.0.0.1',
      ({ otherName }) => ({ shows: otherName }),
      ours,
      'EXPUNGE_REDIS_SERVER_NAME',
    ],
    [
      'ours is missing',
      'it wants a certificate from us',
      () => ({ wantsClientCertificate: true }),
      ours,
      'EXPUNGE_REDIS_CERT_FILE',
    ],
  ])('is refused in words where %s', async ([, words, server, access, next], { expect, onTestFinished }) => {
    const seen = await connecting(onTestFinished, server, access);
    expect(seen).toEqual({ said: expect.stringContaining(words), next: expect.stringContaining(next) });
  });

  test('is known by its files as they are now, or were while they could be read', ({ expect }) => {
    const path = join(dirname(made.ca), 'rotated.crt');
    copyFileSync(made.otherCa, path);
    const { options } = withAccess(addressFromUrl('rediss://redis.example', false), { redisCaFile: path });
    const context = () => (options.tls as { secureContext: object }).secureContext;
    const before = context();
    writeFileSync(path, 'half a certi');
    expect(context()).toBe(before);
    copyFileSync(made.ca, path);
    expect(context()).not.toBe(before);
  });
});

describe.runIf(hasCertificates)('a file for TLS', () => {
  const refusal = (access: RedisAccess) => () => withAccess(addressFromUrl('rediss://redis.example', false), access);

  test('is refused where it holds something else', ({ expect }) => {
    const { client, server, ca } = made;
    expectRefused(
      expect,
      refusal({ redisCaFile: client.key }),
      'USAGE',
      'EXPUNGE_REDIS_CA_FILE',
      'expected certificates in PEM',
    );
    const mixed = { redisCaFile: ca, redisCertFile: client.cert, redisKeyFile: server.key };
    expectRefused(expect, refusal(mixed), 'USAGE', 'EXPUNGE_REDIS_KEY_FILE', 'expected the key of that certificate');
    expectRefused(
      expect,
      refusal({ redisCertFile: client.cert }),
      'USAGE',
      'EXPUNGE_REDIS_KEY_FILE',
      'got one of them',
    );
  });
});

function expectRefused(expect: ExpectStatic, attempt: () => unknown, code: string, ...words: string[]): void {
  for (const word of words) {
    expect(attempt).toThrow(expect.objectContaining({ code, message: expect.stringContaining(word) }));
  }
}
