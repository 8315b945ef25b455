import { describe, expect, it } from 'vitest';
import { isRedisTrouble, redisWords } from '../../../src/redis/errors.ts';

/** What ioredis says when no server of a cluster is of any use. */
function allFailed(last: Error): Error {
  return Object.assign(new Error('Failed to refresh slots cache.'), {
    name: 'ClusterAllFailedError',
    lastNodeError: last,
  });
}

describe('trouble with Redis', () => {
  it.each([
    'Connection is closed.',
    'Command timed out',
    'Too many Cluster redirections. Last error: ReplyError: CLUSTERDOWN The cluster is down',
    'Too many Cluster redirections. Last error: ReplyError: TRYAGAIN Multiple keys request during rehashing of slot',
    "Cluster isn't ready and enableOfflineQueue options is false",
    'None of startup nodes is available',
    'Failed to refresh slots cache.',
  ])('is told from mistakes of ours: %s', (message) => {
    expect(isRedisTrouble(new Error(message))).toBe(true);
    expect(isRedisTrouble(new TypeError(`cannot read ${message}`))).toBe(false);
  });

  it.each([
    ['none of its servers answers', new Error('Connection is closed.')],
    ['WRONGPASS invalid username-password pair', new Error('WRONGPASS invalid username-password pair')],
    ['connection refused', Object.assign(new Error('connect'), { code: 'ECONNREFUSED' })],
  ])('of a cluster is told by its last server: %s', (words, last) => {
    expect(redisWords(allFailed(last))).toBe(words);
  });

  it('of a command whose connection broke is told without the words of a library', () => {
    const words = 'Reached the max retries per request limit (which is 0). Refer to "maxRetriesPerRequest" option';
    expect(redisWords(Object.assign(new Error(words), { name: 'MaxRetriesPerRequestError' }))).toBe(
      'there is no connection to it',
    );
  });

  it('of an answer that is none of Redis: nobody is asked to report it', () => {
    const error = new Error('Unknown RESP type 72 "H". Please report this.');
    expect(redisWords(error)).toBe('what answers there is no Redis');
  });
});
