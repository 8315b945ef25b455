import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Redis } from 'ioredis';
import { loadConfig } from '../../src/config/read-config.ts';
import { decodeLedgerChunk } from '../../src/ledger/cell.ts';
import { removeRun } from '../../src/ledger/end-run.ts';
import { listRuns } from '../../src/ledger/list-runs.ts';
import { type Run, readRun } from '../../src/ledger/run.ts';
import { type Target, targetOf } from '../../src/model/target.ts';
import type { RedisAddress } from '../../src/redis/address.ts';
import type { RedisClient } from '../../src/redis/client.ts';
import { isRedisError } from '../../src/redis/errors.ts';
import { keys } from '../../src/redis/keys.ts';
import { resolveRedis } from '../../src/redis/private/open.ts';
import { type Sandbox, type SandboxOptions, startSandbox } from '../../src/sandbox/server.ts';
import { type Running, startExpunge, until } from './processes.ts';
import { openLedgerOn, testRedisUrl } from './redis.ts';

/** Calls what it is given when the test is over; the context of a test has it. */
type AtEnd = (task: () => Promise<void>) => void;

/** A sandbox, a target of its own, a folder, and the processes that a test starts there. Everything goes when the test is over. */
export type Harness = {
  readonly sandbox: Sandbox;
  readonly redis: RedisClient;
  readonly target: Target;
  readonly stateDir: string;
  readonly env: NodeJS.ProcessEnv;
  /** When each authorised request arrived, by `performance.now()`. */
  readonly arrivals: readonly number[];
  /** Writes a list, one id a line, and returns its path. */
  list(ids: string[]): string;
  file(name: string, content: string): string;
  expunge(args: string[], env?: NodeJS.ProcessEnv, stdin?: NodeJS.ReadableStream): Running;
  /** Starts a worker and waits until it listens. */
  worker(args?: string[], env?: NodeJS.ProcessEnv): Promise<Running>;
  /** Ends it with the test. */
  own(running: Running): Running;
  runs(): Promise<Run[]>;
  /** The only run of the target, as it stands now. */
  run(): Promise<Run>;
  /** Waits until the run is so. */
  runIs(what: string, condition: (run: Run) => boolean, deadlineMs?: number): Promise<Run>;
  /** The cells of the run, chunk by chunk. */
  cells(): Promise<number[][]>;
};

/** The Redis of a scene that has its own, which goes with the test; `env` is what commands need to log in there. */
export type HarnessRedis = { url: string; env?: NodeJS.ProcessEnv };

export async function openHarness(
  atEnd: AtEnd,
  options: SandboxOptions = {},
  ownRedis?: HarnessRedis,
): Promise<Harness> {
  const arrivals: number[] = [];
  const sandbox = await startSandbox({ record: true, ...options, faults: noting(arrivals, options.faults) });
  const login = { REDIS_URL: ownRedis?.url ?? testRedisUrl(), ...ownRedis?.env };
  const redis = await openLedgerOn(await addressIn(login));
  const target = targetOf(sandbox.url, randomUUID());
  const folder = mkdtempSync(join(tmpdir(), 'expunge-scene-'));
  const stateDir = join(folder, 'state');
  const processes: Running[] = [];
  const env = {
    ...login,
    EXPUNGE_TOKEN: sandbox.token,
    EXPUNGE_BASE_URL: sandbox.url,
    EXPUNGE_ACCOUNT: target.account,
    EXPUNGE_STATE_DIR: stateDir,
  };
  const own = (running: Running) => {
    processes.push(running);
    return running;
  };
  const file = (name: string, content: string) => {
    const path = join(folder, name);
    writeFileSync(path, content);
    return path;
  };
  const expunge: Harness['expunge'] = (args, more = {}, stdin) => own(startExpunge(args, { ...env, ...more }, stdin));
  const runs = async () => {
    const own = (await listRuns(redis)).filter(({ account }) => account === target.account);
    return (await Promise.all(own.map(({ id }) => readRun(redis, id)))).filter((run) => run !== null);
  };
  const run = () => until('there is a run', async () => (await runs())[0]);
  let known = '';
  atEnd(async () => {
    for (const running of processes) running.signal('SIGKILL');
    await Promise.all(processes.map(({ ended }) => ended.catch(() => {})));
    await sandbox.close();
    if (!ownRedis) await forget(redis as Redis, target, await runs());
    redis.disconnect();
    rmSync(folder, { recursive: true, force: true });
  });
  return {
    ...{ sandbox, redis, target, stateDir, env, arrivals, own, file, expunge, runs, run },
    list: (ids) => file('list.txt', `${ids.join('\n')}\n`),
    worker: async (args = [], more = {}) => {
      const worker = expunge(['worker', ...args], more);
      await until('the worker listens', () => worker.stderr.includes('"ready"') || stopIfOver(worker), 60_000);
      return worker;
    },
    runIs: (what, condition, deadlineMs) =>
      until(
        `the run is ${what}`,
        async () => {
          known ||= (await runs().catch(orNothing))?.[0]?.id ?? '';
          const now = known ? await readRun(redis, known).catch(orNothing) : null;
          return now && condition(now) ? now : null;
        },
        deadlineMs,
      ),
    cells: async () => {
      const { id, chunks } = await run();
      const all = Array.from({ length: chunks }, (_, n) => redis.getBuffer(keys.ledger(id, n)));
      return (await Promise.all(all)).map((bytes) => decodeLedgerChunk(bytes!).cells);
    },
  };
}

/** As a command finds it with these variables. */
function addressIn(env: NodeJS.ProcessEnv): Promise<RedisAddress> {
  const { config } = loadConfig({ flags: {}, env, configFile: undefined });
  return resolveRedis({ ...config, allowPlaintextRedis: true }, env, () => {});
}

/** A test may have taken Redis away for a while. */
function orNothing(error: unknown): null {
  if (isRedisError(error)) return null;
  throw error;
}

function stopIfOver(running: Running): false {
  if (running.isOver) throw new Error(`the process ended: ${running.stderr}`);
  return false;
}

function noting(arrivals: number[], faults: SandboxOptions['faults'] = {}): NonNullable<SandboxOptions['faults']> {
  const script = (...request: Parameters<NonNullable<typeof faults.script>>) => {
    arrivals.push(performance.now());
    return faults.script?.(...request) ?? null;
  };
  return { ...faults, script };
}

/** Nothing of a test stays in the Redis that all tests share. */
async function forget(redis: Redis, target: Target, runs: Run[]): Promise<void> {
  for (const run of runs) await removeRun(redis, run);
  await redis.zrem(keys.targets, JSON.stringify([target.baseUrl, target.account]));
  for (const fp of new Set([target.fp, ...runs.map((run) => run.fp)])) {
    for await (const found of redis.scanStream({ match: `expunge:{${fp}}:*`, count: 1_000 })) {
      if ((found as string[]).length > 0) await redis.unlink(...(found as string[]));
    }
  }
}

/** `count` ids `<name>-0001`, …; every fiftieth with characters that a path must encode. */
export function makeIds(name: string, count: number): string[] {
  return Array.from(
    { length: count },
    (_, n) => `${name}-${String(n).padStart(6, '0')}${n % 50 === 7 ? ' ä+&=@:' : ''}`,
  );
}

/** The objects of these ids, as a sandbox takes them. */
export function annotations(ids: string[]) {
  return ids.map((id) => ({ resource: 'annotations' as const, id }));
}
