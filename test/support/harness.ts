import { randomUUID } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Redis } from 'ioredis';
import { afterAll } from 'vitest';
import { loadConfig } from '../../src/config/read-config.ts';
import { decodeLedgerChunk } from '../../src/ledger/cell.ts';
import { type Run, readRun } from '../../src/ledger/run.ts';
import { setLimit } from '../../src/ledger/steer-target.ts';
import { parseRate } from '../../src/model/rate.ts';
import { type Target, targetOf } from '../../src/model/target.ts';
import type { RedisAddress } from '../../src/redis/address.ts';
import type { RedisClient } from '../../src/redis/client.ts';
import { isRedisError } from '../../src/redis/errors.ts';
import { keys } from '../../src/redis/keys.ts';
import { resolveRedis } from '../../src/redis/private/open.ts';
import { type Sandbox, type SandboxOptions, startSandbox } from '../../src/sandbox/server.ts';
import { type CommandOptions, startCommand } from './command.ts';
import { listRuns } from './list-runs.ts';
import { type Done, type Running, startExpunge, until } from './processes.ts';
import { openLedgerOn, openPatientRedis, testRedisUrl } from './redis.ts';
import { forgetTarget } from './redis-keys.ts';

/** Calls what it is given when the test is over; the context of a test has it. */
export type AtEnd = (task: () => Promise<void>) => void;

/** The same for what all tests of a file, or of a `describe`, share: the last task is done first. */
export function atEndOfTests(): AtEnd {
  const tasks: (() => Promise<void>)[] = [];
  afterAll(async () => {
    for (const task of tasks.toReversed()) await task();
  });
  return (task) => void tasks.push(task);
}

export type HarnessOptions = SandboxOptions & {
  /** One of the test's own by default. */
  account?: string;
  /** Whether its runs stay in Redis. */
  isKept?: boolean;
};

/** The Redis of a test that has its own, which goes with the test; `env` is what commands need to log in there. */
export type OwnRedis = { url: string; env?: NodeJS.ProcessEnv };

/**
 * What a test of the whole needs: a sandbox, a target of its own, a folder, and commands that work on them, in this process or in one of their
 * own. Everything goes when the test is over.
 */
export type Harness = {
  readonly sandbox: Sandbox;
  readonly redis: RedisClient;
  readonly target: Target;
  readonly folder: string;
  readonly stateDir: string;
  /** With it commands find the sandbox, its token, the account, the Redis and the state folder. */
  readonly env: NodeJS.ProcessEnv;
  /** When each authorised request arrived, by `performance.now()`. */
  readonly arrivals: readonly number[];
  /** Writes a file into the folder and returns its path. */
  file(name: string, content: string | Buffer): string;
  /** Writes a list, one id a line, and returns its path. */
  list(ids: readonly string[]): string;
  /** `expunge …` in the folder, done in this process. */
  expunge(args: readonly string[], options?: CommandOptions): Promise<Done>;
  /** `expunge run …`, the same way. */
  run(args: readonly string[], options?: CommandOptions): Promise<Done>;
  /** `expunge plan …`, the same way; returns the id of the plan that waits then. */
  plan(args: readonly string[], options?: CommandOptions): Promise<string>;
  /** A command in this process that is still on its way. */
  start(args: readonly string[], env?: NodeJS.ProcessEnv): Running;
  /** A command in a process of its own. */
  spawn(args: readonly string[], env?: NodeJS.ProcessEnv, stdin?: NodeJS.ReadableStream): Running;
  /** Starts a worker in this process and waits until it listens. */
  worker(args?: readonly string[], env?: NodeJS.ProcessEnv): Promise<Running>;
  /** The same in a process of its own. */
  spawnWorker(args?: readonly string[], env?: NodeJS.ProcessEnv): Promise<Running>;
  /** Sets the limit of the target, like `200/s,1000/day`. */
  limit(text: string): Promise<boolean>;
  /** Ends it with the test. */
  own(running: Running): Running;
  runs(): Promise<Run[]>;
  /** The only run of the target, as it stands now. */
  onlyRun(): Promise<Run>;
  /** Waits until the run is so. */
  runIs(what: string, condition: (run: Run) => boolean, deadlineMs?: number): Promise<Run>;
  /** The cells of the run, chunk by chunk. */
  cells(): Promise<number[][]>;
  /** The rows of a run's outcomes.csv without its header. */
  outcomes(run: string): string[];
  /** Ends all of it; `atEnd` does so by itself. */
  close(): Promise<void>;
};

const root = process.cwd();

export async function openHarness(
  atEnd: AtEnd | null,
  { account = randomUUID(), isKept = false, ...options }: HarnessOptions = {},
  ownRedis?: OwnRedis,
): Promise<Harness> {
  const arrivals: number[] = [];
  const sandbox = await startSandbox({ record: true, ...options, faults: noting(arrivals, options.faults) });
  const login = { REDIS_URL: ownRedis?.url ?? testRedisUrl(), ...ownRedis?.env };
  const redis = ownRedis ? await openLedgerOn(await addressIn(login)) : await openPatientRedis();
  const target = targetOf(sandbox.url, account);
  const folder = mkdtempSync(join(tmpdir(), 'expunge-test-'));
  const stateDir = join(folder, 'state');
  const processes: Running[] = [];
  const commands: Running[] = [];
  const env = {
    ...login,
    EXPUNGE_TOKEN: sandbox.token,
    EXPUNGE_BASE_URL: sandbox.url,
    ...(account === '' ? {} : { EXPUNGE_ACCOUNT: account }),
    EXPUNGE_STATE_DIR: stateDir,
  };
  const own = (running: Running) => {
    processes.push(running);
    return running;
  };
  const file = (name: string, content: string | Buffer) => {
    writeFileSync(join(folder, name), content);
    return join(folder, name);
  };
  const start = (args: readonly string[], options: CommandOptions = {}) => {
    process.chdir(folder);
    const running = startCommand(args, { ...options, env: { ...env, ...options.env } });
    commands.push(running);
    return running;
  };
  const expunge: Harness['expunge'] = async (args, options) => {
    const running = start(args, options);
    const { code } = await running.ended;
    return { code, stdout: running.stdout, stderr: running.stderr };
  };
  const spawn: Harness['spawn'] = (args, more = {}, stdin) => own(startExpunge(args, { ...env, ...more }, stdin));
  const runs = async () => {
    // A test may name another base URL, but hardly an account that it shares with another test.
    const isOwn = (run: { baseUrl: string; account: string }) =>
      account === '' ? run.baseUrl === sandbox.url : run.account === account;
    const own = (await listRuns(redis)).filter(isOwn);
    return (await Promise.all(own.map(({ id }) => readRun(redis, id)))).filter((run) => run !== null);
  };
  const onlyRun = () => until('there is a run', async () => (await runs())[0]);
  let known = '';
  const close = async () => {
    for (const running of commands) if (!running.isOver) running.signal('SIGTERM');
    for (const running of processes) running.signal('SIGKILL');
    await Promise.all([...commands, ...processes].map(({ ended }) => ended.catch(() => {})));
    // Before the port is free for another test.
    if (!ownRedis && !isKept)
      for (const url of new Set([sandbox.url, ...(await runs()).map(({ baseUrl }) => baseUrl)]))
        await forgetTarget(url, redis as Redis);
    await sandbox.close();
    redis.disconnect();
    process.chdir(root);
    rmSync(folder, { recursive: true, force: true });
  };
  atEnd?.(close);
  return {
    sandbox,
    redis,
    target,
    folder,
    stateDir,
    env,
    arrivals,
    own,
    file,
    expunge,
    spawn,
    runs,
    onlyRun,
    close,
    list: (ids) => file('list.txt', `${ids.join('\n')}\n`),
    run: (args, options) => expunge(['run', ...args], options),
    plan: async (args, options) => {
      const { stderr } = await expunge(['plan', ...args], options);
      const id = /Plan (\S+) waits/.exec(stderr)?.[1];
      if (id === undefined) throw new Error(stderr);
      return id;
    },
    start: (args, more = {}) => start(args, { env: more }),
    worker: (args = [], more = {}) => listening(start(['worker', ...args], { env: more })),
    spawnWorker: (args = [], more = {}) => listening(spawn(['worker', ...args], more)),
    limit: (text) => setLimit(redis, target.fp, parseRate(text), { who: 'test', reason: '', at: Date.now() }),
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
      const { id, chunks } = await onlyRun();
      const all = Array.from({ length: chunks }, (_, n) => redis.getBuffer(keys.ledger(id, n)));
      return (await Promise.all(all)).map((bytes) => decodeLedgerChunk(bytes!).cells);
    },
    outcomes: (run) => {
      const [, ...rows] = readFileSync(join(stateDir, 'runs', run, 'outcomes.csv'), 'utf8')
        .trimEnd()
        .split('\n');
      return rows;
    },
  };
}

/** As a command finds it with these variables. */
function addressIn(env: NodeJS.ProcessEnv): Promise<RedisAddress> {
  const { config } = loadConfig({ flags: {}, env, configFile: undefined });
  return resolveRedis({ ...config, allowPlaintextRedis: true }, env, () => {});
}

/** A test may have taken Redis away for a while. */
export function orNothing(error: unknown): null {
  if (isRedisError(error)) return null;
  throw error;
}

async function listening(worker: Running): Promise<Running> {
  await until('the worker listens', () => worker.stderr.includes('"ready"') || stopIfOver(worker));
  return worker;
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
