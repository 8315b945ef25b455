/** What the scripts of a target's limiter are told and tell, by name and in order: Lua and TypeScript both read it here. */

/** What a process says with a call, in this order; then four numbers for each epoch it has answers of: epoch, accepted, refused, trouble. */
export const callArguments = [
  'process',
  'wants', // 1 = it wants permits
  'till', // end of its last lease
  'unused', // permits it did not use
  'unusedSince', // when the first of those was leased
  'given', // now, '' = Redis TIME
  'epoch', // that it knows
  'rate', // as stored, '' = none
  'burst', // '' = none
  'slots', // requests it can have in flight
  'holdMs', // hold everything for so long (Retry-After), 0 = not
  'holdWhy',
  'alarmWhy', // that no request succeeds, in words, or ''
  'alarmKind',
  'claimLeft', // requests that are left by the server's headers, '' = it says nothing
  'claimMs', // for so long, …
  'claimQuota', // … of so many in a whole window, '' = unknown
  'sent',
  'latencies', // their count, …
  'latencySum', // … and their sum, in ms
  'starved', // 1 = permits had to wait for a slot
  'lost', // time-outs and resets
  'busy', // 1 = it had next to no computing time
  'saidHere', // what holds this process alone, as stored; see `storedSaying`
] as const;

/** What it gets, in this order. Times are ms of the Redis clock, 0 = not. */
export const replyNumbers = [
  'now',
  'validFrom',
  'holdUntil',
  'outageAt',
  'unreachableAt',
  'first', // of the lease: its first slot, …
  'gap', // … the distance of its slots …
  'count', // … and how many there are
  'inFlightShare',
  'rate',
  'limitMet',
  'budget', // how many failed ids may be retried at once
  'turn', // the update of the state that is due to this process; 0 = none
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
] as const;

/** What `control` has decided, in this order. */
export const stateArguments = [
  'turn',
  'given', // now, '' = Redis TIME
  'json', // the state
  'rate',
  'steps', // 1 = answers to older permits can't change it again
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

/** After a pause of all work that is longer, in ms, the time in which nothing is accepted is counted anew. */
export const workPauseMs = 60_000;

/** How many failed ids may be retried at once while the target is well. */
export const budgetFull = 500;

/** Names as a list in Lua. */
export const quoted = (names: readonly string[]) => names.map((name) => `'${name}'`).join(', ');
/** Lua that puts the arguments of a script into `asked`, by their names. */
export const named = (names: readonly string[]) => `local asked = {}
for i, name in ipairs({${quoted(names)}}) do asked[name] = ARGV[i] end`;
