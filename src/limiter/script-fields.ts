/** The arguments and replies of the target limiter's scripts, by name and in order. Lua and TypeScript both read them here. */

/** The arguments of a call, in this order; then four numbers for each epoch that it has answers for: epoch, accepted, refused, trouble. */
export const callArguments = [
  'process',
  'wants', // 1 = it wants permits
  'till', // end of its last lease
  'unused', // permits it did not use
  'unusedSince', // when the first of those was leased
  'granted', // permits that it has got in all
  'heardAt', // the time of the last reply to it, 0 = there was none
  'limitId', // the limit that it knows, '' = none
  'given', // now, '' = Redis TIME
  'epoch', // the epoch that it knows
  'connections', // requests it can have in flight
  'holdMs', // for how long to hold everything (Retry-After), 0 = not
  'holdWhy',
  'alarmWhy', // in words, that no request succeeds, or ''
  'alarmKind',
  'claimLeft', // requests that the server's headers leave, '' = they say nothing
  'claimMs', // time for which they are left, …
  'claimQuota', // … and the number in a whole window, '' = unknown
  'sent',
  'latencies', // their count, …
  'latencySum', // … and their sum, in ms
  'starved', // 1 = permits had to wait for a connection
  'lost', // time-outs and resets
  'busy', // 1 = it had next to no computing time
  'leadMs', // how long before its time it needs a permit, …
  'aheadMs', // … how much further ahead than usual it leases, …
  'answerMs', // … and how much later than usual it calls again, because Redis is far away
  'restMs', // it calls again within this time
  'saidHere', // why this process alone is held, as stored; see `storedSaying`
] as const;

/** The numbers in the reply, in this order. Times are ms of the Redis clock, 0 = not. */
export const replyNumbers = [
  'now',
  'validFrom',
  'holdUntil',
  'outageAt',
  'unreachableAt',
  'first', // of the lease: its first permit, …
  'gap', // … the distance of its permits …
  'count', // … and their number
  'inFlightShare',
  'rate',
  'ceiling', // the limit of the target per second; 0 = none
  'limitMet',
  'budget', // number of failed ids that may be retried at once
  'turn', // the update of the state that this process has to make; 0 = none
  'failsAlone', // 1 = the caller alone has to back off
  'releasedEpoch', // the epoch that began with the last release by an operator
] as const;
export const replyTexts = [
  'epoch',
  'dropEpoch',
  'holdWhy',
  'closed',
  'outageWhy',
  'phase',
  'learned',
  'seen',
  'stop',
  'limitId', // names the action that set the limit of the target, '' = it has none
] as const;

/** The decisions of `control`, in this order. */
export const stateArguments = [
  'turn',
  'given', // now, '' = Redis TIME
  'json', // the state
  'rate',
  'steps', // 1 = answers to older permits can't change it any more
  'drops', // 1 = leases are dropped
  'validFrom', // answers to permits used before this time don't count
  'phase',
  'limitMet', // the rate that was refused last, 0 = none yet
  'inFlight', // over the fleet
  'closed', // why single probes are sent, '' = requests are sent at the rate
  'closedWhy',
  'closedAt',
  'probeGap',
  'announced', // the rate that the server's headers leave, '' = none
] as const;

/** The pause of all work, in ms, after which the time in which nothing is accepted is counted from scratch. */
export const workPauseMs = 60_000;

/** The silence of a process, in ms, after which it no longer says what it has got: its field in the pace of the limit may be gone. */
export const grantedLivesMs = 3_600_000;

/** The number of failed ids that may be retried at once while the target is well. */
export const budgetFull = 500;

/** Names as a list in Lua. */
export const quoted = (names: readonly string[]) => names.map((name) => `'${name}'`).join(', ');
/** Lua that puts the arguments of a script into `asked`, by their names. */
export const named = (names: readonly string[]) => `local asked = {}
for i, name in ipairs({${quoted(names)}}) do asked[name] = ARGV[i] end`;
