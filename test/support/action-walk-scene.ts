import { fileURLToPath } from 'node:url';
import { addToken } from '../../src/api/token-store.ts';
import { exitCodes } from '../../src/errors.ts';
import { type AuditEntry, parseEntry, readTargetAudit } from '../../src/ledger/audit.ts';
import { countPending, type Run, readRun } from '../../src/ledger/run.ts';
import { readTargetRevision } from '../../src/ledger/steer-target.ts';
import { readTargetActions } from '../../src/ledger/target-actions.ts';
import { rateSetting } from '../../src/model/rate.ts';
import { keys } from '../../src/redis/keys.ts';
import { people } from './action-walk-draw.ts';
import {
  entryOf,
  type Hold,
  type RunAction,
  type RunModel,
  type TargetAction,
  type TargetModel,
} from './action-walk-model.ts';
import { aofBytes, truncateAof } from './aof.ts';
import { type AtEnd, type Harness, openHarness, orNothing } from './harness.ts';
import { annotations } from './ids.ts';
import { type Running, startNode, until } from './processes.ts';
import { startRedisProcess } from './redis-process.ts';
import { openRedisProxy, type RedisProxy } from './redis-proxy.ts';

/** The safeties that a walk can do without. */
export type Careless = 'comparison' | 'rewriting' | 'single-write';

/** Ids of which runs are made, and how many of them may be sent. */
export type List = { readonly name: string; readonly ids: readonly string[]; readonly maxDeletes: number | null };

/** The rate that a run begins with. */
export const firstRate = '25/s';

/** What a person was shown of a run. */
export type View = Pick<Run, 'revision' | 'rows'> & { pending: number };

/** What an action came to: whether it was confirmed or refused (null: Redis was away, and nobody knows), and the words of whoever took it. */
export type Answered = { isDone: boolean | null; words: string };

export type Scene = {
  readonly harness: Harness;
  /** The way on which producers that are to be killed reach Redis. */
  readonly proxy: RedisProxy;
  readonly workers: readonly Running[];
  readonly kills: { workers: number; producers: number; redis: number; copies: number };
  /** The command that makes a run of a list, also again: a run that was begun keeps its rules. */
  make(list: List, who: string, reason: string, isBegun: boolean): Promise<Answered>;
  action(action: RunAction, view: View): Promise<Answered>;
  actOnTarget(action: TargetAction): Promise<Answered>;
  /** A run as Redis has it, once what was cancelled has ended; null = gone. */
  readRun(id: string): Promise<{ model: RunModel; view: View } | null>;
  readTarget(): Promise<TargetModel>;
  /** The command that makes a run of a list, in a process of its own. */
  startProducer(list: List, who: string): Running;
  killWorker(nth: number): Promise<void>;
  /** Kills Redis, which has all that it acknowledged when it is back. */
  killRedis(): Promise<void>;
  /** Remembers what Redis has now, once every worker has seen all runs: a later cancel of one that none has seen is lost with it. */
  copyRedis(): Promise<void>;
  /** Puts that back, once every worker has seen what was asked for since. */
  restoreRedis(): Promise<void>;
};

const workerCount = 4;
const settings = {
  EXPUNGE_REQUEST_TIMEOUT_MS: '1000',
  EXPUNGE_MAX_CONCURRENCY: '16',
  EXPUNGE_RETRY_DELAYS: '200ms,200ms,200ms,200ms,200ms',
};
const careless = fileURLToPath(new URL('careless.ts', import.meta.url));
const source = fileURLToPath(new URL('../../src/bin.js', import.meta.url));
const looksOfAll = 7 * workerCount; // each looks at all runs every fifth time

/** A Redis, an API with the objects of these lists, a server, and four workers. `without`: the safety that the processes do without. */
export async function openScene(atEnd: AtEnd, lists: readonly List[], without: Careless | null): Promise<Scene> {
  const redis = await startRedisProcess(atEnd, { args: () => ['--appendfsync', 'always'] });
  const harness = await openHarness(
    atEnd,
    { objects: annotations(lists.flatMap(({ ids }) => ids)) },
    { url: `redis://127.0.0.1:${redis.port}` },
  );
  const proxy = await openRedisProxy({ host: '127.0.0.1', port: redis.port });
  atEnd(() => proxy.close());
  const { fp } = harness.target;

  /** `safety`: the one that is lost if this process is careless. */
  const spawn = (safety: Careless, line: readonly string[], env: NodeJS.ProcessEnv = {}) => {
    if (without !== safety) return harness.spawn(line, { ...settings, ...env });
    const whole = { ...harness.env, ...settings, ...env, CARELESS: without };
    return harness.own(startNode(['--import', careless, source, ...line], whole));
  };
  const startWorker = async () => {
    const worker = spawn('rewriting', ['worker']);
    await until('a worker listens', () => {
      if (worker.isOver) throw new Error(`a worker ended: ${worker.stderr}`);
      return worker.stderr.includes('"ready"');
    });
    return worker;
  };
  const workers = await Promise.all(Array.from({ length: workerCount }, startWorker));
  const server = spawn('comparison', ['dashboard', '--port', '0']);
  const api = await until('the server listens', () => /http:\/\/[\d.]+:\d+/.exec(server.stdout + server.stderr)?.[0]);
  const tokens = new Map<string, string>();
  for (const name of people) {
    const login = { name, role: 'operate', reach: null, at: Date.now(), who: 'test', expiresAt: 0 } as const;
    tokens.set(name, await addToken(harness.redis, login));
  }

  const call = async (who: string, { method = 'POST', path, body }: Request): Promise<Answered> => {
    const type = body === undefined ? {} : { 'content-type': 'application/json' };
    const answer = await fetch(`${api}/api/v1${path}`, {
      method,
      headers: { connection: 'close', authorization: `Bearer ${tokens.get(who)}`, ...type },
      body: JSON.stringify(body) ?? null,
    });
    return { isDone: answer.status === 503 ? null : answer.ok, words: `${answer.status}: ${await answer.text()}` };
  };
  const say = async (who: string, line: readonly string[]): Promise<Answered> => {
    const { code, stdout, stderr } = await harness.expunge(line, { env: { EXPUNGE_USER: who } });
    const isDone = code === exitCodes.UNREACHABLE.exit ? null : code === 0;
    return { isDone, words: `exit ${code}: ${stderr.trim()} ${stdout.trim()}` };
  };

  const looks = async () => Number(await harness.redis.hget(keys.witness(fp), 'looks'));
  const allHaveLooked = async () => {
    const before = await looks();
    if (without !== 'rewriting')
      await until('all workers have looked', async () => (await looks()) > before + looksOfAll);
  };
  const kills = { workers: 0, producers: 0, redis: 0, copies: 0 };
  let copiedBytes = aofBytes(redis);
  /** `bytes`: what is left of its file; null = all. */
  const restartRedis = async (bytes: number | null) => {
    await truncateAof(redis, bytes);
    await until('Redis is back', () => harness.redis.ping().catch(orNothing));
    await until('the server has it back', async () => (await call('ana', { method: 'GET', path: '/me' })).isDone);
  };

  return {
    harness,
    proxy,
    workers,
    kills,
    make: (list, who, reason, isBegun) => say(who, makingLine(harness, list, reason, isBegun)),
    action: (action, view) =>
      action.way === 'cli' ? say(action.who, lineOf(action)) : call(action.who, requestOf(action, view)),
    async actOnTarget({ way, command, who, reason }) {
      const give = async () => {
        if (way === 'cli') return say(who, [command, ...because(reason)]);
        if (command === 'stop-all') return call(who, { path: `/targets/${fp}/stop`, body: { reason } });
        const seen = await readTargetRevision(harness.redis, fp);
        return call(who, { path: `/targets/${fp}/start`, body: { reason, seen } });
      };
      const answer = await give();
      return answer.isDone === false ? give() : answer; // a worker may have noted a loss just then
    },
    async readRun(id) {
      const run = await until('what was cancelled has ended', async () => {
        const now = await readRun(harness.redis, id);
        return now?.state === 'cancelling' ? null : { now };
      });
      if (run.now === null) return null;
      const trail = (await harness.redis.lrange(keys.audit(id), 0, -1)).map(parseEntry).reverse();
      const { revision, rows } = run.now;
      return { model: modelOf(run.now, entriesOf(trail)), view: { revision, rows, pending: countPending(run.now) } };
    },
    async readTarget() {
      const { stops } = await readTargetActions(harness.redis, fp);
      return { stops: stops.map(holdOf), trail: entriesOf(await readTargetAudit(harness.redis, fp)) };
    },
    startProducer(list, who) {
      const env = { REDIS_URL: proxy.url, EXPUNGE_USER: who };
      return spawn('single-write', makingLine(harness, list, '', false), env);
    },
    async killWorker(nth) {
      workers[nth % workerCount]!.signal('SIGKILL');
      await workers[nth % workerCount]!.ended;
      kills.workers++;
      workers[nth % workerCount] = await startWorker();
    },
    async killRedis() {
      await restartRedis(null);
      kills.redis++;
    },
    async copyRedis() {
      await allHaveLooked();
      copiedBytes = aofBytes(redis);
    },
    async restoreRedis() {
      await allHaveLooked();
      await restartRedis(copiedBytes);
      kills.copies++;
    },
  };
}

function holdOf({ who, reason }: Hold): Hold {
  return { who, reason };
}

/** The actions of people; what a guard did is no action. */
function entriesOf(audit: readonly AuditEntry[]): string[] {
  return audit.filter(({ by }) => by === 'operator').map(({ action, who, reason }) => entryOf(action, { who, reason }));
}

function modelOf({ id, state, pauses, cancelBy, rate, maxDeletes, files }: Run, trail: string[]): RunModel {
  return {
    id,
    list: /w\d+(?=\.txt)/.exec(files[0] ?? '')?.[0] ?? '',
    state,
    pauses: pauses.map(holdOf),
    isCancelRequested: state === 'preparing' && cancelBy !== '',
    rate: rate === null ? '' : rateSetting(rate),
    maxDeletes,
    trail,
  };
}

function makingLine(harness: Harness, { name, ids, maxDeletes }: List, reason: string, isBegun: boolean): string[] {
  const file = harness.file(`${name}.txt`, `${ids.join('\n')}\n`);
  const part = maxDeletes === null ? [] : ['--max-deletes', String(maxDeletes), '--partial'];
  const rules = isBegun ? [] : ['--rate', firstRate, ...part];
  const how = ['--resource', 'annotations', '--expect-absent', '--detach', '--yes', '--json'];
  return ['run', file, ...how, ...rules, ...because(reason)];
}

/** The flags of a reason. */
function because(reason: string): string[] {
  return reason === '' ? [] : ['--reason', reason];
}

function lineOf(action: RunAction): string[] {
  const line = action.command === 'remove' ? ['runs', 'remove', action.run] : [action.command, action.run];
  if (action.command === 'cancel' || action.command === 'remove') line.push('--yes');
  if (action.command === 'rate') line.push(action.rate);
  if (action.command === 'resume' && action.maxDeletes !== null) line.push('--max-deletes', String(action.maxDeletes));
  return [...line, ...because(action.reason)];
}

type Request = { method?: string; path: string; body?: object };

function requestOf(action: RunAction, { revision: seen, pending, rows }: View): Request {
  const { command, run, reason } = action;
  const path = `/runs/${run}/${command}`;
  switch (command) {
    case 'pause':
      return { path, body: { reason } };
    case 'cancel':
      return { path, body: { reason, left: pending, shown: pending } };
    case 'resume':
      return { path, body: { reason, seen, max_deletes: action.maxDeletes ?? undefined } };
    case 'rate':
      return { path, body: { reason, rate: action.rate } };
    case 'remove': {
      const query = new URLSearchParams({ reason, rows: String(rows), seen: String(seen) });
      return { method: 'DELETE', path: `/runs/${run}?${query}` };
    }
  }
}
