import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { Redis } from 'ioredis';
import { inject } from 'vitest';
import { readResources } from '../../src/config/read-resources.ts';
import { type Run, readRun } from '../../src/ledger/run.ts';
import { defineResources } from '../../src/model/resource.ts';
import type { RedisClient } from '../../src/redis/client.ts';
import { keys } from '../../src/redis/keys.ts';
import type { FaultKind } from '../../src/sandbox/fault-kinds.ts';
import { type CommandOptions, command, summaryIn } from './command.ts';
import { type AtEnd, type Harness, type HarnessOptions, openHarness } from './harness.ts';
import { annotations, makeIds } from './ids.ts';
import { type Done, until } from './processes.ts';
import { openPatientRedis } from './redis.ts';

declare module 'vitest' {
  interface ProvidedContext {
    testRun: string;
  }
}

// Runs that many tests look at, and none changes. Each is made when a test of a test run asks for it first, by commands, as people make it. All
// others get what is left of it in Redis and in the state folder, which takes milliseconds.

const ids = makeIds('a', 6);
const soon = { EXPUNGE_RETRY_DELAYS: '1ms,1ms,1ms,1ms,1ms' };
const hour = (n: number) => `${String((new Date().getUTCHours() + n) % 24).padStart(2, '0')}:00`;
const laterToday = `${hour(12)}-${hour(13)}`;

const answers: Record<string, [kind: FaultKind, times: number]> = {
  'once-executed': ['status-503-executed', 1],
  forbidden: ['status-403', Number.POSITIVE_INFINITY],
  page: ['html-200', Number.POSITIVE_INFINITY],
};

/** How a run is made. `fault`: the answer to every request. `make` returns the id of the run. */
type Making = {
  resources?: object; // of the configuration file
  options?: HarnessOptions;
  fault?: FaultKind;
  make(harness: Harness, resources: object): Promise<string>;
};

/** `expunge run` of a list of annotations; the id of its run. */
async function submit(harness: Harness, list: readonly string[], args: readonly string[], env: NodeJS.ProcessEnv = {}) {
  harness.file('list.csv', `id,note\n${list.map((id) => `${id},"a, ""b"""`).join('\n')}\n`);
  const done = await harness.run(['list.csv', '--resource', 'annotations', '--yes', '--json', ...args], { env });
  return summaryIn(done).run;
}

/** A run that no worker has begun with. */
function detached(args: readonly string[], ...then: ((harness: Harness, run: string) => Promise<unknown>)[]): Making {
  return {
    make: async (harness) => {
      const run = await submit(harness, ids, ['--detach', ...args], { EXPUNGE_USER: 'ana' });
      for (const step of then) await step(harness, run);
      return run;
    },
  };
}

const pauses = (EXPUNGE_USER: string, reason: string) => (harness: Harness, run: string) =>
  harness.expunge(['pause', run, '--reason', reason], { env: { EXPUNGE_USER } });

/** A run of so many ids that are all answered alike, until a guard stops it. */
function guarded(fault: FaultKind, count: number, args: readonly string[] = []): Making {
  return { fault, make: (harness) => submit(harness, makeIds('g', count), args) };
}

/** Every outcome but `not_attempted`: exit code 3. */
const mixed = ['a-000000', 'gone', 'a-000000', 'a/b', 'kept', 'once-executed', 'forbidden', 'page'];
const completed = async (harness: Harness) => {
  harness.file('keep.txt', 'kept\n');
  const labels = ['--label', 'ticket=OPS-77', '--reason', 'old boards'];
  const flags = ['--protect', 'keep.txt', '--expect-absent', ...labels];
  return submit(harness, mixed, flags, { ...soon, EXPUNGE_USER: 'ana' });
};

const makings = {
  completed: { make: completed },
  clean: { make: (harness: Harness) => submit(harness, ids, []) },
  retried: {
    make: async (harness: Harness) => {
      const run = await completed(harness);
      await harness.expunge(['retry', run, '--yes'], { env: soon });
      return run;
    },
  },
  maxFailures: guarded('status-400', 12, ['--max-failures', '5', '--expect', '400']),
  canary: guarded('status-400', 12, ['--canary', '10']),
  maxDeletes: { make: (harness: Harness) => submit(harness, ids, ['--max-deletes', '3', '--partial']) },
  allAbsent: guarded('status-404', 60),
  forbidden: guarded('status-403', 200, ['--max-concurrency', '4']),
  loginPage: guarded('html-200', 12),
  wrongEndpoint: guarded('status-405', 60),
  /** Its command waited for a window and was ended. */
  interrupted: {
    make: async (harness: Harness) => {
      const args = ['run', harness.list(ids), '--resource', 'annotations', '--yes', '--window', laterToday];
      const running = harness.start(args);
      const { id } = await harness.runIs('running', ({ state }) => state === 'running');
      running.signal('SIGTERM');
      await running.ended;
      return id;
    },
  },
  /** Nobody works on it. */
  waiting: detached(['--reason', 'old boards']),
  paused: detached([], pauses('ana', 'which list?')),
  pausedByTwo: detached([], pauses('ana', 'which list?'), pauses('bob', 'release window')),
  cancelled: detached([], (harness, run) => harness.expunge(['cancel', run, '--yes', '--reason', 'a wrong list'])),
  grace: detached(['--grace', '2h']),
  closedWindow: detached(['--window', laterToday]),
  ownRate: detached(['--rate', '5/min']),
  /** A target with two runs, of which one is paused. */
  stopped: {
    make: async (harness: Harness) => {
      const ana = { EXPUNGE_USER: 'ana' };
      const first = await submit(harness, ids, ['--detach'], ana);
      await pauses('bob', 'which list?')(harness, first);
      harness.file('second.csv', `id\n${ids.slice(3).join('\n')}\n`);
      const list = ['second.csv', '--resource', 'annotations', '--detach', '--yes', '--json'];
      const { run } = summaryIn(await harness.run(list, { env: ana }));
      await harness.expunge(['stop-all', '--reason', 'they call us'], { env: ana });
      return run;
    },
  },
  /** The command that deletes it has been killed. */
  deadCommand: detached([], async ({ redis, target }, run) => {
    await redis.hset(keys.run(run), 'detached', 0);
    await redis.srem(keys.targetRuns(target.fp), run);
  }),
  /** Of a resource that only its configuration file, which its state folder does not hold, defines. */
  configured: {
    resources: { dashboards: { path: '/v1/dashboards/{id}', success: [200] } },
    options: { objects: [{ resource: 'dashboards', id: 'd-1' }] },
    make: async (harness: Harness, resources: object) => {
      const defined = { EXPUNGE_CONFIG: harness.file('dashboards.json', JSON.stringify({ resources })) };
      const args = ['run', harness.list(['d-1']), '--resource', 'dashboards', '--yes', '--json'];
      return summaryIn(await harness.expunge(args, { env: defined })).run;
    },
  },
} satisfies Record<string, Making>;

export type SceneName = keyof typeof makings;

/** All of them, for what holds for each. */
export const sceneNames = Object.keys(makings) as SceneName[];

/** What is left of a run: binary keys and files in base64. */
type Left = {
  run: string;
  baseUrl: string;
  account: string;
  redis: { key: string; dump: string; expiresAt: number }[];
  files: { path: string; content: string }[];
};

/** A run in the Redis of the tests, and a folder of the test's own with the state folder that the run left. */
export type Scene = {
  /** As it stands in Redis: nobody works on it. */
  run: Run;
  folder: string;
  stateDir: string;
  env: NodeJS.ProcessEnv;
  redis: Redis;
  /** `expunge …` in that folder, with the target, the Redis and the state folder of the run. */
  expunge(args: readonly string[], options?: CommandOptions): Promise<Done>;
};

/** Opens a run for tests that only read it: others have it too. */
export async function openScene(atEnd: AtEnd, name: SceneName): Promise<Scene> {
  const redis = await openPatientRedis();
  const left = await leftOf(redis, name);
  const folder = mkdtempSync(join(tmpdir(), 'expunge-test-'));
  const stateDir = join(folder, 'state');
  writeFiles(left, folder);
  const root = process.cwd();
  atEnd(async () => {
    redis.disconnect();
    process.chdir(root);
    rmSync(folder, { recursive: true, force: true });
  });
  const env = {
    REDIS_URL: inject('redisUrl'),
    EXPUNGE_TOKEN: 'none',
    EXPUNGE_BASE_URL: left.baseUrl,
    EXPUNGE_ACCOUNT: left.account,
    EXPUNGE_STATE_DIR: stateDir,
  };
  const expunge: Scene['expunge'] = (args, options = {}) => {
    process.chdir(folder);
    return command(args, { ...options, env: { ...env, ...options.env } });
  };
  return { run: (await readRun(redis, left.run))!, folder, stateDir, env, redis, expunge };
}

/** Puts a run into another Redis, as that of an API, and what it left into a state folder. Returns the run. */
export async function loadScene(into: RedisClient, name: SceneName, stateDir?: string): Promise<Run> {
  const redis = await openPatientRedis();
  const left = await leftOf(redis, name).finally(() => redis.disconnect());
  await restore(into as Redis, left);
  if (stateDir !== undefined) writeFiles(left, dirname(stateDir));
  return (await readRun(into, left.run))!;
}

const known = new Map<SceneName, Left>();

/** Makes the run, or waits for the worker that makes it. */
async function leftOf(redis: Redis, name: SceneName): Promise<Left> {
  const left = known.get(name) ?? (await until(`the scene ${name} is made`, () => makeOnce(redis, name)));
  known.set(name, left);
  return left;
}

async function makeOnce(redis: Redis, name: SceneName): Promise<Left | null> {
  const key = `test:${inject('testRun')}:scene:${name}`;
  const made = await redis.get(key);
  if (made !== null) return JSON.parse(made);
  if ((await redis.set(`${key}:lease`, '', 'PX', 120_000, 'NX')) === null) return null;
  const { resources = {}, options, fault, make }: Making = makings[name];
  const script = (_: string, id: string, nth: number) => {
    const [kind, times] = answers[id] ?? [fault ?? null, Number.POSITIVE_INFINITY];
    return nth <= times ? kind : null;
  };
  const objects = annotations([...ids, 'kept', ...Object.keys(answers)]);
  defineResources(readResources(resources));
  const harness = await openHarness(null, {
    account: `scene-${name}`,
    isKept: true,
    objects,
    faults: { script },
    ...options,
  });
  const left = await make(harness, resources)
    .then((run) => readLeft(harness, run))
    .finally(harness.close);
  await redis.set(key, JSON.stringify(left), 'PX', dayMs);
  return left;
}

const dayMs = 86_400_000;

async function readLeft(harness: Harness, run: string): Promise<Left> {
  const { target, folder, stateDir } = harness;
  const redis = harness.redis as Redis;
  const names: string[] = (await harness.runs()).map(({ list }) => keys.list(list));
  for (const text of [target.fp, ...(await harness.runs()).map(({ id }) => id)])
    for await (const some of redis.scanStream({ match: `*${text}*`, count: 1_000 })) names.push(...some);
  const read = async (key: string) => {
    await redis.call('PEXPIRE', key, dayMs, 'NX'); // what never expires goes with the day, in a Redis that outlives the tests
    const [dump, expiresAt] = [await redis.dumpBuffer(key), Number(await redis.call('PEXPIRETIME', key))];
    return dump === null ? [] : [{ key, dump: dump.toString('base64'), expiresAt }];
  };
  return {
    run,
    baseUrl: target.baseUrl,
    account: target.account,
    redis: (await Promise.all(names.map(read))).flat(),
    files: readdirSync(stateDir, { recursive: true, encoding: 'utf8' })
      .map((path) => join('state', path))
      .filter((path) => statSync(join(folder, path)).isFile())
      .map((path) => ({ path, content: readFileSync(join(folder, path), 'base64') })),
  };
}

/** Repeating it is harmless. */
async function restore(redis: Redis, { redis: dumped }: Left): Promise<void> {
  const put = ({ key, dump, expiresAt }: Left['redis'][number]) =>
    redis.restore(key, expiresAt, Buffer.from(dump, 'base64'), 'REPLACE', 'ABSTTL');
  await Promise.all(dumped.map(put));
  for (const { key } of dumped) {
    const [, run] = /^expunge:\{(.*)\}:run$/.exec(key) ?? [];
    if (run) await redis.zadd(keys.runs, Number(await redis.hget(key, 'createdAt')), run);
  }
}

function writeFiles({ files }: Left, folder: string): void {
  for (const { path, content } of files) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), Buffer.from(content, 'base64'), { mode: 0o600 });
  }
}
