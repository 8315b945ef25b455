/**
 * Every Redis key of expunge. All keys of a run have the hash tag {run}, all keys of a target the tag {fp}, and no script uses both. So
 * everything works on Redis Cluster.
 */
export const keys = {
  /** hash: the run record, its counters and thresholds */
  run: (run: string) => `expunge:{${run}}:run`,
  /** string: ids and positions of manifest chunk n */
  manifest: (run: string, n: number) => `expunge:{${run}}:m:${n}`,
  /** string: ledger chunk n, a header and one 16-bit cell per id */
  ledger: (run: string, n: number) => `expunge:{${run}}:o:${n}`,
  /** string: block n of rows settled while reading */
  settled: (run: string, n: number) => `expunge:{${run}}:s:${n}`,
  /** hash: chunk → epoch of its holder, 0 = enqueued and unclaimed */
  open: (run: string) => `expunge:{${run}}:open`,
  /** sorted set: chunks with parked ids by due time in ms */
  later: (run: string) => `expunge:{${run}}:later`,
  /** sorted set: processes that hold chunks of a run that is being cancelled, with their request timeout, by the time of their last heartbeat */
  holders: (run: string) => `expunge:{${run}}:holders`,
  /** list: `<chunk>.<index>` of each outcome that a better one replaced, oldest first */
  improved: (run: string) => `expunge:{${run}}:improved`,
  /** hash: `<chunk>.<index>` → excerpt of the answer that settled an id, unless it was a 204; bounded per reason */
  details: (run: string) => `expunge:{${run}}:details`,
  /** list: actions on the run, with person, time and reason; newest first, bounded */
  audit: (run: string) => `expunge:{${run}}:audit`,
  /** hash with expiry: process → its streaks of ids that are not there */
  absent: (run: string) => `expunge:{${run}}:absent`,
  /** hash: the processes that want permits of the run's own rate */
  paceMembers: (run: string) => `expunge:{${run}}:pace:members`,
  /** hash: used permits of the quotas of the run's own rate, by slices of their periods */
  paceQuotas: (run: string) => `expunge:{${run}}:pace:quotas`,
  /** hash: the measures of the run: latencies, throttled requests, waits */
  measures: (run: string) => `expunge:{${run}}:measures`,
  /** hash: the work of processes for the run in bins of whole seconds, by the second in which a bin begins, bounded */
  history: (run: string) => `expunge:{${run}}:history`,
  /** list: the times when sending was stopped and resumed, and new rates, oldest first, bounded */
  historyEvents: (run: string) => `expunge:{${run}}:history:events`,
  /**
   * hash, private Redis only: of = a process, ancestors = the processes whose data it has completely, ended = the clean-shutdown marker: the last
   * process that was stopped cleanly
   */
  lineage: 'expunge:lineage',
  /** sorted set of all runs by creation time in ms */
  runs: 'expunge:runs',
  /** sorted set: base URL and account of every target by when a run, a schedule or a worker of it was last started, in ms */
  targets: 'expunge:targets',
  /** hash: SHA-256 of a token of the API → its name and role, and who made it when */
  apiTokens: 'expunge:api:tokens',
  /**
   * list: who made or revoked which token, and when; newest first, bounded. Its hash tag is the whole name of `apiTokens`, as one script
   * writes both
   */
  apiTokenAudit: 'expunge:{expunge:api:tokens}:audit',
  /** string with expiry: the user who is logged in with this session, by the SHA-256 of its cookie */
  apiSession: (hash: string) => `expunge:api:session:${hash}`,
  /** string with expiry: the answer to a request with an Idempotency-Key */
  apiRequest: (hash: string) => `expunge:api:request:${hash}`,
  /** string: the run that was made from this list for this target */
  list: (sha256: string) => `expunge:list:${sha256}`,
  /** string with expiry: the run that carries out a sealed plan, by the SHA-256 of its file */
  plan: (fp: string, sha256: string) => `expunge:{${fp}}:plan:${sha256}`,
  /** set: detached runs of a target that have not ended */
  targetRuns: (fp: string) => `expunge:{${fp}}:runs`,
  /** string with expiry: workers deliver the results of the target's runs */
  results: (fp: string) => `expunge:{${fp}}:results`,
  /** string with expiry: the ids that a worker of the target protects, eight bytes of the SHA-256 of each; '' = it could not read them */
  protection: (fp: string) => `expunge:{${fp}}:protection`,
  /** sorted set: ended runs of a target whose results are to be delivered, by when they ended in ms */
  undelivered: (fp: string) => `expunge:{${fp}}:results:undelivered`,
  /** string with expiry: the process that delivers the results of the run */
  resultsLease: (run: string) => `expunge:{${run}}:results:lease`,
  /** sorted set with expiry: events of a target for its receivers, by their number */
  outbox: (fp: string) => `expunge:{${fp}}:outbox`,
  /** hash with expiry: event → its content, as JSON */
  outboxEvents: (fp: string) => `expunge:{${fp}}:outbox:events`,
  /** string with expiry: the number of the last event that a receiver took */
  outboxCursor: (fp: string, receiver: string) => `expunge:{${fp}}:outbox:${receiver}`,
  /** string with expiry: the event that a receiver refused last, how often, and when it is posted again, as JSON */
  outboxRefusals: (fp: string, receiver: string) => `expunge:{${fp}}:outbox:${receiver}:refusals`,
  /** string with expiry: the process that posts to a receiver */
  outboxLease: (fp: string, receiver: string) => `expunge:{${fp}}:outbox:${receiver}:lease`,
  /** hash: limiter of a target → since when it has been unavailable, according to the last event; run and cause → since when it waits */
  outages: (fp: string) => `expunge:{${fp}}:outages`,
  /** string with expiry: the worker of the target that recovers its runs */
  recoverer: (fp: string) => `expunge:{${fp}}:recoverer`,
  /** hash: schedule, '' for any → when a run of it last went well, in ms */
  lastSuccess: (fp: string) => `expunge:{${fp}}:last-success`,
  /** string with expiry: written to test whether Redis accepts writes, in the slot of this run or target */
  probe: (tag: string) => `expunge:{${tag}}:probe`,
  /** hash: the limiter of a target, or of one of its resources */
  limiter: (fp: string, scope: string) => `expunge:{${fp}}:limiter:${scope}`,
  /** hash: the processes that want permits of that limiter */
  limiterMembers: (fp: string, scope: string) => `expunge:{${fp}}:limiter:${scope}:members`,
  /** hash: the rate that an operator pinned the target to, and the budget of the target, with person, time and reason; missing = neither */
  pin: (fp: string) => `expunge:{${fp}}:pin`,
  /** hash: the --rate of each process of a target, and how its limiters share the lowest; see target.lua.ts */
  ceiling: (fp: string) => `expunge:{${fp}}:ceiling`,
  /** hash: used permits of the quotas of those rates, by slices of their periods */
  ceilingQuotas: (fp: string) => `expunge:{${fp}}:ceiling:quotas`,
  /** hash: resource → the target's answer to a DELETE of an object that does not exist, when that was checked and by whom, as JSON */
  semantics: (fp: string) => `expunge:{${fp}}:semantics`,
  /** string: the operators who stopped all runs of a target, when and why; missing = not stopped */
  stop: (fp: string) => `expunge:{${fp}}:stop`,
  /** string: moves with every change of the stops, the pin, the budget and the known losses of a target */
  targetRevision: (fp: string) => `expunge:{${fp}}:revision`,
  /** sorted set: the orders for a target that were lifted or replaced, by when in ms, bounded. An order that is neither here nor in force was lost */
  lifted: (fp: string) => `expunge:{${fp}}:lifted`,
  /** hash: the orders of a target that Redis has lost and that were not acknowledged, as JSON */
  losses: (fp: string) => `expunge:{${fp}}:losses`,
  /** hash: looks = how often processes of a target have looked for lost orders, server = the Redis process that served the last look */
  witness: (fp: string) => `expunge:{${fp}}:witness`,
  /** hash with expiry: process that may send to the target → the time of its last call, and the text of its stop file */
  processes: (fp: string) => `expunge:{${fp}}:processes`,
  /** list: actions on a target as a whole, with person, time and reason; newest first, bounded */
  targetAudit: (fp: string) => `expunge:{${fp}}:audit`,
  /** set: the schedules of a target */
  schedules: (fp: string) => `expunge:{${fp}}:schedules`,
  /** hash: a schedule, its settings and its state */
  schedule: (fp: string, name: string) => `expunge:{${fp}}:schedule:${name}`,
  /** string: the results of its slots, as JSON; bounded */
  scheduleHistory: (fp: string, name: string) => `expunge:{${fp}}:schedule:${name}:history`,
  /** list: actions on the schedule, with person, time and reason; newest first, bounded */
  scheduleAudit: (fp: string, name: string) => `expunge:{${fp}}:schedule:${name}:audit`,
  /** string with expiry: the process that holds the lease of the schedule */
  scheduleLease: (fp: string, name: string) => `expunge:{${fp}}:schedule:${name}:lease`,
  /** string with expiry: the process that sends the heartbeat of the schedule */
  scheduleHeartbeat: (fp: string, name: string) => `expunge:{${fp}}:schedule:${name}:heartbeat`,
  /** string with expiry: the run that was made for a slot of the schedule */
  scheduleSlot: (fp: string, name: string, slot: number) => `expunge:{${fp}}:schedule:${name}:slot:${slot}`,
  /** hash: block of ids that the schedule carries to its next slot; zstd */
  scheduleCarried: (fp: string, name: string) => `expunge:{${fp}}:schedule:${name}:carried`,
  /** hash with expiry: the same for a run that has not claimed its slot */
  scheduleCarriedNext: (fp: string, name: string, run: string) => `expunge:{${fp}}:schedule:${name}:carried:${run}`,
  /** prefix of the queues of a target */
  queuePrefix: (fp: string) => `expunge:{${fp}}`,
} as const;
