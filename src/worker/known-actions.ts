import { changeRules } from '../ledger/change-rules.ts';
import { noteTarget } from '../ledger/known-targets.ts';
import type { Ledger } from '../ledger/ledger.ts';
import { isFinalized, type OperatorPause, type Run, readRun } from '../ledger/run.ts';
import { newActionId, stopTarget } from '../ledger/steer-target.ts';
import {
  type BoundAction,
  countLook,
  findLifted,
  type Loss,
  noteLoss,
  readLosses,
  readTargetActions,
  restoreBound,
  restoreSchedulePause,
  type ScheduleAction,
} from '../ledger/target-actions.ts';
import { type Stop, type StopAction, stopsFromStored } from '../limiter/stop.ts';
import type { Log } from '../logger.ts';
import { commandFor, type Target } from '../model/target.ts';
import { toTypeAnywhere } from '../model/to-type.ts';
import { lossEvent } from '../notify/events.ts';
import { steadyPulse } from '../pulse.ts';
import { openRedisClock, type RedisClock } from '../redis/clock.ts';
import { keys } from '../redis/keys.ts';
import { hasAllOf, readServerIdentity, type ServerIdentity } from '../redis/server-identity.ts';
import type { Part } from './parts.ts';

type KnownActionsOptions = {
  ledger: Ledger;
  target: Target;
  /** Whether this process works on all detached runs of the target. */
  isShared: boolean;
  log: Log;
  /** Called when the stop that holds here may have changed. */
  onChange(): void;
};

/** The actions of operators for a run: pauses that were not lifted, or to cancel it. */
type RunActions = { pauses: readonly OperatorPause[]; cancel: Pick<Run, 'by' | 'who' | 'reason'> | null };

/** The start of a run as it was in a revision of the run. */
type KnownStart = Pick<Run, 'startsAt' | 'revision'>;

/** The actions for a target as one process remembers them. */
export function openKnownActions(options: KnownActionsOptions): KnownActions {
  return new KnownActions(options);
}

const boundKinds = ['limit', 'grace'] as const;
const lookEveryMs = 1_000;
const retryEveryMs = 100; // while it is not sure
const lookAtRunsEveryMs = 5_000;
const maxKnownRuns = 1_000;
const byGuard = { by: 'guard', who: '' } as const;

/**
 * Remembers the actions for a target and its runs that this process has seen in Redis: stops, pauses, cancels, the limit, the minimum of
 * grace periods and paused schedules. Redis may lose acknowledged actions: an action that is neither in force nor lifted is written again.
 * While that is uncertain, nothing is sent that the action would hold back. An action that cannot be written again is a loss, which a person has to
 * acknowledge. States: stopped → started → stopped.
 */
export class KnownActions {
  readonly #options: KnownActionsOptions;
  readonly #clock: RedisClock;
  #stops = new Map<string, StopAction>();
  #isStopSure = true; // whether Redis has confirmed each of these stops
  #bounds: Record<(typeof boundKinds)[number], BoundAction | null> = { limit: null, grace: null };
  #schedules = new Map<string, ScheduleAction | null>();
  readonly #runs = new Map<string, RunActions>();
  #liveRuns = new Set<string>();
  readonly #starts = new Map<string, KnownStart>(); // of runs that people may cancel at the last moment: looked at every second
  #losses = new Map<string, Loss>();
  #isSure = false;
  #looks = 0;
  #looking: Promise<void> | null = null;
  #lookedAt = Number.NEGATIVE_INFINITY;
  #lookedAtRunsAt = Number.NEGATIVE_INFINITY;
  #pulse = steadyPulse();
  #forgetPulse = () => {};
  #timer: NodeJS.Timeout | null = null;
  readonly #doubt = () => {
    this.#isSure = false;
  };

  constructor(options: KnownActionsOptions) {
    this.#options = options;
    this.#clock = openRedisClock(options.ledger.redis, keys.witness(options.target.fp));
  }

  /** The part of a process. Its start does not wait for Redis. */
  get part(): Part {
    return {
      name: 'actions',
      start: async (pulse = steadyPulse()) => {
        this.#pulse = pulse;
        this.#forgetPulse = pulse.onWake(this.#doubt); // an idle process did not look for long
        for (const event of connectionEvents) this.#options.ledger.redis.on(event, this.#doubt);
        this.#timer = setInterval(() => void this.#tick(), retryEveryMs);
        await this.#look().catch(() => {});
      },
      drain: () => {
        if (this.#timer) clearInterval(this.#timer);
        this.#timer = null;
        this.#forgetPulse();
        for (const event of connectionEvents) this.#options.ledger.redis.off(event, this.#doubt);
      },
    };
  }

  /** Whether Redis is known to have all actions that this process knows. If not, sending is not allowed, because Redis may have lost some. */
  get isSure(): boolean {
    return this.#isSure || this.#timer === null;
  }

  /** The stop that this process has seen, unless Redis has confirmed that it was lifted; null = none. */
  get stop(): Stop | null {
    if (this.#stops.size === 0) return null; // asked for each request
    const [first, ...others] = [...this.#stops.values()].map(({ id: _, ...stop }) => stop);
    return first === undefined ? null : { ...first, ...(others.length > 0 && { others }) };
  }

  /** The actions that Redis has lost for good, and that were not acknowledged. */
  get losses(): readonly Loss[] {
    return [...this.#losses.values()];
  }

  /** Takes the stop as the limiter has just read it. A known stop that is missing in it stays in force until it was looked up. */
  sawStop(stored: string): void {
    const now = stopsFromStored(stored);
    for (const stop of now) if (stop.id !== '') this.#stops.set(stop.id, stop);
    this.#isStopSure = [...this.#stops.keys()].every((id) => now.some((stop) => stop.id === id));
    if (!this.#isStopSure && this.#timer !== null) void this.#look().catch(() => {});
  }

  /** Takes the state of a run as it has just been read. */
  sawRun(run: string, state: string): void {
    if (state === 'running') this.#liveRuns.add(run);
    if (state !== 'paused' && state !== 'cancelling' && state !== 'cancelled') return;
    if (this.#runs.has(run)) return;
    void this.#lookAtRun(run).catch(() => {});
  }

  /** Returns once Redis has every action for a run that this process knows. Throws if Redis does not answer. */
  async confirm(run: string): Promise<void> {
    if (this.#timer === null) return;
    if (!this.#isSure) await this.#look();
    else if (this.#runs.has(run)) await this.#lookAtRun(run);
  }

  async #tick(): Promise<void> {
    const isDue = performance.now() - this.#lookedAt >= this.#pulse.everyMs(lookEveryMs);
    if (this.#timer === null || (this.#isSure && this.#isStopSure && !isDue)) return;
    await this.#look().catch(() => {}); // without an answer it stays unsure, and nothing is sent
  }

  /** Looks at Redis, once at a time: a second call waits for the first. */
  #look(): Promise<void> {
    this.#looking ??= this.#lookOnce().finally(() => {
      this.#looking = null;
    });
    return this.#looking;
  }

  async #lookOnce(): Promise<void> {
    const { ledger, target } = this.#options;
    this.#lookedAt = performance.now();
    const wasSure = this.#isSure;
    this.#isSure = true; // unless the connection breaks before the end
    try {
      const by = this.#pulse.isIdle ? 0 : 1;
      const [looks] = await Promise.all([countLook(ledger.redis, target.fp, by), this.#clock.sync()]);
      const [isNew, wentBack] = [looks <= by, looks < this.#looks + by];
      const server = wasSure && !wentBack ? null : await this.#compareServer();
      const isBack = this.#looks > 0 && (wentBack || server === 'lost');
      if (isBack) await noteTarget(ledger.redis, target, Date.now());
      const restored = await this.#lookAtTarget(isBack && isNew);
      if (!wasSure || wentBack || this.#lookedAt - this.#lookedAtRunsAt >= this.#pulse.everyMs(lookAtRunsEveryMs))
        restored.push(...(await this.#lookAtRuns(isBack)));
      else for (const run of [...this.#starts.keys()]) restored.push(...(await this.#lookAtRun(run)).again);
      this.#looks = looks;
      if (server === 'lost' || isBack || restored.length > 0) this.#sayWhatStands();
    } catch (error) {
      this.#isSure = false;
      throw error;
    }
    this.#options.onChange();
  }

  /** Compares the Redis process with the process that served this target before, and records it. */
  async #compareServer(): Promise<'lost' | 'same'> {
    const { ledger, target } = this.#options;
    const now = await readServerIdentity(ledger.redis, target.fp);
    const stored = await ledger.redis.hget(keys.witness(target.fp), 'server');
    await ledger.redis.hset(keys.witness(target.fp), 'server', JSON.stringify(now));
    return stored === null || hasAllOf(now, JSON.parse(stored) as ServerIdentity) ? 'same' : 'lost';
  }

  async #lookAtTarget(isFlushed: boolean): Promise<string[]> {
    const { ledger, target } = this.#options;
    const { redis } = ledger;
    const { fp } = target;
    const now = await readTargetActions(redis, fp);
    const known = [
      ...this.#stops.keys(),
      ...[...Object.values(this.#bounds), ...this.#schedules.values()].flatMap((action) => action?.id ?? []),
      ...[...this.#losses.values()].map(({ id }) => id),
    ];
    const lifted = await findLifted(redis, fp, known);
    const restored: string[] = [];
    for (const stop of this.#stops.values()) {
      if (lifted.has(stop.id)) this.#stops.delete(stop.id);
      else if (now.stops.every(({ id }) => id !== stop.id) && (await stopTarget(redis, fp, stop, stop.id)).isChanged)
        restored.push(this.#sayRestored('stop', stop));
    }
    for (const stop of now.stops) if (stop.id !== '') this.#stops.set(stop.id, stop);
    this.#isStopSure = true;
    for (const kind of boundKinds) {
      const [mine, theirs] = [this.#bounds[kind], now[kind]];
      const isLost = mine !== null && mine.id !== theirs?.id && !lifted.has(mine.id);
      const isBack = isLost && (await restoreBound(redis, fp, kind, mine));
      if (isBack) restored.push(this.#sayRestored(kind, mine));
      if (!isBack) this.#bounds[kind] = theirs;
    }
    for (const [name, pause] of this.#schedules) {
      const is = now.schedules.get(name);
      if (is === undefined) await this.#noteLostSchedule(name);
      else if (
        is === null &&
        pause !== null &&
        !lifted.has(pause.id) &&
        (await restoreSchedulePause(redis, fp, name, pause))
      )
        restored.push(this.#sayRestored(`pause of schedule ${name}`, pause));
      else this.#schedules.set(name, is);
    }
    for (const [name, pause] of now.schedules) if (!this.#schedules.has(name)) this.#schedules.set(name, pause);
    if (isFlushed && (restored.length > 0 || this.#liveRuns.size > 0)) await this.#noteLoss('all data of this target');
    await this.#lookAtLosses(lifted);
    return restored;
  }

  /** A removed schedule keeps its record for a while. */
  async #noteLostSchedule(name: string): Promise<void> {
    const { ledger, target } = this.#options;
    this.#schedules.delete(name);
    if ((await ledger.redis.exists(keys.schedule(target.fp, name))) === 0) await this.#noteLoss(`schedule ${name}`);
  }

  async #lookAtLosses(lifted: ReadonlySet<string>): Promise<void> {
    const { ledger, target } = this.#options;
    const now = await readLosses(ledger.redis, target.fp);
    for (const loss of this.#losses.values()) {
      if (lifted.has(loss.id)) this.#losses.delete(loss.what);
      else if (now.every(({ id }) => id !== loss.id))
        await noteLoss(ledger.redis, target.fp, loss, lossEvent(target, loss));
    }
    for (const loss of now) this.#losses.set(loss.what, loss);
  }

  async #lookAtRuns(isBack: boolean): Promise<string[]> {
    this.#lookedAtRunsAt = this.#lookedAt;
    const { ledger, target, isShared } = this.#options;
    const live = isShared ? await ledger.redis.smembers(keys.targetRuns(target.fp)) : [];
    const restored: string[] = [];
    for (const run of new Set([...live, ...this.#runs.keys(), ...this.#liveRuns])) {
      const { isFound, again } = await this.#lookAtRun(run);
      restored.push(...again);
      if (isFound) continue;
      this.#liveRuns.delete(run);
      if (isBack) await this.#noteLoss(`run ${run}`);
    }
    return restored;
  }

  /** Writes a run's lost actions again. `isFound`: Redis has the run. */
  async #lookAtRun(id: string): Promise<{ isFound: boolean; again: string[] }> {
    const { ledger } = this.#options;
    const run = await readRun(ledger.redis, id);
    if (run === null) {
      this.#starts.delete(id);
      return { isFound: false, again: [] };
    }
    if (isFinalized(run.state)) this.#liveRuns.delete(id);
    else this.#liveRuns.add(id);
    const { pauses, cancel } = this.#runs.get(id) ?? { pauses: [], cancel: null };
    const isEnding = run.state === 'cancelling' || isFinalized(run.state);
    const again: string[] = isEnding ? [] : await this.#lookAtStart(run);
    if (!isEnding && cancel !== null) {
      const steering = {
        action: 'cancel',
        by: cancel.by || 'operator',
        who: cancel.who,
        reason: cancel.reason,
      } as const;
      if ((await ledger.steer(id, Date.now(), steering)).isChanged) again.push(this.#sayRestored('cancel', cancel, id));
    } else if (!isEnding) {
      for (const pause of pauses.filter((one) => run.pauses.every(({ id }) => id !== one.id))) {
        const steering = {
          action: 'pause',
          by: 'operator',
          who: pause.who,
          reason: pause.reason,
          id: pause.id,
        } as const;
        if ((await ledger.steer(id, Date.now(), steering)).isChanged) again.push(this.#sayRestored('pause', pause, id));
      }
    }
    const now = again.length === 0 ? run : await readRun(ledger.redis, id);
    if (now !== null) {
      this.#rememberStart(now);
      this.#remember(now);
    }
    return { isFound: true, again };
  }

  /** Delays a run again whose later start Redis has lost: an older revision of the run has an earlier start. */
  async #lookAtStart(run: Run): Promise<string[]> {
    const { id, revision } = run;
    const known = this.#starts.get(id);
    if (known === undefined || known.revision <= revision || known.startsAt <= run.startsAt) return [];
    const reason = 'Redis had lost its later start';
    await changeRules(
      this.#options.ledger.redis,
      run,
      { startAt: known.startsAt },
      { ...byGuard, at: Date.now(), reason },
    );
    return [this.#sayRestored('start', { who: '', reason }, id)];
  }

  #rememberStart({ id, state, startsAt, revision }: Run): void {
    this.#starts.delete(id);
    if (isFinalized(state) || startsAt <= this.#clock.now()) return;
    this.#starts.set(id, { startsAt, revision });
    if (this.#starts.size > maxKnownRuns) this.#starts.delete(this.#starts.keys().next().value!);
  }

  /** A cancel stays known: another look may have read the run before it was cancelled, and come back only now. */
  #remember(run: Run): void {
    const before = this.#runs.get(run.id)?.cancel ?? null;
    const isCancelled = run.state === 'cancelling' || run.state === 'cancelled';
    const cancel = isCancelled ? { by: run.by, who: run.who, reason: run.reason } : before;
    const { pauses } = run;
    this.#runs.delete(run.id);
    if (cancel === null && pauses.length === 0) return;
    this.#runs.set(run.id, { pauses, cancel });
    if (this.#runs.size > maxKnownRuns) this.#runs.delete(this.#runs.keys().next().value!);
  }

  async #noteLoss(what: string): Promise<void> {
    const { ledger, target, log } = this.#options;
    if (this.#losses.has(what)) return;
    const loss: Loss = { id: newActionId(), what, at: Date.now() };
    this.#losses.set(what, loss);
    log.error(
      { lost: what, acknowledge: commandFor(toTypeAnywhere, 'target acknowledge', target) },
      'Redis has lost data of this target',
    );
    await noteLoss(ledger.redis, target.fp, loss, lossEvent(target, loss));
  }

  #sayRestored(action: string, { who, reason }: { who: string; reason: string }, run?: string): string {
    const facts = run === undefined ? { action, who, reason } : { action, run, who, reason };
    this.#options.log.warn(facts, 'an action that Redis has lost is written again');
    return action;
  }

  #sayWhatStands(): void {
    const { limit, grace } = this.#bounds;
    const actions = [
      ...[...this.#stops.values()].map(({ who }) => `stop by ${who}`),
      ...(limit === null ? [] : [`limit by ${limit.who}`]),
      ...(grace === null ? [] : [`grace by ${grace.who}`]),
      ...[...this.#schedules].flatMap(([name, pause]) =>
        pause === null ? [] : [`schedule ${name} paused by ${pause.who}`],
      ),
      ...[...this.#runs].map(([run, { pauses, cancel }]) =>
        cancel === null ? `run ${run} paused by ${pauses[0]!.who}` : `run ${run} cancelled by ${cancel.who}`,
      ),
    ];
    this.#options.log.warn({ actions }, 'Redis may have lost what it acknowledged last; these actions are in force');
  }
}

const connectionEvents = ['close', '-node', 'refresh'] as const;
