import { type KeyRow, runEnd } from './key-row.ts';

/** Every key of a run. They have the hash tag {run}, so that one script can use several of them. */
export const runKeys = {
  run: {
    key: (run: string) => `expunge:{${run}}:run`,
    type: 'hash',
    contents:
      'the record: state, reason, `pauses` and who made them, counters, settings, retries, server identity, epoch',
    writers: ['ledger/create-run.ts', 'every script of the ledger'],
    expires: runEnd,
  },
  manifest: {
    key: (run: string, n: number) => `expunge:{${run}}:m:${n}`,
    type: 'string',
    contents: 'chunk n, which never changes: each id with its file and line, packed with zstd',
    writers: ['ledger/manifest.ts'],
    expires: runEnd,
  },
  ledger: {
    key: (run: string, n: number) => `expunge:{${run}}:o:${n}`,
    type: 'string',
    contents: 'chunk n: when its last pass ended, times of outcomes, and one cell per id',
    writers: ['ledger/manifest.ts', 'ledger/known-update.lua.ts', 'ledger/update.lua.ts', 'ledger/chunks.lua.ts'],
    expires: runEnd,
  },
  settled: {
    key: (run: string, n: number) => `expunge:{${run}}:s:${n}`,
    type: 'string',
    contents: 'block n: up to 500 rows settled while reading, packed with zstd',
    writers: ['ledger/manifest.ts'],
    expires: runEnd,
  },
  open: {
    key: (run: string) => `expunge:{${run}}:open`,
    type: 'hash',
    contents: 'chunk → epoch of its holder, or 0 = enqueued and not claimed',
    writers: ['ledger/chunks.lua.ts', 'ledger/steer.lua.ts'],
    expires: runEnd,
  },
  deferred: {
    key: (run: string) => `expunge:{${run}}:deferred`,
    type: 'zset',
    contents: 'deferred chunks by due time in ms',
    writers: ['ledger/chunks.lua.ts', 'ledger/steer.lua.ts'],
    expires: runEnd,
  },
  holders: {
    key: (run: string) => `expunge:{${run}}:holders`,
    type: 'zset',
    contents: 'keepalives of processes that hold chunks of a cancelled run, with their request timeouts',
    writers: ['ledger/chunks.lua.ts'],
    expires: runEnd,
  },
  details: {
    key: (run: string) => `expunge:{${run}}:details`,
    type: 'hash',
    contents: 'excerpts of the answers that settled ids, except 204s, at most 1,000 per code, by `<chunk>.<index>`',
    writers: ['ledger/manifest.ts'],
    expires: runEnd,
  },
  audit: {
    key: (run: string) => `expunge:{${run}}:audit`,
    type: 'list',
    contents: 'who did what, when and why: the last 100 entries',
    writers: ['ledger/audit.ts', 'the scripts that change a run'],
    expires: runEnd,
  },
  measures: {
    key: (run: string) => `expunge:{${run}}:measures`,
    type: 'hash',
    contents:
      "sums of requests, latencies, refusals and waits. `bodies:<counter>` is one process's count of 204s with a body, and the record has their sum",
    writers: ['ledger/measures.ts', 'ledger/bodies.ts'],
    expires: runEnd,
  },
  history: {
    key: (run: string) => `expunge:{${run}}:history`,
    type: 'hash',
    contents:
      'what processes did, in at most 144 bins of whole seconds. Beyond that, two bins become one. With `historyEvents` it stays below 64 KB',
    writers: ['history/history.lua.ts'],
    expires: runEnd,
  },
  historyEvents: {
    key: (run: string) => `expunge:{${run}}:history:events`,
    type: 'list',
    contents: 'the last 50 waits and rates',
    writers: ['history/history.lua.ts'],
    expires: runEnd,
  },
  refusals: {
    key: (run: string) => `expunge:{${run}}:refusals`,
    type: 'hash',
    contents: 'per process, how many ids in a row were refused with one status, and when',
    writers: ['limiter/run-pace.ts'],
    expires: '60 s',
  },
  paceMembers: {
    key: (run: string) => `expunge:{${run}}:pace:members`,
    type: 'hash',
    contents: "processes that want permits of the run's own rate",
    writers: ['limiter/run-pace.ts'],
    expires: '60 s',
  },
  paceQuotas: {
    key: (run: string) => `expunge:{${run}}:pace:quotas`,
    type: 'hash',
    contents: 'permits used of the quotas of that rate, by slices of their periods',
    writers: ['limiter/run-pace.ts'],
    expires: '2 periods, 31 days at most',
  },
  resultsLease: {
    key: (run: string) => `expunge:{${run}}:results:lease`,
    type: 'string',
    contents: 'which process delivers the results of the run',
    writers: ['worker/deliverer.ts'],
    expires: '15 s',
  },
} as const satisfies Record<string, KeyRow>;
