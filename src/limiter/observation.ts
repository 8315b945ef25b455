/** What the whole fleet saw of the target since the last look. Times are milliseconds of the Redis clock. */
export type Observation = {
  now: number;
  /** Part of the time since the last look in which nothing might leave: a Retry-After, an outage. */
  blockedMs: number;
  /** The end of a Retry-After that is in force or came with these answers; 0 when there is none. */
  blockedUntilMs: number;
  /** Answers to all permits; refused are those that the target turned down for want of permits of its own. */
  accepted: number;
  refused: number;
  /** Of those, the answers to permits of the present epoch. */
  currentAccepted: number;
  currentRefused: number;
  /** Requests sent. */
  sent: number;
  /** The breaker closed everything since the last look. */
  tripped: boolean;
  /** Of accepted answers, in milliseconds. */
  latency: { count: number; sumMs: number; squares: number };
  /** Calls of processes, and those that had a permit but no free in-flight slot since the call before. */
  reports: number;
  starved: number;
  /** Calls of processes that had next to no idle time since the call before. */
  busy: number;
  /** Time-outs and connections that were reset. */
  lost: number;
};
