import { randomUUID } from 'node:crypto';
import type { Road } from '../delete/delete-chunk.ts';
import { Lanes } from '../delete/lanes.ts';
import { Lane, type LaneOptions } from '../delete/send-delete.ts';
import { targetLimits } from '../delete/target-limits.ts';
import type { Ledger } from '../ledger/ledger.ts';
import type { LimiterScope } from '../limiter/read-target.ts';
import { type Stop, stopText } from '../limiter/stop.ts';
import { limiterKeys, openTargetCalls } from '../limiter/target-call.ts';
import { type Hold, TargetLimiter } from '../limiter/target-limiter.ts';
import type { Log } from '../logger.ts';
import { type Resource, resources } from '../model/outcome.ts';
import { type Rate, storedRate } from '../model/rate.ts';
import type { Target } from '../model/target.ts';
import { within } from '../queue/within.ts';
import type { Writes } from '../redis/writes.ts';
import type { Token } from '../token/token.ts';
import { openStopFile, type StopFile } from './stop-file.ts';

export type RoadsOptions = {
  ledger: Ledger;
  target: Target;
  token: Token;
  lane: Omit<LaneOptions, 'origin'>;
  maxConcurrency: number;
  /** Of all requests to the target, over all processes; null = what is learned. */
  rate: Rate | null;
  burst: number | null;
  /** The target limits annotations and views apart. */
  separateLimits: boolean;
  /** While this file exists nothing leaves; null = none is looked for. */
  stopFile: string | null;
  log: Log;
};

/** One limiter and its lanes: for all requests, or for those of one resource. */
type OpenRoad = Road & { scope: LimiterScope; limiter: TargetLimiter };

/** The ways out of this process. */
export type Roads = {
  of: Record<Resource, Road>;
  all: readonly OpenRoad[];
  start(): void;
  /** There may be permits, room or a token again. */
  pump(): void;
  close(): Promise<void>;
  /** Requests on the wire. */
  readonly inFlight: number;
  /** Why nothing leaves at the moment, or null. */
  readonly hold: Hold | null;
  /** Why nothing leaves until somebody lifts it, or null. */
  readonly stop: Stop | null;
  /** The rate that holds at the moment, per second; null while none has been met or set. */
  readonly limit: number | null;
};

const goodbyeMs = 300;

type Around = { clock: () => number; writes: Writes; onChange(): void; tooLong(reason: string): void };
type Named = Around & { process: string };

/** One road for everything, or one for each resource where the target limits them apart. */
export function openRoads(options: RoadsOptions, around: Around): Roads {
  const scopes = options.separateLimits ? resources : (['all'] as const);
  const tellStop = stopTeller(options.log);
  const stop = () => all[0]?.limiter.stopped ?? null;
  const changed = () => {
    tellStop(stop());
    around.onChange();
  };
  const file = openStopFile(options.stopFile, { clock: around.clock, now: Date.now, onChange: () => pump() });
  const process = randomUUID().slice(0, 8);
  const all = scopes.map((scope) => openRoad(scope, options, file, { ...around, process, onChange: changed }));
  const pump = () => {
    for (const { lanes } of all) lanes.pump();
    changed();
  };
  const [first, second = first] = all;
  return {
    of: { annotations: first!, views: second! },
    all,
    start: () => {
      file.start();
      for (const { limiter, lanes } of all) limiter.start(() => lanes.takeStarved());
    },
    pump,
    close: async () => {
      file.close();
      const goodbyes = all.map(({ limiter }) => limiter.stop());
      for (const { lanes } of all) lanes.close();
      await within(goodbyeMs, Promise.all(goodbyes));
    },
    get inFlight() {
      return all.reduce((sum, { lanes }) => sum + lanes.inFlight, 0);
    },
    get hold() {
      if (options.token.waiting !== '') return { reason: options.token.waiting, leftMs: 0 };
      return all.map(({ limiter }) => limiter.known?.hold ?? null).find((hold) => hold !== null) ?? null;
    },
    get stop() {
      return stop();
    },
    get limit() {
      const limits = all.flatMap(({ limiter }) => (limiter.known && isLimited(limiter) ? [limiter.known.rate] : []));
      return limits.length === 0 ? null : limits.reduce((sum, limit) => sum + limit, 0);
    },
  };
}

function openRoad(
  scope: LimiterScope,
  options: RoadsOptions,
  stopFile: StopFile,
  { process, clock, writes, onChange, tooLong }: Named,
): OpenRoad {
  const { ledger, target, token, lane, maxConcurrency, rate, burst } = options;
  const limiter = new TargetLimiter({
    process,
    calls: followed(openTargetCalls(ledger.redis, limiterKeys(target.fp, scope)), writes),
    ...{ rate: rate === null ? '' : storedRate(rate), burst, slots: maxConcurrency, clock },
    stopHere: () => stopFile.stop,
    onChange: () => {
      lanes.pump();
      onChange();
    },
  });
  const limits = targetLimits(limiter, { token, now: Date.now, tooLong });
  const origin = new URL(target.baseUrl).origin;
  const lanes: Lanes = new Lanes(maxConcurrency, () => new Lane({ ...lane, origin }), limits, clock);
  return { scope, limiter, limits, lanes };
}

/** The limiter writes once a second or more often, whatever there is to do: so it is noticed soon when Redis takes no writes, and when it does again. */
function followed({ call, learned }: ReturnType<typeof openTargetCalls>, writes: Writes) {
  return {
    call: async (report: Parameters<typeof call>[0]) => {
      try {
        const reply = await call(report);
        writes.took();
        return reply;
      } catch (error) {
        writes.failed(error);
        throw error;
      }
    },
    learned,
  };
}

function isLimited({ known, hasRate }: TargetLimiter): boolean {
  return hasRate || (known !== null && known.limitMet > 0);
}

/** Logs a stop when it begins, when its reason changes and when it is over. */
function stopTeller(log: Log): (stop: Stop | null) => void {
  let told = '';
  return (stop) => {
    const text = stop === null ? '' : stopText(stop);
    if (text === told) return;
    if (stop === null) log.warn({}, 'the stop is lifted');
    else log.warn({ reason: text }, 'nothing is sent any more');
    told = text;
  };
}
