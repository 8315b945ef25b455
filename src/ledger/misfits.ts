import { hostname } from 'node:os';
import { describeOtherDefinitions } from '../model/resource.ts';
import type { RedisClient } from '../redis/client.ts';
import { keys } from '../redis/keys.ts';
import type { Misfit } from './run.ts';

const knownRuns = 10_000;

/**
 * Finds runs that this process has to leave alone, because it defines one of their resources in another way. It reads the definitions of each
 * run once, because they never change.
 */
export class Misfits {
  readonly #redis: RedisClient;
  readonly #known = new Map<string, string>(); // run → why; '' = it fits

  constructor(redis: RedisClient) {
    this.#redis = redis;
  }

  /** Why this process has to leave the run alone, which the run records each time for people; '' = it can delete its ids. */
  async whyNot(run: string): Promise<string> {
    const why = this.#known.get(run) ?? (await this.#read(run));
    if (why !== '') await noteMisfit(this.#redis, run, { process: hostname(), why, at: Date.now() });
    return why;
  }

  async #read(run: string): Promise<string> {
    const [state, definitions] = await this.#redis.hmget(keys.run(run), 'state', 'definitions');
    const why = describeOtherDefinitions(definitions ?? '').join(', ');
    if (state === null) return why; // Redis has lost it, and may know it later
    if (this.#known.size >= knownRuns) this.#known.clear();
    this.#known.set(run, why);
    return why;
  }
}

/** Records the last process that left a run alone. Writes nothing if the run is gone. Repeating it is harmless. */
async function noteMisfit(redis: RedisClient, run: string, misfit: Misfit): Promise<void> {
  await redis.eval(noteMisfitLua, 1, keys.run(run), JSON.stringify(misfit));
}

// KEYS 1 run  ARGV 1 misfit
const noteMisfitLua = `
if redis.call('EXISTS', KEYS[1]) == 1 then redis.call('HSET', KEYS[1], 'misfit', ARGV[1]) end
`;
