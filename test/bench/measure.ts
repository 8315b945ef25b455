import { spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Redis } from 'ioredis';
import { cpuOfEnded, cpuOfTree, peakRssOfTree } from './cpu.ts';
import type { Peer } from './peers.ts';
import type { BenchTarget } from './target.ts';

/** CPU seconds of a stretch of time. */
type Cpu = { seconds: number; client: number; redis: number; server: number };

/** What one peer needed. Deleting lasts from the first request that the server gets to its last answer, the whole from start to exit. */
export type Measured = {
  deleting: Cpu;
  whole: Cpu;
  rssMb: number; // the most of one of its processes
  redisBytes: number; // the most that Redis held for it
  fullSpeedSeconds: number; // until a tenth of a second had nine tenths of the median number of answers
};

type Sample = { at: number; client: number; redis: number };

const sampleEveryMs = 25;

/** Runs a peer for a list of `ids` ids on an empty Redis. Throws if it fails, or has not sent a request for each id. */
export async function measure(peer: Peer, target: BenchTarget, redis: Redis, ids: number): Promise<Measured> {
  await redis.flushall();
  await target.take();
  const before = await readRedis(redis);
  const endedBefore = cpuOfEnded();
  const startedAt = performance.now();
  const child = spawn(peer.command, peer.args, {
    env: { ...process.env, ...peer.env, NODE_EXTRA_CA_CERTS: target.ca },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const sampler = new Sampler(child.pid!, redis);
  let stderr = '';
  child.stderr.on('data', (text) => {
    stderr = (stderr + text).slice(-2_000);
  });
  const [code] = await once(child, 'close');
  const seconds = (performance.now() - startedAt) / 1_000;
  await sampler.stop();
  const after = await readRedis(redis);
  const seen = await target.take();
  if (code !== 0) throw new Error(`${peer.name} ended with ${code}: ${stderr}`);
  if (seen.answers < ids) throw new Error(`${peer.name}: expected ${ids} requests, got ${seen.answers}`);
  const [first, last] = [sampler.at(seen.firstAt), sampler.at(seen.lastAt)];
  return {
    deleting: {
      seconds: (seen.lastAt - seen.firstAt) / 1_000,
      client: last.client - first.client,
      redis: last.redis - first.redis,
      server: seen.cpu,
    },
    whole: { seconds, client: cpuOfEnded() - endedBefore, redis: after.cpu - before.cpu, server: seen.cpu },
    rssMb: sampler.rssMb,
    redisBytes: sampler.redisBytes - before.bytes,
    fullSpeedSeconds: fullSpeedAfter(seen.tenths),
  };
}

/** Notes every few milliseconds what a process and Redis have used so far. */
class Sampler {
  readonly #samples: Sample[] = [];
  readonly #pid: number;
  readonly #redis: Redis;
  readonly #loop: Promise<void>;
  #isOver = false;
  rssMb = 0;
  redisBytes = 0;

  constructor(pid: number, redis: Redis) {
    this.#pid = pid;
    this.#redis = redis;
    this.#loop = this.#sample();
  }

  async stop(): Promise<void> {
    this.#isOver = true;
    await this.#loop;
  }

  /** What had been used at this time: between two samples, a share of what came between them. */
  at(time: number): Sample {
    const next = this.#samples.findIndex(({ at }) => at >= time);
    const [a, b] = [this.#samples.at(Math.max(0, next - 1))!, this.#samples.at(next)!];
    const share = b.at > a.at ? (time - a.at) / (b.at - a.at) : 0;
    const between = (key: 'client' | 'redis') => a[key] + share * (b[key] - a[key]);
    return { at: time, client: between('client'), redis: between('redis') };
  }

  async #sample(): Promise<void> {
    while (!this.#isOver) {
      const { cpu, bytes } = await readRedis(this.#redis);
      const client = cpuOfTree(this.#pid);
      if (client > 0) this.#samples.push({ at: Date.now(), client, redis: cpu });
      this.rssMb = Math.max(this.rssMb, peakRssOfTree(this.#pid));
      this.redisBytes = Math.max(this.redisBytes, bytes);
      await new Promise((resolve) => setTimeout(resolve, sampleEveryMs));
    }
  }
}

async function readRedis(redis: Redis): Promise<{ cpu: number; bytes: number }> {
  const [cpu, memory] = (await Promise.all([redis.info('cpu'), redis.info('memory')])) as [string, string];
  const fields = ['sys', 'user', 'sys_children', 'user_children'].map((field) => numberOf(cpu, `used_cpu_${field}`));
  return { cpu: fields.reduce((sum, seconds) => sum + seconds, 0), bytes: numberOf(memory, 'used_memory') };
}

function numberOf(text: string, field: string): number {
  return Number(new RegExp(`^${field}:([\\d.]+)`, 'm').exec(text)![1]);
}

function fullSpeedAfter(tenths: number[]): number {
  const full = 0.9 * median(tenths.slice(0, -1));
  return tenths.findIndex((answers) => answers >= full) / 10;
}

export function median(figures: number[]): number {
  return figures.toSorted((a, b) => a - b)[Math.floor(figures.length / 2)] ?? 0;
}
