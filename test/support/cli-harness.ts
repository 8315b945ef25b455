import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { removeRun } from '../../src/ledger/end-run.ts';
import { listRuns } from '../../src/ledger/list-runs.ts';
import { readRun } from '../../src/ledger/run.ts';
import type { Summary } from '../../src/ledger/summary.ts';
import { targetOf } from '../../src/model/target.ts';
import { keys } from '../../src/redis/keys.ts';
import { type Sandbox, type SandboxOptions, startSandbox } from '../../src/sandbox/server.ts';
import { type CliOptions, type Ended, expunge } from './cli.ts';
import { openTestRedis, testRedisUrl } from './redis.ts';

/** A folder of its own with a sandbox beside it, for commands as a user types them. Their runs are in the Redis of this test run. */
export type CliHarness = {
  folder: string;
  stateDir: string;
  sandbox: Sandbox;
  env: { REDIS_URL: string; EXPUNGE_TOKEN: string; EXPUNGE_STATE_DIR: string };
  /** Writes a file into the folder and returns its path. */
  write(name: string, content: string | Buffer): string;
  /** `expunge …` in the folder. */
  expunge(args: string[], options?: CliOptions): Promise<Ended>;
  /** `expunge run … --base-url <sandbox>`. */
  run(args: string[], options?: CliOptions): Promise<Ended>;
  /** The rows of a run's outcomes.csv without its header. */
  outcomes(run: string): string[];
  /** Closes the sandbox and removes folder, runs and queues. */
  close(): Promise<void>;
};

export async function openCliHarness(options: SandboxOptions = {}): Promise<CliHarness> {
  const folder = mkdtempSync(join(tmpdir(), 'expunge-test-'));
  const sandbox = await startSandbox(options);
  const stateDir = join(folder, 'state');
  const env = { REDIS_URL: testRedisUrl(), EXPUNGE_TOKEN: sandbox.token, EXPUNGE_STATE_DIR: stateDir };
  const call = (args: string[], { env: more, ...rest }: CliOptions = {}) =>
    expunge(args, { cwd: folder, env: { ...env, ...more }, ...rest });
  return {
    folder,
    stateDir,
    sandbox,
    env,
    write: (name, content) => {
      writeFileSync(join(folder, name), content);
      return join(folder, name);
    },
    expunge: call,
    run: (args, options) => call(['run', '--base-url', sandbox.url, ...args], options),
    outcomes: (run) =>
      readFileSync(join(stateDir, 'runs', run, 'outcomes.csv'), 'utf8')
        .trimEnd()
        .split('\n')
        .slice(1),
    close: async () => {
      await sandbox.close();
      await forgetTarget(sandbox.url);
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** Removes what Redis holds of the runs against a base URL, and their queues. */
export async function forgetTarget(baseUrl: string): Promise<void> {
  const redis = await openTestRedis();
  try {
    const own = (await listRuns(redis)).filter((run) => run.baseUrl === baseUrl);
    for (const run of await Promise.all(own.map(({ id }) => readRun(redis, id)))) if (run) await removeRun(redis, run);
    const noted = (await redis.zrange(keys.targets, 0, '-1')).filter((name) => JSON.parse(name)[0] === baseUrl);
    if (noted.length > 0) await redis.zrem(keys.targets, ...noted);
    const accounts = new Set(['', ...own.map(({ account }) => account), ...noted.map((name) => JSON.parse(name)[1])]);
    for (const account of accounts) {
      const left = await redisKeysWith(targetOf(baseUrl, account).fp);
      if (left.length > 0) await redis.unlink(...left);
    }
  } finally {
    redis.disconnect();
  }
}

/** Lets a run stand as a kill between its last answer and its report leaves it. */
export async function forgetDelivery(run: string): Promise<void> {
  const redis = await openTestRedis();
  await redis.hdel(keys.run(run), 'delivered', 'reportIn', 'isExpiring');
  await redis.persist(keys.manifest(run, 0));
  redis.disconnect();
}

/** The keys of a run that stay for ever. */
export async function lastingKeys(run: string): Promise<string[]> {
  const redis = await openTestRedis();
  const names = await redisKeysWith(`{${run}}`);
  const left = await Promise.all(names.map((name) => redis.pttl(name)));
  redis.disconnect();
  return names.filter((_, i) => left[i] === -1);
}

/** The keys whose name holds this text. */
export async function redisKeysWith(text: string): Promise<string[]> {
  const redis = await openTestRedis();
  try {
    const found: string[] = [];
    for await (const some of redis.scanStream({ match: `*${text}*`, count: 1_000 })) found.push(...some);
    return found;
  } finally {
    redis.disconnect();
  }
}

/** The last line of `--json`. */
export function summaryIn({ stdout }: Ended): Summary {
  return JSON.parse(stdout.trimEnd().split('\n').at(-1)!);
}
