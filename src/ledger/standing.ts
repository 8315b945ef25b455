import { capital, duration, isoTime, timeOfDay } from '../format.ts';
import { isSilent, type TargetState } from '../limiter/read-target.ts';
import { type Stop, stopsFor, stopText, type TargetStops } from '../limiter/stop.ts';
import { paceOf, quotasText, type Rate, rateText } from '../model/rate.ts';
import { commandFor } from '../model/target.ts';
import { readTimeWindow, windowStateAt, windowTime } from '../model/time-window.ts';
import { type Advice, adviceText, type ToType } from '../model/to-type.ts';
import type { HaltCode, Misfit, Run } from './run.ts';

/**
 * The causes that can hold a run or a target back, so that nothing is sent. If several hold, the first in this order is shown first: the state of the
 * run itself, then causes that only a person ends, then causes that end at a time.
 */
export const causes = [
  'preparing',
  'planned',
  'canary',
  'halted',
  'paused',
  'cancelling',
  'redis',
  'redis_writes',
  'dead_command',
  'stop',
  'unreadable_rate',
  'other_definition',
  'no_worker',
  'no_token',
  'stop_file',
  'grace',
  'window',
  'limit',
  'retry_after',
  'circuit',
  'outage',
  'run_quota',
  'run_rate',
  'retry',
] as const;

export type Cause = (typeof causes)[number];

/** Why nothing is sent. Times are ms since 1970; null = not known, or no time ends it. */
export type Standing = {
  why: Cause;
  text: string; // a clause: `the limit of this target is used up (250 a day)`
  since: number | null;
  until: number | null;
  by: string; // who asked for it; '' = no one
  next: Advice | null; // the command or other action that ends it; null = it ends by itself
};

/** The known facts about a run and its target at one moment. */
export type Reading = {
  now: number; // ms since 1970
  target: { baseUrl: string; account: string };
  limiter: TargetState | null; // of the target; null = nothing was ever sent there
  stops: TargetStops;
  run: StandingRun | null; // null = the question is about the target alone
  isAbandoned: boolean; // the command of a running run has ended
  nextTryAt: number | null; // when failed ids are retried, if nothing else is left to do
  away: string; // why Redis, or the server in front of it, does not answer; '' = it does
  refused: string; // why Redis rejects writes; '' = it accepts them
  here: Here | null; // what a deleting process knows of itself; null = this is the view from outside
};

/** The rest of a reading from outside, if Redis answers and nothing else was read. */
export const seenFromOutside = {
  isAbandoned: false,
  nextTryAt: null,
  away: '',
  refused: '',
  here: null,
} as const satisfies Partial<Reading>;

type StandingRun = Pick<
  Run,
  | 'id'
  | 'state'
  | 'reason'
  | 'by'
  | 'who'
  | 'halt'
  | 'command'
  | 'startsAt'
  | 'startAt'
  | 'window'
  | 'rate'
  | 'unreadRate'
  | 'misfit'
  | 'quotaUntil'
  | 'nextPermitAt'
  | 'changedAt'
  | 'createdAt'
  | 'activeUntil'
  | 'detached'
>;

/** A deleting process: what stops it, and why it has no token ('' = it has one). */
type Here = { stop: Stop | null; tokenWait: string };

/** All causes that hold it back, the most important first. None while requests are sent, and for a run that has ended. Pure. */
export function findStandings(reading: Reading): Standing[] {
  const { run } = reading;
  if (run !== null && isStill(run.state)) return [stateOf(run)];
  if (run !== null && (run.state === 'completed' || run.state === 'cancelled')) return [];
  return [
    ...redisStandings(reading),
    ...processStandings(reading),
    ...(run === null ? [] : [...graceStandings(run, reading.now), ...windowStandings(run, reading.now)]),
    ...targetStandings(reading),
    ...(run === null ? [] : ownStandings(run, reading)),
  ];
}

const stillStates = ['preparing', 'planned', 'paused', 'halted', 'cancelling'] as const;

function isStill(state: Run['state']): state is (typeof stillStates)[number] {
  return (stillStates as readonly string[]).includes(state);
}

/** The cause in the state of a run that sends nothing, whatever its target does. */
function stateOf(run: StandingRun): Standing {
  const { id, state, reason, by, who, halt, command } = run;
  const resume: Advice = (toType) => toType('resume', id);
  const why = state === 'halted' && halt === 'canary' ? 'canary' : (state as (typeof stillStates)[number]);
  const next = state === 'paused' && by === 'interrupt' && command !== '' ? command : resume;
  return {
    why,
    text: stateTexts[why](`${who ? ` by ${who}` : ''}${reason ? `: ${reason.replace(/\.$/, '')}` : ''}`),
    since: (state === 'preparing' ? run.createdAt : run.changedAt) || null,
    until: null,
    by: who,
    next: state === 'preparing' || state === 'cancelling' ? null : next,
  };
}

const stateTexts: Record<(typeof stillStates)[number] | 'canary', (because: string) => string> = {
  preparing: () => 'its list is being written to Redis',
  planned: () => 'it was not started; nothing was sent yet',
  canary: (because) => `halted after its canary${because}`,
  halted: (because) => `halted${because}`,
  paused: (because) => `paused${because}`,
  cancelling: (because) => `cancelling${because}`,
};

const byNobody = { since: null, until: null, by: '', next: null };

function redisStandings({ away, refused, run }: Reading): Standing[] {
  const rejects = `Redis rejects writes: ${refused}; nothing is sent until it accepts them again`;
  return [
    ...(away === '' ? [] : [{ ...byNobody, why: 'redis' as const, text: away }]),
    ...(refused === '' ? [] : [{ ...byNobody, why: 'redis_writes' as const, text: rejects }]),
    ...(run === null || run.unreadRate === '' ? [] : [unreadableRate(run)]),
    ...(run === null || run.misfit === null ? [] : [otherDefinition(run.misfit)]),
  ];
}

function unreadableRate({ id, unreadRate }: StandingRun): Standing {
  const text = `its rate "${unreadRate}" is in a form that this version of expunge can't read`;
  return { ...byNobody, why: 'unreadable_rate', text, next: (toType) => toType('rate', id, '200/s') };
}

function otherDefinition({ process, why, at }: Misfit): Standing {
  const text = `the worker on ${process} deletes nothing of it: ${why}`;
  const next = 'Give that worker the resources of the configuration file with which the run was made';
  return { ...byNobody, why: 'other_definition', text, since: at, next };
}

function processStandings({ run, target, limiter, stops, isAbandoned, here, now }: Reading): Standing[] {
  if (isAbandoned && run !== null) return [deadCommand(run), ...stopStandings(stops.target, target)];
  const own = run === null ? stops : stopsFor(run, stops);
  const isUnasked = stops.said === undefined && limiter !== null && !isSilent(limiter);
  if (run !== null && here === null && own.alive === 0 && !isUnasked)
    return [...stopStandings(stops.target, target), run.detached ? noWorker(target, limiter, now) : deadCommand(run)];
  const tokenWait = here === null ? sharedWait(own) : here.tokenWait && { reason: here.tokenWait, since: null };
  return [
    ...stopStandings(here === null ? stopFromOutside(own) : here.stop, target),
    ...(tokenWait ? [noToken(tokenWait, target)] : []),
  ];
}

function deadCommand({ id, activeUntil, command }: StandingRun): Standing {
  return {
    ...byNobody,
    why: 'dead_command',
    text: 'the command that deleted it has ended, and no other process has taken over',
    since: activeUntil || null,
    next: (toType) => command || toType('resume', id, '--detach'),
  };
}

function noWorker(target: Reading['target'], limiter: TargetState | null, now: number): Standing {
  return {
    ...byNobody,
    why: 'no_worker',
    text: 'no worker of this target is alive',
    since: limiter !== null && isSilent(limiter) ? now - limiter.silentMs : null,
    next: (toType) => commandFor(toType, 'worker', target),
  };
}

function noToken({ reason, since }: { reason: string; since: number | null }, target: Reading['target']): Standing {
  const next: Advice = (toType) => commandFor(toType, 'check', target);
  return { ...byNobody, why: 'no_token', text: `no token: ${reason}`, since, next };
}

/** Whether each process is held. Causes of single processes count only then. */
function isEachHeld({ processes, tokenless, alive, said }: TargetStops): boolean {
  if (said !== undefined) return said.every(({ stop, token }) => stop !== null || token !== null);
  return Math.max(processes.length, tokenless.length) === alive;
}

function sharedWait(stops: TargetStops): { reason: string; since: number } | null {
  return isEachHeld(stops) ? (stops.tokenless[0] ?? null) : null;
}

function stopFromOutside(stops: TargetStops): Stop | null {
  return stops.target ?? (isEachHeld(stops) ? (stops.processes[0] ?? null) : null);
}

function stopStandings(stop: Stop | null, target: Reading['target']): Standing[] {
  if (stop === null) return [];
  const text = stopText(stop);
  const next: Advice =
    stop.by === 'operator'
      ? (toType) => commandFor(toType, 'start-all', target)
      : 'Sending resumes when that file is removed';
  const why = stop.by === 'operator' ? 'stop' : 'stop_file';
  return [
    {
      why,
      text: text.charAt(0).toLowerCase() + text.slice(1),
      since: stop.at || null,
      until: null,
      by: stop.who,
      next,
    },
  ];
}

function graceStandings({ id, startsAt, startAt }: StandingRun, now: number): Standing[] {
  if (startsAt <= now) return [];
  const text = startsAt === startAt ? 'it starts then (--start-at)' : 'in its grace period, nothing is sent yet';
  return [{ ...byNobody, why: 'grace', text, until: startsAt, next: (toType) => toType('cancel', id) }];
}

function windowStandings({ window: text }: StandingRun, now: number): Standing[] {
  const window = readTimeWindow(text);
  if (window === null) return [];
  const { isOpen, until } = windowStateAt(window, now);
  if (isOpen) return [];
  return [{ ...byNobody, why: 'window', text: `outside its window, continues ${windowTime(window, until)}`, until }];
}

/** The causes of the target. */
function targetStandings({ target, limiter, now }: Reading): Standing[] {
  if (limiter === null) return [];
  const { hold, outage } = limiter;
  const release: Advice = (toType) => commandFor(toType, 'target release', target);
  const raise: Advice = (toType) => `${commandFor(toType, 'target limit', target)} LIMIT`;
  return [
    ...(hold === null
      ? []
      : [
          {
            why: hold.kind,
            text: hold.reason,
            since: hold.since,
            until: now + hold.leftMs,
            by: '',
            next: hold.kind === 'retry_after' ? release : raise,
          },
        ]),
    ...(outage === null || isSilent(limiter) ? [] : [outageOf(outage, release)]),
  ];
}

function outageOf({ kind, reason, since, countsTries }: NonNullable<TargetState['outage']>, next: Advice): Standing {
  const cost = countsTries ? 'each try now counts as an attempt' : 'no id fails because of it';
  const why = kind === 'trouble' || kind === 'unreachable' ? 'outage' : 'circuit';
  return { why, text: `${reason}; probing with one id from time to time, ${cost}`, since, until: null, by: '', next };
}

/** Whether what is known of a limiter tells what happens now: a process calls it, or a wait that it knows is not over. */
export function isInUse(limiter: TargetState | null): limiter is TargetState {
  return limiter !== null && (!isSilent(limiter) || limiter.hold !== null);
}

const maxPermitMs = 5_000;

function ownStandings(run: StandingRun, { nextTryAt, now }: Reading): Standing[] {
  const { id, rate, quotaUntil, nextPermitAt } = run;
  const other: Advice = (toType) => `${toType('rate', id)} 'N/s'`;
  if (rate !== null && rate.length > 1 && quotaUntil > now)
    return [
      {
        ...byNobody,
        why: 'run_quota',
        text: `--rate allows no more (${quotasText(rate)})`,
        until: quotaUntil,
        next: other,
      },
    ];
  if (isSlow(rate) && nextPermitAt > now + maxPermitMs)
    return [
      { ...byNobody, why: 'run_rate', text: `--rate allows ${rateText(rate)}`, until: nextPermitAt, next: other },
    ];
  const isPermitSoon = isSlow(rate) && nextTryAt !== null && nextTryAt - now <= maxPermitMs; // its chunk is deferred because of that
  if (nextTryAt === null || nextTryAt <= now || isPermitSoon) return [];
  return [{ ...byNobody, why: 'retry', text: 'the ids left failed before and are retried then', until: nextTryAt }];
}

function isSlow(rate: Rate | null): rate is Rate {
  return rate !== null && 1_000 / paceOf(rate) > maxPermitMs;
}

const shortMs = 60_000;

/** One sentence without its full stop: `Waiting until 14:10 (3 h 5 min): the limit of this target is used up (250 a day)`. `now`: ms since 1970. */
export function standingText({ why, text, since, until }: Standing, now: number): string {
  if (why === 'outage' || why === 'circuit') return outageText(text, since ?? now, now);
  if (!wordings[why].isWait) return capital(text);
  return `Waiting${until === null ? '' : ` ${timeLeft(until, now)}`}: ${text}`;
}

/** The time left, as in `21 s`; for a longer wait also its end. */
function timeLeft(until: number, now: number): string {
  const left = duration(Math.max(0, until - now));
  return until - now < shortMs ? left : `until ${timeOfDay(until, now)} (${left})`;
}

function outageText(text: string, since: number, now: number): string {
  const [reason, ...rest] = text.split(';');
  return [`${capital(reason!)} since ${timeOfDay(since, now)}`, ...rest].join(';');
}

/** The advice about it: a sentence, or words and a command without a full stop at the end; '' = nothing, it ends by itself. */
export function standingAdvice({ why, next }: Standing, toType: ToType): string {
  if (next === null) return '';
  const text = adviceText(next, toType);
  const { label } = wordings[why];
  return label === '' ? `${text}.` : `${label}: ${text}`;
}

/**
 * `isWait`: its sentence begins with `Waiting`. `label`: the words before the command that ends it; '' = the advice is a sentence, or there is none.
 */
const wordings: Record<Cause, { isWait: boolean; label: string }> = {
  preparing: { isWait: true, label: '' },
  planned: { isWait: true, label: 'Start it' },
  canary: { isWait: false, label: 'Continue with the next part' },
  halted: { isWait: false, label: 'Once its cause is gone, resume' },
  paused: { isWait: false, label: 'Resume with' },
  cancelling: { isWait: false, label: '' },
  redis: { isWait: true, label: '' },
  redis_writes: { isWait: true, label: '' },
  dead_command: { isWait: false, label: 'Resume with' },
  stop: { isWait: false, label: 'Resume with' },
  unreadable_rate: { isWait: true, label: 'Give it another' },
  other_definition: { isWait: true, label: '' },
  no_worker: { isWait: false, label: 'Start one' },
  no_token: { isWait: true, label: 'Check the token' },
  stop_file: { isWait: false, label: '' },
  grace: { isWait: true, label: 'Cancel it' },
  window: { isWait: true, label: '' },
  limit: { isWait: true, label: 'Allow more' },
  retry_after: { isWait: true, label: 'To send before the server wants it' },
  circuit: { isWait: false, label: 'Try again at once' },
  outage: { isWait: false, label: 'Try again at once' },
  run_quota: { isWait: true, label: 'Allow more' },
  run_rate: { isWait: true, label: 'Allow more' },
  retry: { isWait: true, label: '' },
};

/** A cause in words: `no worker`, `max failures` */
export function causeWords(why: Cause | HaltCode): string {
  return why.replaceAll('_', ' ');
}

/** A standing as JSON has it; times are ISO 8601. */
export type StandingFacts = NonNullable<ReturnType<typeof standingFacts>>;

/** The first standing for `--json` and the API, and the causes of the others; null while nothing holds. */
export function standingFacts(standings: readonly Standing[], toType: ToType) {
  const [first, ...others] = standings;
  if (first === undefined) return null;
  return {
    why: first.why,
    text: first.text,
    since: first.since === null ? null : isoTime(first.since),
    until: first.until === null ? null : isoTime(first.until),
    by: first.by || null,
    next: first.next === null ? null : adviceText(first.next, toType),
    also: others.map(({ why }) => why),
  };
}
