/**
 * Every Redis key of expunge. All keys of a run have the hash tag {run}, all keys of a target the tag {fp}, and no script uses both: so
 * everything works on Redis Cluster.
 */
export const keys = {
  /** hash: the run record, its counters and thresholds */
  run: (run: string) => `expunge:{${run}}:run`,
  /** string: ids and positions of manifest chunk n */
  manifest: (run: string, n: number) => `expunge:{${run}}:m:${n}`,
  /** string: ledger chunk n, one 16-bit cell an id behind a header */
  ledger: (run: string, n: number) => `expunge:{${run}}:o:${n}`,
  /** string: block n of rows settled while reading */
  settled: (run: string, n: number) => `expunge:{${run}}:s:${n}`,
  /** hash: chunk → epoch of its holder, 0 = fed and unclaimed */
  open: (run: string) => `expunge:{${run}}:open`,
  /** sorted set: chunks with parked ids by due time in ms */
  later: (run: string) => `expunge:{${run}}:later`,
  /** sorted set: processes that hold chunks of a run that is being cancelled, with their request timeout, by the time of their last heartbeat */
  holders: (run: string) => `expunge:{${run}}:holders`,
  /** list: `<chunk>.<index>` of each outcome that a better one replaced, the oldest first */
  improved: (run: string) => `expunge:{${run}}:improved`,
  /** hash: `<chunk>.<index>` → excerpt of the answer that settled an id and was no 204, bounded per reason */
  details: (run: string) => `expunge:{${run}}:details`,
  /** list: who did what to the run, when and why; newest first, bounded */
  audit: (run: string) => `expunge:{${run}}:audit`,
  /** hash: which processes want permits of the run's own rate */
  absent: (run: string) => `expunge:{${run}}:absent`,
  paceMembers: (run: string) => `expunge:{${run}}:pace:members`,
  /** hash: used permits of the quotas of the run's own rate, by slices of their periods */
  paceQuotas: (run: string) => `expunge:{${run}}:pace:quotas`,
  /** hash: the measures of the run: latencies, throttled requests, waits */
  measures: (run: string) => `expunge:{${run}}:measures`,
  /** hash: what processes did for the run in bins of whole seconds, by the second in which a bin begins, bounded */
  history: (run: string) => `expunge:{${run}}:history`,
  /** list: when sending was stopped and went on, and new rates, the oldest first, bounded */
  historyEvents: (run: string) => `expunge:{${run}}:history:events`,
  /** hash, private Redis only: of = a process, ancestors = the processes whose data it has completely, ended = the clean-shutdown marker: the last process that was stopped cleanly */
  lineage: 'expunge:lineage',
  /** sorted set of all runs by creation time in ms */
  runs: 'expunge:runs',
  /** sorted set: base URL and account of every target by when a run, a schedule or a worker of it was last started, in ms */
  targets: 'expunge:targets',
  /** hash: SHA-256 of a token of the API → its name and role, who made it and when */
  apiTokens: 'expunge:api:tokens',
  /** list: who made or revoked which token, and when; newest first, bounded. Its hash tag is the whole name of `apiTokens`: one script writes both */
  apiTokenAudit: 'expunge:{expunge:api:tokens}:audit',
  /** string with expiry: who is logged in with this session, by the SHA-256 of its cookie */
  apiSession: (hash: string) => `expunge:api:session:${hash}`,
  /** string with expiry: what a request with an Idempotency-Key was answered */
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
  /** string with expiry: which process delivers the results of the run */
  resultsLease: (run: string) => `expunge:{${run}}:results:lease`,
  /** sorted set with expiry: events of a target that somebody may be told, by their number */
  outbox: (fp: string) => `expunge:{${fp}}:outbox`,
  /** hash with expiry: event → what it says, as JSON */
  outboxEvents: (fp: string) => `expunge:{${fp}}:outbox:events`,
  /** string with expiry: the number of the last event that a receiver took */
  outboxCursor: (fp: string, receiver: string) => `expunge:{${fp}}:outbox:${receiver}`,
  /** string with expiry: the event that a receiver refused last, how often, and when it is posted again, as JSON */
  outboxRefusals: (fp: string, receiver: string) => `expunge:{${fp}}:outbox:${receiver}:refusals`,
  /** string with expiry: which process posts to a receiver */
  outboxLease: (fp: string, receiver: string) => `expunge:{${fp}}:outbox:${receiver}:lease`,
  /** hash: limiter of a target → since when it has been unavailable, as it was told last; run and cause → since when it waits */
  outages: (fp: string) => `expunge:{${fp}}:outages`,
  /** string with expiry: which worker of the target recovers its runs */
  recoverer: (fp: string) => `expunge:{${fp}}:recoverer`,
  /** hash: schedule, '' for any → when a run of it last went well, in ms */
  lastSuccess: (fp: string) => `expunge:{${fp}}:last-success`,
  /** string with expiry: whether Redis accepts writes, beside this run or target */
  probe: (tag: string) => `expunge:{${tag}}:probe`,
  /** hash: the limiter of a target, or of one of its resources */
  limiter: (fp: string, scope: string) => `expunge:{${fp}}:limiter:${scope}`,
  /** hash: which processes want permits of that limiter */
  limiterMembers: (fp: string, scope: string) => `expunge:{${fp}}:limiter:${scope}:members`,
  /** hash: the rate that an operator pinned the target to, and the budget of the target; who, when and why; missing = none of both */
  pin: (fp: string) => `expunge:{${fp}}:pin`,
  /** hash: the --rate of each process of a target, and how its limiters share the lowest; see target.lua.ts */
  ceiling: (fp: string) => `expunge:{${fp}}:ceiling`,
  /** hash: used permits of the quotas of those rates, by slices of their periods */
  ceilingQuotas: (fp: string) => `expunge:{${fp}}:ceiling:quotas`,
  /** hash: resource → what the target answers to a DELETE of an object that does not exist, when and by whom that was checked, as JSON */
  semantics: (fp: string) => `expunge:{${fp}}:semantics`,
  /** string: who stopped all runs of a target, when and why, also several operators; missing = not stopped */
  stop: (fp: string) => `expunge:{${fp}}:stop`,
  /** string: moves with every change of the stops, the pin, the budget and the known losses of a target */
  targetRevision: (fp: string) => `expunge:{${fp}}:revision`,
  /** sorted set: the orders for a target that were lifted or replaced, by when in ms, bounded; an order that is in neither place was lost */
  lifted: (fp: string) => `expunge:{${fp}}:lifted`,
  /** hash: what Redis has lost of a target and nobody has acknowledged, as JSON */
  losses: (fp: string) => `expunge:{${fp}}:losses`,
  /** hash: looks = how often processes of a target have looked for lost orders, server = the Redis process that served the last one */
  witness: (fp: string) => `expunge:{${fp}}:witness`,
  /** hash with expiry: process that may send to the target → when it last called, and the text of its stop file */
  processes: (fp: string) => `expunge:{${fp}}:processes`,
  /** list: who did what to a target as a whole, when and why; newest first, bounded */
  targetAudit: (fp: string) => `expunge:{${fp}}:audit`,
  /** set: the schedules of a target */
  schedules: (fp: string) => `expunge:{${fp}}:schedules`,
  /** hash: a schedule, its settings and its state */
  schedule: (fp: string, name: string) => `expunge:{${fp}}:schedule:${name}`,
  /** string: the results of its slots, as JSON; bounded */
  scheduleHistory: (fp: string, name: string) => `expunge:{${fp}}:schedule:${name}:history`,
  /** list: who did what to the schedule, when and why; newest first, bounded */
  scheduleAudit: (fp: string, name: string) => `expunge:{${fp}}:schedule:${name}:audit`,
  /** string with expiry: which process holds the lease of the schedule */
  scheduleLease: (fp: string, name: string) => `expunge:{${fp}}:schedule:${name}:lease`,
  /** string with expiry: which process sends the heartbeat of the schedule */
  scheduleHeartbeat: (fp: string, name: string) => `expunge:{${fp}}:schedule:${name}:heartbeat`,
  /** string with expiry: the run that was made for a slot of the schedule */
  scheduleSlot: (fp: string, name: string, slot: number) => `expunge:{${fp}}:schedule:${name}:slot:${slot}`,
  /** hash: block of ids that the schedule carries to its next slot; zstd */
  scheduleCarried: (fp: string, name: string) => `expunge:{${fp}}:schedule:${name}:carried`,
  /** hash with expiry: the same of a run that has not claimed its slot */
  scheduleCarriedNext: (fp: string, name: string, run: string) => `expunge:{${fp}}:schedule:${name}:carried:${run}`,
  /** prefix of the queues of a target */
  queuePrefix: (fp: string) => `expunge:{${fp}}`,
} as const;
