import type { KnownTarget } from '../ledger/known-targets.ts';
import { type ListedRun, readListed } from '../ledger/list-runs.ts';
import { isFinalized } from '../ledger/run.ts';
import { readStops } from '../limiter/stop.ts';
import { isWithin, type Reach, type Target, targetOf } from '../model/target.ts';
import type { RedisClient } from '../redis/client.ts';
import { keys } from '../redis/keys.ts';

/** The runs of a Redis at one moment. */
type RunsNow = {
  active: ListedRun[]; // newest first
  recent: ListedRun[]; // the runs that ended last
  ended: number;
  targets: Target[]; // of all runs, and the recorded ones
};

/** The facts of an ended run that never change. */
type Ended = Pick<ListedRun, 'baseUrl' | 'account' | 'endedAt'>;

const runsAtOnce = 1_000;
const recentRuns = 10;
const readAgainMs = 600_000; // finds the runs that have expired in the meantime

/**
 * Reads the runs of a Redis repeatedly, and each time only the runs that have not ended, however many have. It keeps a few facts of each ended run.
 */
class RunIndex {
  readonly #redis: RedisClient;
  #ended = new Map<string, Ended>();
  #begunAt = performance.now();

  constructor(redis: RedisClient) {
    this.#redis = redis;
  }

  /** Reads the runs within reach. Throws what Redis throws. Calls may overlap. */
  async read(reach: Reach = null): Promise<RunsNow> {
    const [active, ended] = await this.#readAll();
    const near = <T extends Pick<Target, 'baseUrl' | 'account'>>(all: readonly T[]) =>
      all.filter((one) => isWithin(reach, one));
    const known = reach === null ? ended : ended.filter(([, run]) => isWithin(reach, run));
    const last = known.sort(([, a], [, b]) => b.endedAt - a.endedAt).slice(0, recentRuns);
    const recent = await readListed(
      this.#redis,
      last.map(([id]) => id),
    );
    const targets = near(await this.#targets([...active, ...ended.map(([, run]) => run)]));
    return { active: near(active), recent, ended: known.length, targets };
  }

  async #readAll(): Promise<[active: ListedRun[], ended: [id: string, Ended][]]> {
    const ids = await this.#redis.zrevrange(keys.runs, 0, -1);
    if (performance.now() - this.#begunAt > readAgainMs) this.#forget();
    const known = new Map<string, Ended>();
    const open: string[] = [];
    for (const id of ids) {
      const ended = this.#ended.get(id);
      if (ended === undefined) open.push(id);
      else known.set(id, ended);
    }
    const active: ListedRun[] = [];
    for (let from = 0; from < open.length; from += runsAtOnce) {
      for (const run of await readListed(this.#redis, open.slice(from, from + runsAtOnce))) {
        if (isFinalized(run.state)) known.set(run.id, endedOf(run));
        else active.push(run);
      }
    }
    this.#ended = known;
    return [active, [...known]];
  }

  #forget(): void {
    this.#ended = new Map();
    this.#begunAt = performance.now();
  }

  async #targets(runs: readonly Pick<Target, 'baseUrl' | 'account'>[]): Promise<Target[]> {
    const noted = (await this.#redis.zrange(keys.targets, 0, '-1')).map((name) => JSON.parse(name) as [string, string]);
    const found = new Map(
      noted.map(([baseUrl, account]) => [JSON.stringify([baseUrl, account]), { baseUrl, account }]),
    );
    for (const { baseUrl, account } of runs) found.set(JSON.stringify([baseUrl, account]), { baseUrl, account });
    return [...found.values()].map(({ baseUrl, account }) => targetOf(baseUrl, account));
  }
}

function endedOf({ baseUrl, account, endedAt }: ListedRun): Ended {
  return { baseUrl, account, endedAt };
}

const indexes = new WeakMap<RedisClient, RunIndex>();

/** The one index of a connection. */
export function openRunIndex(redis: RedisClient): RunIndex {
  const index = indexes.get(redis) ?? new RunIndex(redis);
  indexes.set(redis, index);
  return index;
}

/** Finds every target that has a run, even an ended one, or was recorded with `noteTarget`. */
export async function knownTargets(redis: RedisClient): Promise<KnownTarget[]> {
  const { active, targets } = await openRunIndex(redis).read();
  const known = targets.map(async (target) => {
    const live: KnownTarget['live'] = {};
    for (const { baseUrl, account, state } of active)
      if (baseUrl === target.baseUrl && account === target.account) live[state] = (live[state] ?? 0) + 1;
    return { ...target, live, stops: await readStops(redis, target.fp) };
  });
  return Promise.all(known);
}
