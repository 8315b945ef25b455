import { expect, test } from 'vitest';
import type { RedisAddress } from '../../../src/redis/address.ts';
import { unreachable } from '../../../src/redis/errors.ts';

const address = { kind: 'url', label: 'redis://here:6379' } as RedisAddress;

test.each([
  ['NOAUTH Authentication required.', /needs a password: .*EXPUNGE_REDIS_PASSWORD_FILE/],
  ['ERR max number of clients reached', /maxclients/],
  ['connection refused', /^check REDIS_URL and that Redis runs/],
])('a Redis that says "%s" is met with advice on that', (words, advice) => {
  expect(unreachable(address, words).next).toMatch(advice);
});
