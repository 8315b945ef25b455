import { describe, expect, it, test } from 'vitest';
import { describeRedisError, describeRejection, isRedisError, unreachable } from '../../../src/redis/errors.ts';

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
    expect(isRedisError(new Error(message))).toBe(true);
    expect(isRedisError(new TypeError(`cannot read ${message}`))).toBe(false);
  });

  it.each([
    ['none of its servers answers', new Error('Connection is closed.')],
    ['WRONGPASS invalid username-password pair', new Error('WRONGPASS invalid username-password pair')],
    ['connection refused', Object.assign(new Error('connect'), { code: 'ECONNREFUSED' })],
  ])('of a cluster is told by its last server: %s', (words, last) => {
    expect(describeRedisError(allFailed(last))).toBe(words);
  });

  it('of a command whose connection broke is told without the words of a library', () => {
    const words = 'Reached the max retries per request limit (which is 0). Refer to "maxRetriesPerRequest" option';
    expect(describeRedisError(Object.assign(new Error(words), { name: 'MaxRetriesPerRequestError' }))).toBe(
      'there is no connection to it',
    );
  });

  it('of an answer that is none of Redis: nobody is asked to report it', () => {
    const error = new Error('Unknown RESP type 72 "H". Please report this.');
    expect(describeRedisError(error)).toBe('the server that answers there is not a Redis');
  });

  it.each([
    ['All sentinels are unreachable. Retrying from scratch after 50ms.', 'none of its sentinels names a primary'],
    [
      'All sentinels are unreachable and retry is disabled. Last error: NOAUTH Authentication required.',
      'none of its sentinels names a primary; the last one that failed: NOAUTH Authentication required',
    ],
  ])('does not call sentinels unreachable that name no primary: %s', (words, said) => {
    expect(describeRedisError(new Error(words))).toBe(said);
  });
});

it('says of a Redis that answers too late that it hangs or is too far away', () => {
  const address = { kind: 'url', label: 'redis://far', options: {} } as const;
  expect(unreachable(address, 'Command timed out').message).toBe(
    'Redis at redis://far: Command timed out: it hangs, or takes more than 3 s for an answer',
  );
});

describe('refusal words', () => {
  // What Redis 6.2 to 8 and Valkey answer, as it is and from within a script.

  const script = 'script: a050e9e5bce9ce26a6715530e025cdeee1d83851, on @user_script:1.';

  test.each([
    ['MISCONF Errors writing to the AOF file: No space left on device', 'its disk is full (MISCONF)'],
    [`MISCONF Errors writing to the AOF file: No space left on device. ${script}`, 'its disk is full (MISCONF)'],
    [
      'MISCONF Errors writing to the AOF file: Input/output error',
      "it can't write its append-only file: Input/output error (MISCONF)",
    ],
    [
      "MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk. Commands that may modify …",
      'its snapshot failed, the disk may be full (MISCONF)',
    ],
    [
      `OOM command not allowed when used memory > 'maxmemory'. ${script}`,
      'its memory is full, maxmemory is reached (OOM)',
    ],
    [
      "ERR Error running script (call to f_a050e): @user_script:1: @user_script: 1: -OOM command not allowed when used memory > 'maxmemory'.",
      'its memory is full, maxmemory is reached (OOM)',
    ],
    ['NOREPLICAS Not enough good replicas to write.', 'too few of its replicas are connected (NOREPLICAS)'],
    ["READONLY You can't write against a read only replica.", 'it is a read-only replica (READONLY)'],
    [
      "NOPERM this user has no permissions to run the 'setrange' command",
      'the login lacks the permission for setrange (NOPERM)',
    ],
    [
      "NOPERM User u has no permissions to run the 'client|list' command",
      'the login lacks the permission for client|list (NOPERM)',
    ],
    [
      `ERR ACL failure in script: User u has no permissions to run the 'hset' command ${script}`,
      'the login lacks the permission for hset (NOPERM)',
    ],
    [
      `ERR The user executing the script can't run this command or subcommand ${script}`,
      'the login lacks the permission for a command of a script (NOPERM)',
    ],
    [
      'NOPERM this user has no permissions to access one of the keys used as arguments',
      'the login lacks the permission for a key; ours begin with expunge (NOPERM)',
    ],
    [
      'NOPERM No permissions to access a key',
      'the login lacks the permission for a key; ours begin with expunge (NOPERM)',
    ],
    ['LOADING Redis is loading the dataset in memory', 'it is still loading its data (LOADING)'],
  ])('%s', (message, words) => {
    expect(describeRejection(new Error(message))).toBe(words);
  });

  test.each([
    'Connection is closed.',
    'Command timed out',
    'WRONGTYPE Operation against a key',
    'ERR unknown command OOM',
  ])('%s is no refusal', (message) => {
    expect(describeRejection(new Error(message))).toBe('');
  });
});
