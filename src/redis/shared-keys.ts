import { type KeyRow, runEnd } from './key-row.ts';

/** Every key that belongs to no single run or target. */
export const sharedKeys = {
  runs: {
    key: 'expunge:runs',
    type: 'zset',
    contents: 'all runs by creation time',
    writers: ['ledger/create-run.ts', 'ledger/list-runs.ts'],
    expires: 'an entry: with its run',
  },
  targets: {
    key: 'expunge:targets',
    type: 'zset',
    contents: 'targets with a worker, schedule or stop, by last use',
    writers: ['ledger/known-targets.ts'],
    expires: 'an entry: 90 days',
  },
  list: {
    key: (sha256: string) => `expunge:list:${sha256}`,
    type: 'string',
    contents: 'the run made from this list for this target',
    writers: ['ledger/create-run.ts'],
    expires: runEnd,
  },
  lineage: {
    key: 'expunge:lineage',
    type: 'hash',
    contents: 'private Redis only: which processes it follows, and the clean-shutdown marker',
    writers: ['redis/private/lineage.ts'],
    expires: 'never',
  },
  probe: {
    key: (tag: string) => `expunge:{${tag}}:probe`,
    type: 'string',
    contents: 'empty. Writing it shows whether Redis accepts writes',
    writers: ['redis/writes.ts'],
    expires: '1 s',
  },
  apiTokens: {
    key: 'expunge:api:tokens',
    type: 'hash',
    contents: 'SHA-256 of a token → name, role and targets',
    writers: ['api/token-store.ts'],
    expires: 'never',
  },
  apiTokenAudit: {
    // Its hash tag is the whole name of `apiTokens`, because one script writes both.
    key: 'expunge:{expunge:api:tokens}:audit',
    type: 'list',
    contents: 'who made or revoked which token: the last 100 entries',
    writers: ['api/token-store.ts'],
    expires: 'never',
  },
  apiSession: {
    key: (hash: string) => `expunge:api:session:${hash}`,
    type: 'string',
    contents: 'who is logged in with this session',
    writers: ['api/token-store.ts'],
    expires: '12 h',
  },
  apiRequest: {
    key: (hash: string) => `expunge:api:request:${hash}`,
    type: 'string',
    contents:
      'what a request with an Idempotency-Key asked for, the run it makes, and the answer. `…:lease` is held while it is handled, for 15 s',
    writers: ['api/idempotency.ts'],
    expires: '1 day',
  },
} as const satisfies Record<string, KeyRow>;
