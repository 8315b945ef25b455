/** Every key of a run. They have the hash tag {run}, so that one script can use several of them. */
export const runKeys = {
  run: (run: string) => `expunge:{${run}}:run`,
  manifest: (run: string, n: number) => `expunge:{${run}}:m:${n}`,
  ledger: (run: string, n: number) => `expunge:{${run}}:o:${n}`,
  settled: (run: string, n: number) => `expunge:{${run}}:s:${n}`,
  open: (run: string) => `expunge:{${run}}:open`,
  deferred: (run: string) => `expunge:{${run}}:deferred`,
  holders: (run: string) => `expunge:{${run}}:holders`,
  details: (run: string) => `expunge:{${run}}:details`,
  audit: (run: string) => `expunge:{${run}}:audit`,
  measures: (run: string) => `expunge:{${run}}:measures`,
  history: (run: string) => `expunge:{${run}}:history`,
  historyEvents: (run: string) => `expunge:{${run}}:history:events`,
  refusals: (run: string) => `expunge:{${run}}:refusals`,
  paceMembers: (run: string) => `expunge:{${run}}:pace:members`,
  paceQuotas: (run: string) => `expunge:{${run}}:pace:quotas`,
  resultsLease: (run: string) => `expunge:{${run}}:results:lease`,
} as const;

/** Every key of a target. They have the hash tag {fp}, the fingerprint of the target. */
const targetKeys = {
  targetRuns: (fp: string) => `expunge:{${fp}}:runs`,
  plans: (fp: string) => `expunge:{${fp}}:plans`,
  planFiles: (fp: string, id: string) => `expunge:{${fp}}:plans:${id}`,
  results: (fp: string) => `expunge:{${fp}}:results`,
  undelivered: (fp: string) => `expunge:{${fp}}:results:undelivered`,
  protection: (fp: string) => `expunge:{${fp}}:protection`,
  recoverer: (fp: string) => `expunge:{${fp}}:recoverer`,
  lastSuccess: (fp: string) => `expunge:{${fp}}:last-success`,
  limiter: (fp: string) => `expunge:{${fp}}:limiter`,
  limiterMembers: (fp: string) => `expunge:{${fp}}:limiter:members`,
  limitPace: (fp: string) => `expunge:{${fp}}:limit:pace`,
  limitQuotas: (fp: string) => `expunge:{${fp}}:limit:quotas`,
  processes: (fp: string) => `expunge:{${fp}}:processes`,
  stop: (fp: string) => `expunge:{${fp}}:stop`,
  bounds: (fp: string) => `expunge:{${fp}}:bounds`,
  targetRevision: (fp: string) => `expunge:{${fp}}:revision`,
  lifted: (fp: string) => `expunge:{${fp}}:lifted`,
  losses: (fp: string) => `expunge:{${fp}}:losses`,
  witness: (fp: string) => `expunge:{${fp}}:witness`,
  semantics: (fp: string) => `expunge:{${fp}}:semantics`,
  targetAudit: (fp: string) => `expunge:{${fp}}:audit`,
  outbox: (fp: string) => `expunge:{${fp}}:outbox`,
  outboxEvents: (fp: string) => `expunge:{${fp}}:outbox:events`,
  outages: (fp: string) => `expunge:{${fp}}:outages`,
  outboxCursor: (fp: string, receiver: string) => `expunge:{${fp}}:outbox:${receiver}`,
  outboxRefusals: (fp: string, receiver: string) => `expunge:{${fp}}:outbox:${receiver}:refusals`,
  outboxLease: (fp: string, receiver: string) => `expunge:{${fp}}:outbox:${receiver}:lease`,
  schedules: (fp: string) => `expunge:{${fp}}:schedules`,
  schedulesRevision: (fp: string) => `expunge:{${fp}}:schedules:revision`,
  schedule: (fp: string, name: string) => `expunge:{${fp}}:schedule:${name}`,
  scheduleHistory: (fp: string, name: string) => `expunge:{${fp}}:schedule:${name}:history`,
  scheduleAudit: (fp: string, name: string) => `expunge:{${fp}}:schedule:${name}:audit`,
  scheduleCarriedOver: (fp: string, name: string) => `expunge:{${fp}}:schedule:${name}:carried-over`,
  scheduleCarriedOverNext: (fp: string, name: string, run: string) =>
    `expunge:{${fp}}:schedule:${name}:carried-over:${run}`,
  scheduleLease: (fp: string, name: string) => `expunge:{${fp}}:schedule:${name}:lease`,
  scheduleHeartbeat: (fp: string, name: string) => `expunge:{${fp}}:schedule:${name}:heartbeat`,
  scheduleSource: (fp: string, source: string) => `expunge:{${fp}}:source:${source}`,
  scheduleOccurrence: (fp: string, name: string, occurrence: number) =>
    `expunge:{${fp}}:schedule:${name}:occurrence:${occurrence}`,
} as const;

/** Every key that belongs to no single run or target. */
const sharedKeys = {
  runs: 'expunge:runs',
  targets: 'expunge:targets',
  list: (sha256: string) => `expunge:list:${sha256}`,
  lineage: 'expunge:lineage',
  probe: (tag: string) => `expunge:{${tag}}:probe`,
  apiTokens: 'expunge:api:tokens',
  // Its hash tag is the whole name of `apiTokens`, because one script writes both.
  apiTokenAudit: 'expunge:{expunge:api:tokens}:audit',
  apiSession: (hash: string) => `expunge:api:session:${hash}`,
  apiRequest: (hash: string) => `expunge:api:request:${hash}`,
} as const;

/**
 * Every Redis key of expunge; `redis/README.md` describes each. No script uses keys of a run and keys of a target. So everything works on Redis
 * Cluster.
 */
export const keys = {
  ...runKeys,
  ...targetKeys,
  ...sharedKeys,
  /** The prefix of the queues of a target. */
  queuePrefix: (fp: string) => `expunge:{${fp}}`,
} as const;
