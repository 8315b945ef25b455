import { hostname } from 'node:os';
import { describeOtherDefinitions, readDefinitions } from '../model/resource.ts';
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

  /** Why this process has to leave the run alone; '' = it can delete its ids. */
  async whyNot(run: string): Promise<string> {
    return this.#known.get(run) ?? (await this.#read(run));
  }

  /** The same for a process that has the job of a chunk. If it has to leave the run alone, the run records that for people. */
  async whyNotClaim(run: string, chunk: number): Promise<string> {
    const why = await this.whyNot(run);
    if (why !== '') await noteMisfit(this.#redis, run, chunk, { process: hostname(), why, at: Date.now() });
    return why;
  }

  async #read(run: string): Promise<string> {
    const [state, definitions] = await this.#redis.hmget(keys.run(run), 'state', 'definitions');
    const why = describeOtherDefinitions(readDefinitions(definitions ?? '')).join(', ');
    if (state === null) return why; // Redis has lost it, and may know it later
    if (this.#known.size >= knownRuns) this.#known.clear();
    this.#known.set(run, why);
    return why;
  }
}

/**
 * Records the last process that left a run alone, unless another process seems to delete it: some chunk is held, and not this one, whose job would
 * be the holder's. Writes nothing if the run is gone. Repeating it is harmless.
 */
async function noteMisfit(redis: RedisClient, run: string, chunk: number, misfit: Misfit): Promise<void> {
  await redis.eval(noteMisfitLua, 2, keys.run(run), keys.open(run), chunk, JSON.stringify(misfit));
}

// KEYS 1 run, 2 open  ARGV 1 chunk, 2 misfit
const noteMisfitLua = `
if redis.call('EXISTS', KEYS[1]) == 0 then return end
local isHeld = false
for _, holder in ipairs(redis.call('HVALS', KEYS[2])) do isHeld = isHeld or holder ~= '0' end
local former = redis.call('HGET', KEYS[2], ARGV[1])
if not isHeld or (former and former ~= '0') then redis.call('HSET', KEYS[1], 'misfit', ARGV[2]) end
`;
