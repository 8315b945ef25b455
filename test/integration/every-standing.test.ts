import type { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { openLedger } from '../../src/ledger/ledger.ts';
import { readEvents } from '../../src/ledger/outbox.ts';
import { readRun } from '../../src/ledger/run.ts';
import { readAround, readHeld } from '../../src/ledger/run-standings.ts';
import { type Cause, causes } from '../../src/ledger/standing.ts';
import { setLimit, stopTarget } from '../../src/ledger/steer-target.ts';
import { control } from '../../src/limiter/learning/control.ts';
import { openPaceCalls } from '../../src/limiter/run-pace.ts';
import { storedSaying } from '../../src/limiter/stop.ts';
import { limiterKeys, openTargetCalls, type TargetCall } from '../../src/limiter/target-call.ts';
import type { Log } from '../../src/logger.ts';
import { parseRate } from '../../src/model/rate.ts';
import { targetOf } from '../../src/model/target.ts';
import { toTypeAnywhere } from '../../src/model/to-type.ts';
import { readRunContext, SnapshotTaker } from '../../src/operations/take-snapshot.ts';
import { keys } from '../../src/redis/keys.ts';
import { lineText, panelText } from '../../src/terminal/panel.ts';
import { publishWaits } from '../../src/worker/event-sources.ts';
import { families } from '../../src/worker/http/metrics.ts';
import { openScrape } from '../../src/worker/http/scrape.ts';
import type { Service } from '../../src/worker/service.ts';
import { StandingLog } from '../../src/worker/standing-log.ts';
import { type Api, openApi } from '../support/api.ts';
import { makeIds } from '../support/ids.ts';
import { listRuns } from '../support/list-runs.ts';
import { until } from '../support/processes.ts';
import { quietCall } from '../support/target-call.ts';

vi.mock('/assets/lit-html/lit-html.js', () => import('lit-html'));
vi.mock('/assets/model/visible.js', () => import('../../src/model/visible.ts'));

// Why nothing is sent, for each cause, wherever somebody may look. Each cause is made as it comes about: an action, a window, a limit used up, what
// a process says of itself. A surface that cannot say a cause has a reason here, and is held to it: it does not.

const ids = makeIds('v', 3);
const minute = 60_000;

/** A cause: how it is made, and what everybody is told (a pattern, without regard to case). */
type Made = {
  words: RegExp;
  args?: string[]; // of its run
  detached?: false;
  isAlone?: true; // no worker lives
  make?(scene: Scene): Promise<unknown>;
  mend?(): Promise<unknown>;
};

type Scene = Awaited<ReturnType<typeof openScene>>;

const inHours = (n: number) => `${String((new Date().getUTCHours() + n) % 24).padStart(2, '0')}:00`;
const author = () => ({ who: 'ana@here', reason: 'they call us', at: Date.now() });
const steering = { by: 'guard', who: '', reason: '2 of 10 failed' } as const;

const made: Record<Cause, Made> = {
  preparing: {
    words: /its list is being written to Redis|Writing the list to Redis/i,
    make: ({ set }) => set({ state: 'preparing', chunks: 2 }), // as its producer leaves it that is killed
  },
  planned: {
    words: /it was not started; nothing was sent yet|Waiting to start; nothing was sent yet/i,
    make: ({ set }) => set({ state: 'planned' }),
  },
  canary: {
    words: /halted( after its canary)?: 2 of 10 failed/i,
    make: ({ ledger, id }) => ledger.steer(id, Date.now(), { action: 'halt', halt: 'canary', ...steering }),
  },
  halted: {
    words: /halted: 2 of 10 failed/i,
    make: ({ ledger, id }) => ledger.steer(id, Date.now(), { action: 'halt', halt: 'max_failures', ...steering }),
  },
  paused: {
    words: /paused by \S+ at \S+: release window/i,
    make: ({ expunge, id }) => expunge(['pause', id, '--reason', 'release window']),
  },
  cancelling: {
    words: /cancelling by ana@here: they call us/i,
    make: async ({ ledger, id }) => {
      await ledger.enqueue(id);
      await ledger.claim(id, 0);
      await ledger.steer(id, Date.now(), { action: 'cancel', by: 'operator', ...author() });
    },
  },
  redis: {
    words: /Redis does not answer|Redis( at \S+)?: Command timed out|Redis was not asked: no answer/i,
    make: async () => process.kill(api.redisPid, 'SIGSTOP'),
    mend: async () => process.kill(api.redisPid, 'SIGCONT'),
  },
  redis_writes: {
    words: /Redis rejects writes/i,
    make: () => needReplicas(1),
    mend: () => needReplicas(0),
  },
  dead_command: {
    words: /command that deleted it has ended, and no other process has taken over/i,
    detached: false,
    isAlone: true,
  },
  stop: {
    words: /stopped for all runs of this target by ana@here: they call us/i,
    make: ({ redis, target }) => stopTarget(redis, target.fp, author()),
  },
  unreadable_rate: {
    words: /its rate "fast" is in a form that this version of expunge can't read/i,
    make: ({ set }) => set({ rate: 'fast' }),
  },
  other_definition: {
    words: /the worker on w1 deletes nothing of it: the resource dashboards is not defined here/i,
    make: ({ set }) =>
      set({ misfit: JSON.stringify({ process: 'w1', why: 'the resource dashboards is not defined here', at: 7 }) }),
  },
  no_worker: { words: /no worker of this target is alive/i, isAlone: true },
  no_token: {
    words: /no token: the token file is empty/i,
    make: ({ says }) =>
      says({ here: storedSaying({ stop: null, token: { reason: 'the token file is empty', since: Date.now() } }) }),
  },
  stop_file: {
    words: /stopped by the file \/run\/stop on node-7/i,
    make: ({ says }) =>
      says({
        wants: false,
        here: storedSaying({
          stop: { by: 'file', who: 'the file /run/stop on node-7', reason: '', at: Date.now() },
          token: null,
        }),
      }),
  },
  grace: { words: /in its grace period, nothing is sent yet/i, args: ['--grace', '2h'] },
  window: { words: /outside its window/i, args: ['--window', `${inHours(2)}-${inHours(3)}`] },
  limit: {
    words: /the limit of this target is used up \(1 a day\)/i,
    make: async ({ redis, target, says }) => {
      await setLimit(redis, target.fp, parseRate('1/day'), author());
      await says({});
    },
  },
  retry_after: {
    words: /the server answered 429 and sent Retry-After 600/i,
    make: ({ says }) => says({ hold: { ms: 600_000, why: 'the server answered 429 and sent Retry-After 600' } }),
  },
  circuit: {
    words: /the API answers 429 to everything/i,
    make: ({ close }) => close('refused', 'the API answers 429 to everything'),
  },
  outage: {
    words: /the API answers 503 to everything/i,
    make: ({ close }) => close('trouble', 'the API answers 503 to everything'),
  },
  run_quota: {
    words: /(--rate|“rate”) allows no more \(1 a day\)/i,
    args: ['--rate', '5/s,1/day'],
    make: async ({ lease }) => {
      await lease();
      await lease(); // finds the quota used up
    },
  },
  run_rate: { words: /(--rate|“rate”) allows 1\/h/i, args: ['--rate', '1/h'], make: ({ lease }) => lease() },
  retry: {
    words: /the ids left failed before and are retried then/i,
    make: async ({ ledger, id }) => {
      await ledger.enqueue(id);
      const claimed = await ledger.claim(id, 0);
      if (typeof claimed === 'string') throw new Error(claimed);
      await ledger.returnChunk({ run: id, chunk: 0, epoch: claimed.epoch, dueInMs: 10 * minute, isRetry: true });
    },
  },
};

let api: Api;
const needReplicas = (n: number) => (api.redis as Redis).config('SET', 'min-replicas-to-write', n);
const end: (() => Promise<void>)[] = [];

beforeAll(async () => {
  api = await openApi((task) => void end.push(task));
  await api.token('read');
});
afterAll(async () => {
  for (const task of end.reverse()) await task();
});

/** A run of a target of its own, that this cause holds and nothing else. */
async function openScene(why: Cause) {
  const { harness, redis } = api;
  const { args = [], detached = true, isAlone = false, make } = made[why];
  const target = targetOf(harness.sandbox.url, why);
  const place = ['--base-url', target.baseUrl, '--account', why];
  const list = harness.file(`list-${causes.indexOf(why)}.txt`, `${ids.join('\n')}\n`);
  const expunge = async (line: string[]) => {
    const { stdout, stderr } = await harness.expunge(line);
    return stdout + stderr;
  };
  const listed = [list, '--resource', 'views', ...place, ...args];
  await expunge(['run', ...listed, '--detach', '--yes']);
  const { id } = (await listRuns(redis)).find((run) => run.account === why)!;
  const ledger = openLedger(redis);
  const calls = openTargetCalls(redis, limiterKeys(target.fp));
  let said: Partial<TargetCall> = {};
  const says = async (more: Partial<TargetCall>) => {
    said = { ...said, ...more };
    const reply = await calls.call(quietCall(said));
    if (reply.turn > 0 && reply.learned === '')
      await calls.store(reply.turn, null, control(null, JSON.parse(reply.seen)));
  };
  const scene = {
    why,
    id,
    run: (await readRun(redis, id))!,
    target,
    place,
    listed,
    detached,
    redis,
    ledger,
    expunge,
    says,
    set: (fields: Record<string, string | number>) => redis.hset(keys.run(id), fields),
    close: async (closed: string, closedWhy: string) => {
      await says({});
      await redis.hset(keys.limiter(target.fp), {
        closed,
        closedWhy,
        closedAt: Date.now(),
        outageSince: Date.now(),
      });
    },
    lease: () =>
      openPaceCalls(redis)(
        { run: keys.run(id), members: keys.paceMembers(id), quotas: keys.paceQuotas(id), refusals: keys.refusals(id) },
        { process: 'p', wants: true, till: '0', unused: 0, unusedSince: 0 },
      ),
    /** A worker lives as long as it calls. */
    live: async () => {
      if (!isAlone) await says({});
    },
  };
  if (!detached) {
    await redis.hset(keys.run(id), 'detached', 0);
    await redis.srem(keys.targetRuns(target.fp), id);
  }
  await scene.live();
  await make?.(scene);
  return scene;
}

/** Each place where somebody looks, and what it says: words, or a cause in front of words. */
const surfaces: Record<string, (scene: Scene) => Promise<string>> = {
  panel: async (scene) => panelText((await takerOf(scene)).take(), 1_000),
  line: async (scene) => lineText((await takerOf(scene)).take()),
  status: ({ expunge, id }) => expunge(['status', id]),
  'status --json': async ({ expunge, id }) => standingIn(await expunge(['status', id, '--json'])),
  runs: async ({ expunge, id }) => lineWith(await expunge(['runs', '--all']), id),
  'runs --json': async ({ expunge, id }) => standingIn(lineWith(await expunge(['runs', '--all', '--json']), id)),
  target: ({ expunge, place }) => expunge(['status', ...place]),
  'target --json': async ({ expunge, place }) => standingIn(await expunge(['status', ...place, '--json'])),
  'API run': async ({ id }) => factsIn(await get(`/runs/${id}`)),
  'API runs': async ({ id }) => factsIn((await get('/runs')).items?.find(isRun(id))),
  'API overview': async ({ id }) => factsIn((await overview()).runs?.active.find(isRun(id))),
  'API target': async ({ target }) => factsIn(await get(`/targets/${target.fp}`)),
  card: async ({ id }) => cardOf((await overview()).runs?.active.find(isRun(id))),
  page: async ({ expunge, id }) => headlineIn(await expunge(['report', id, '--format', 'html'])),
  report: ({ expunge, id }) => expunge(['report', id, '--output', `${id}.csv`]),
  hold: (scene) => samplesOf(scene, 'expunge_hold'),
  'runs held': (scene) => samplesOf(scene, 'expunge_runs_held'),
  log: logged,
  event,
  plan: ({ expunge, listed, detached }) => expunge(['run', ...listed, ...(detached ? ['--detach'] : []), '--dry-run']),
};
type Surface = keyof typeof surfaces;

/** Those that name the cause; the others have its words. */
const naming = /json|API|hold|held/;
/** Its word as `runs` and people have it. */
const named = (why: Cause) => new RegExp(why.replaceAll('_', '[_ ]'), 'i');

const ofRun = 'it is the run that waits, and this is about its target';
const ofTarget = 'nobody calls for the target, so there is nobody to ask; it shows 0 processes';
const byState = 'the state has an event of its own';
const asWished = 'it was asked for, and ends by itself';
const noCommand = 'only detached runs are read there';
const resumes = 'the command that is planned ends it; the plan shows the state';

const noTarget = { 'target --json': ofRun, 'API target': ofRun, hold: ofRun };

/** Why a surface does not say a cause. */
const silent: Record<Cause, Partial<Record<Surface, string>>> = {
  preparing: { ...noTarget, event: byState, plan: resumes },
  planned: { ...noTarget, event: byState, plan: resumes },
  canary: { ...noTarget, event: byState },
  halted: { ...noTarget, event: byState },
  paused: { ...noTarget, event: byState },
  cancelling: { ...noTarget, event: byState, plan: 'the list is refused until it is cancelled' },
  redis: {
    'runs held': 'it is in that Redis',
    log: 'logged when it is seen',
    event: 'the outbox is in that Redis',
  },
  redis_writes: { event: 'the outbox is in that Redis', log: 'logged when a write is rejected' },
  dead_command: { ...noTarget, 'runs held': noCommand, log: noCommand, event: noCommand, plan: resumes },
  stop: { log: 'logged when it is seen' },
  unreadable_rate: noTarget,
  other_definition: { ...noTarget, log: 'logged by the process that leaves the run alone' },
  no_worker: {
    'target --json': ofTarget,
    'API target': ofTarget,
    hold: 'a worker that is scraped is alive',
    event: 'workers post events',
  },
  no_token: {},
  stop_file: { log: 'logged when it is seen' },
  grace: { ...noTarget, event: 'its start has an event of its own', plan: 'the plan has a line for its start' },
  window: { ...noTarget, event: asWished },
  limit: {},
  retry_after: {},
  circuit: {},
  outage: { log: 'logged when it is seen' },
  run_quota: noTarget,
  run_rate: { ...noTarget, event: asWished },
  retry: { ...noTarget, event: asWished },
};

const table: Record<string, Record<string, string>> = {};

/** Those that break Redis come last. */
const breaking = (why: Cause) => ['redis_writes', 'redis'].indexOf(why);

describe.each(causes.toSorted((a, b) => breaking(a) - breaking(b)))('%s', (why) => {
  test('is told wherever somebody looks', () => holdsEverywhere(why));
});

test('each cause is asked for on each surface', () => {
  expect(Object.keys(table).toSorted()).toEqual(causes.toSorted());
  for (const read of Object.values(table)) expect(Object.keys(read)).toEqual(Object.keys(surfaces));
});

async function holdsEverywhere(why: Cause): Promise<void> {
  const scene = await openScene(why);
  const beats = setInterval(() => void scene.live().catch(() => {}), 500);
  const cells = Object.entries(surfaces).map(
    async ([surface, read]) => [surface, await read(scene).catch(String)] as const,
  );
  const read = Object.fromEntries(await Promise.all(cells).finally(() => clearInterval(beats)));
  await made[why].mend?.();
  table[why] = read;
  const says = (surface: Surface) => {
    const words = surface === 'runs' || naming.test(surface) ? named(why) : made[why].words;
    return words.test(read[surface]!);
  };
  const wrong = Object.keys(surfaces).filter((surface) => says(surface) === surface in silent[why]);
  expect(Object.fromEntries(wrong.map((surface) => [surface, read[surface]]))).toEqual({});
}

async function takerOf({ redis, run }: Scene): Promise<SnapshotTaker> {
  const taker = new SnapshotTaker(run, null, toTypeAnywhere);
  const now = await readRun(redis, run.id).catch(() => undefined);
  taker.observe(now);
  taker.observeContext(await readRunContext(redis, run).catch(() => undefined));
  return taker;
}

function lineWith(text: string, word: string): string {
  return text.split('\n').find((line) => line.includes(word)) ?? text;
}

function standingIn(line: string): string {
  return line.startsWith('{') ? factsIn(JSON.parse(line.trimEnd().split('\n').at(-1)!)) : line;
}

type Facts = { standing?: { why: string; text: string } | null };

function factsIn(facts: Facts | undefined): string {
  return facts?.standing ? `${facts.standing.why}: ${facts.standing.text}` : '';
}

async function get(path: string) {
  const { status, body } = await api.call('read', path);
  if (status >= 400) throw new Error(body.detail);
  return body;
}

const isRun = (id: string) => (item: { run: string }) => item.run === id;

/** Named here only, since it is compiled with the types of browsers. */
const cards = new URL('../../src/dashboard/standing.ts', import.meta.url).href;

async function cardOf(run: Facts | undefined): Promise<string> {
  if (run === undefined) return '';
  const { shortStandstill } = await import(cards);
  return textOf(shortStandstill(run));
}

/** What a page says first of its run; what is no page, as it is. */
function headlineIn(page: string): string {
  const [line = page] = /<p><b.*?<\/p>/s.exec(page) ?? [];
  return line
    .replace(/<[^>]*>/g, '')
    .replaceAll('&#39;', "'")
    .replaceAll('&quot;', '"');
}

/** A template as it reads. */
function textOf(part: unknown): string {
  if (Array.isArray(part)) return part.map(textOf).join('');
  if (typeof part !== 'object' || part === null) return typeof part === 'symbol' ? '' : String(part ?? '');
  const { strings = [], values = [] } = part as { strings?: string[]; values?: unknown[] };
  return strings.map((text, n) => text.replace(/<[^>]*>/g, '') + textOf(values[n])).join('');
}

/** The reasons of the samples that are above 0. */
async function samplesOf({ redis, target }: Scene, name: string): Promise<string> {
  const service = { writeRejection: '' } as unknown as Service;
  const clock = () => performance.now();
  const build = { version: '', revision: '' };
  const read = openScrape({ build, service, redis, target, clock, now: Date.now });
  let scrape = await read();
  for (let n = 0; n < 3 && scrape.redis === null; n++) scrape = await read(); // late on a busy machine
  const samples = families.find((family) => family.name === name)!.read(scrape);
  return samples.flatMap(({ value, labels }) => (value > 0 ? labels!.reason! : [])).join(' ');
}

/** The overview is read once for all who look: one that was read after the scene was made. */
async function overview(): Promise<{ runs: { active: (Facts & { run: string })[] } }> {
  const since = Date.now();
  return until('the overview is new', async () => {
    const read = await get('/overview');
    return Date.parse(read.at) >= since ? read : null;
  });
}

async function logged({ redis, target }: Scene): Promise<string> {
  const lines: unknown[] = [];
  const note = (...line: unknown[]) => void lines.push(line);
  const log = new StandingLog({ warn: note, info: note } as unknown as Log);
  const held = await readHeld(redis, target, await readAround(redis, target.fp));
  for (const at of [0, 20_000]) log.observe(held, at);
  return JSON.stringify(lines).replaceAll('\\"', '"');
}

async function event({ redis, target, id, detached }: Scene): Promise<string> {
  const looks = detached ? [id] : [];
  const now = Date.now();
  for (const at of [now, now + 15 * minute]) await publishWaits(redis, target, looks, at);
  const events = await readEvents(redis, target.fp, 0, 50);
  return events.map(({ event }) => `${event.data.why}: ${event.text}`).join('\n');
}
