import { describe, expect, it } from 'vitest';
import { statusText } from '../../../../src/commands/processes/redis.ts';

const unknown = { address: null, server: null, pid: null, clients: null, memoryBytes: null, warnings: [] };

describe('redis status', () => {
  it('says in words what is known of a running one', () => {
    const facts = { address: '127.0.0.1:6379', server: 'redis 8.0.2', pid: 12, clients: 0, memoryBytes: 1_679_768 };
    const warnings = ['this Redis could not write its last snapshot'];
    expect(statusText({ state: 'running', store: '/srv/.expunge/redis', ...facts, warnings })).toBe(
      `${[
        'state    running',
        'data     /srv/.expunge/redis',
        'address  127.0.0.1:6379',
        'server   redis 8.0.2',
        'pid      12',
        'clients  0 connections',
        'memory   1.7 MB used',
        'warning  this Redis could not write its last snapshot',
      ].join('\n')}\n`,
    );
  });

  it('leaves out what is not known of one that is stopped', () => {
    const store = 'docker volume expunge-55981c15f909ab3b';
    expect(statusText({ state: 'stopped', store, ...unknown })).toBe(`state  stopped\ndata   ${store}\n`);
  });
});
