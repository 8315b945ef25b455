import { describe, expect, test } from 'vitest';
import { evaluateServer, type ServerFacts } from '../../../src/redis/server.ts';

const sound = {
  redis_version: '7.0.15',
  maxmemory_policy: 'noeviction',
  maxmemory: '0',
  used_memory: '1000000',
  aof_enabled: '1',
  aof_last_write_status: 'ok',
  rdb_last_bgsave_status: 'ok',
};

function findings(info: ServerFacts['info'], facts: Partial<ServerFacts> = {}): string[] {
  const all = evaluateServer({ info: { ...sound, ...info }, flush: 'everysec', setUp: 'one server', ...facts });
  return all.map(({ aspect, state, words }) => `${state} ${aspect}: ${words}`);
}

describe('a server that is to keep ledgers', () => {
  test('is fit with an append-only file and without eviction', () => {
    expect(findings({})).toEqual([
      'ok version: redis 7.0.15',
      'ok memory: it evicts nothing; 1.0 MB used',
      'ok files: it keeps an append-only file, flushed each second: a loss of power may cost the last one',
    ]);
  });

  test('says of each fault that it has one and what to do', () => {
    const all = evaluateServer({ info: { ...sound, aof_enabled: '0' }, flush: null, setUp: 'sentinels' });
    expect(all.filter(({ state, next }) => (state === 'ok') !== (next === null))).toEqual([]);
  });

  test.each<[string, ServerFacts['info'], Partial<ServerFacts>]>([
    ['fail role: it is a server of a cluster', { cluster_enabled: '1' }, {}],
    ['fail role: it is a read-only replica', { role: 'slave' }, {}],
    ['ok version: valkey 8.1.1', { redis_version: '7.2.4', valkey_version: '8.1.1' }, {}],
    ['fail version: redis 6.0.16 is too old: 6.2 is needed', { redis_version: '6.0.16' }, {}],
    [
      'fail memory: it evicts keys (maxmemory-policy allkeys-lru), which would lose the ledger',
      { maxmemory_policy: 'allkeys-lru' },
      {},
    ],
    ['ok memory: it evicts nothing; 1.0 MB used of 2.0 MB', { maxmemory: '2000000' }, {}],
    ['warn memory: 1.0 MB used of 1.1 MB; runs stop when it is full', { maxmemory: '1100000' }, {}],
    [
      'warn files: it keeps no append-only file (AOF): if it crashes, the record of what was deleted since is lost',
      { aof_enabled: '0' },
      {},
    ],
    ['fail files: it could not write its append-only file', { aof_last_write_status: 'err' }, {}],
    ['warn files: it could not write its last snapshot, and may refuse writes', { rdb_last_bgsave_status: 'err' }, {}],
    [
      'ok files: it keeps an append-only file, flushed with each write: no loss of power costs anything',
      {},
      { flush: 'always' },
    ],
    [
      'ok files: it keeps an append-only file, and does not say how often it is flushed: the login is not allowed to use CONFIG',
      {},
      { flush: null },
    ],
    [
      'warn files: the system flushes its append-only file when it likes: a loss of power may cost half a minute',
      {},
      { flush: 'no' },
    ],
    ['warn replicas: it has no replica that could take over', { connected_slaves: '0' }, { setUp: 'sentinels' }],
    [
      'ok replicas: 1 of 1 in sync',
      { connected_slaves: '1', slave0: 'ip=1,port=2,state=online,lag=0' },
      { setUp: 'sentinels' },
    ],
    [
      'warn replicas: 1 of 2 in sync',
      { connected_slaves: '2', slave0: 'ip=1,state=online', slave1: 'ip=2,state=wait_bgsave' },
      { setUp: 'sentinels' },
    ],
  ])('%s', (words, info, facts) => {
    expect(findings(info, facts)).toContain(words);
  });
});
