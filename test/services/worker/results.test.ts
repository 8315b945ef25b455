import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import files from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test, vi } from 'vitest';
import {
  announceResults,
  dropUndelivered,
  queueResults,
  readUndelivered,
  recordResults,
  requestDelivery,
  requeueResults,
} from '../../../src/ledger/results.ts';
import { readRun } from '../../../src/ledger/run.ts';
import type { Log } from '../../../src/logger.ts';
import { keys } from '../../../src/redis/keys.ts';
import { acquireLease } from '../../../src/redis/lease.ts';
import { type Destination, openDestination } from '../../../src/results/destination.ts';
import { moveSet, writeSet } from '../../../src/results/result-set.ts';
import { Deliverer } from '../../../src/worker/deliverer.ts';
import { type AtEnd, type Harness, openHarness } from '../../support/harness.ts';
import { annotations, makeIds } from '../../support/ids.ts';
import { until } from '../../support/processes.ts';
import { openReceiver } from '../../support/receiver.ts';

const never = new AbortController().signal;
const day = 86_400_000;
const names = ['failures.csv', 'outcomes.csv', 'report.html', 'summary.json'];
const silent: Log = { debug() {}, info() {}, warn() {}, error() {} };

let lists = 0;

/** Submits a run of these ids for workers; its id. */
async function submit(harness: Harness, ids: readonly string[], ...args: string[]): Promise<string> {
  const list = harness.file(`list-${lists++}.txt`, `${ids.join('\n')}\n`);
  const done = await harness.run([list, '--resource', 'annotations', '--detach', '--yes', '--json', ...args]);
  if (done.code !== 0) throw new Error(done.stderr);
  return JSON.parse(done.stdout.trimEnd().split('\n').at(-1)!).run;
}

async function facts(harness: Harness, run: string): Promise<Record<string, unknown>> {
  return JSON.parse((await harness.expunge(['status', run, '--json'])).stdout.trimEnd().split('\n').at(-1)!);
}

function delivered(harness: Harness, run: string) {
  return until('the results are delivered', async () => {
    const found = await readRun(harness.redis, run);
    return found!.resultsAt > 0 && found;
  });
}

/** A set of results as it stands in a folder. */
function setIn(folder: string) {
  const [outcomes, failures] = ['outcomes.csv', 'failures.csv'].map((name) => {
    const [, ...rows] = readFileSync(join(folder, name), 'utf8').trimEnd().split('\n');
    return rows;
  });
  return { outcomes, failures, summary: JSON.parse(readFileSync(join(folder, 'summary.json'), 'utf8')) };
}

/** A finalized run that waits for its results, made by workers without --results. */
async function endedRun(harness: Harness, ids: readonly string[]): Promise<string> {
  await announceResults(harness.redis, harness.target.fp);
  const run = await submit(harness, ids);
  await until('it waits', async () =>
    (await readUndelivered(harness.redis, harness.target.fp)).some((one) => one.run === run),
  );
  return run;
}

function destinationTo({ stateDir }: Harness, results: string): Destination {
  const settings = { results, resultsHeaderFile: undefined, stateDir, proxy: undefined, allowHttp: undefined };
  return openDestination(settings, {})!;
}

function delivererTo(harness: Harness, results: string, more: { now?: () => number } = {}): Deliverer {
  const { redis, target } = harness;
  const destination = destinationTo(harness, results);
  return new Deliverer({ redis, fp: target.fp, destination, log: silent, now: Date.now, random: () => 0.5, ...more });
}

/** Suspends who renames something to this path and fails, until `meanwhile` is over; once. */
function suspendAtFailedRename(atEnd: AtEnd, path: string, meanwhile: () => Promise<void>): void {
  const rename = files.rename;
  let isMet = false;
  const spy = vi.spyOn(files, 'rename').mockImplementation(async (from, to) => {
    try {
      await rename(from, to);
    } catch (error) {
      if (to === path && !isMet) {
        isMet = true;
        await meanwhile();
      }
      throw error;
    }
  });
  syncBuiltinESMExports();
  atEnd(async () => {
    spy.mockRestore();
    syncBuiltinESMExports();
  });
}

async function openStage(atEnd: AtEnd, ids: string[]) {
  const harness = await openHarness(atEnd, { objects: annotations(ids) });
  return { harness, folder: join(harness.folder, 'results') };
}

/** A run that has ended under a worker without --results, and waits for its delivery. */
async function openEnded(atEnd: AtEnd) {
  const { harness, folder } = await openStage(atEnd, []);
  await harness.worker();
  const run = await endedRun(harness, makeIds('r', 5));
  return { harness, folder, redis: harness.redis, target: harness.target, run };
}

describe.concurrent('a worker with --results', () => {
  test('puts the results of a run that ends into a folder of its own, readable by its owner only', async ({
    onTestFinished,
  }) => {
    const ids = makeIds('r', 700);
    const { harness, folder } = await openStage(onTestFinished, ids.slice(0, 600));
    await harness.worker(['--results', folder]);
    const run = await submit(harness, [...ids, 'a/7'], '--expect-absent');
    await delivered(harness, run);
    const set = setIn(join(folder, run));
    expect(set.outcomes).toHaveLength(701);
    expect(set.failures).toEqual([]);
    expect(set.summary).toMatchObject({
      run,
      state: 'completed',
      deleted: 600,
      absent: 100,
      rejected: 1,
      adds_up: true,
    });
    expect(readdirSync(folder)).toEqual([run]);
    expect(readdirSync(join(folder, run)).sort()).toEqual(names);
    const modes = [folder, join(folder, run), ...names.map((name) => join(folder, run, name))];
    expect(modes.map((path) => (statSync(path).mode & 0o777).toString(8))).toEqual([
      '700',
      '700',
      '600',
      '600',
      '600',
      '600',
    ]);
    expect(await facts(harness, run)).toMatchObject({ results: join(folder, run), results_problem: null });
    expect((await harness.expunge(['status', run])).stdout).toContain(`results: ${join(folder, run)} on `);
    expect((await harness.expunge(['runs', '--target', harness.target.account])).stdout).toContain(join(folder, run));
  });

  test('sends them to a URL with its headers and its query, the summary last', async ({ onTestFinished }) => {
    const ids = makeIds('r', 30);
    const { harness } = await openStage(onTestFinished, ids);
    const receiver = await openReceiver(onTestFinished);
    const headers = harness.file('headers', 'Authorization: Bearer geheim\nx-ms-blob-type: BlockBlob\n');
    const url = `${receiver.url}/store/?sig=verschwiegen`;
    const worker = await harness.worker(['--results', url, '--results-header-file', headers]);
    const run = await submit(harness, ids);
    await delivered(harness, run);
    expect(receiver.received.map(({ method, path }) => `${method} ${path}`)).toEqual(
      ['outcomes.csv', 'failures.csv', 'report.html', 'summary.json'].map(
        (name) => `PUT /store/${run}/${name}?sig=verschwiegen`,
      ),
    );
    for (const { headers, body } of receiver.received)
      expect(headers).toMatchObject({
        authorization: 'Bearer geheim',
        'x-ms-blob-type': 'BlockBlob',
        'content-length': `${Buffer.byteLength(body)}`,
      });
    expect(receiver.received[0]!.body.split('\n')).toHaveLength(32);
    expect(readdirSync(join(harness.stateDir, 'results'))).toEqual([]);
    const said = `${worker.stderr}${(await harness.expunge(['status', run])).stdout}${JSON.stringify(await facts(harness, run))}`;
    expect(said).toContain(`${receiver.url}/store/${run}/`);
    expect(said).not.toMatch(/geheim|verschwiegen/);
  });

  test('goes on deleting while the receiver answers 500 ten times, and says why the results are not there', async ({
    onTestFinished,
  }) => {
    const ids = makeIds('r', 60);
    const { harness } = await openStage(onTestFinished, ids);
    const receiver = await openReceiver(onTestFinished);
    receiver.answer = () => (receiver.received.length < 10 ? 500 : 200);
    await harness.worker(['--results', receiver.url]);
    const first = await submit(harness, ids.slice(0, 30));
    const problem = `PUT ${receiver.url}/${first}/outcomes.csv: it answers 500`;
    await until('the problem is said', async () => (await facts(harness, first)).results_problem === problem);
    expect((await harness.expunge(['status', first])).stdout).toContain(`results: not delivered yet: ${problem}`);
    const second = await submit(harness, ids.slice(30));
    await until('the other run has ended', async () => (await readRun(harness.redis, second))!.state === 'completed');
    for (const run of [first, second]) await delivered(harness, run);
    expect(receiver.received.filter(({ status }) => status === 500)).toHaveLength(10);
    expect(receiver.files().size).toBe(8);
  });

  test('follows no redirect: the other host never gets the secret', async ({ onTestFinished }) => {
    const ids = makeIds('r', 3);
    const { harness } = await openStage(onTestFinished, ids);
    const [receiver, other] = [await openReceiver(onTestFinished), await openReceiver(onTestFinished)];
    receiver.answer = () => ({ location: other.url });
    await harness.worker(['--results', receiver.url], { EXPUNGE_RESULTS_HEADERS: 'Authorization: Bearer geheim' });
    const run = await submit(harness, ids);
    const problem = await until('it says so', async () => (await readRun(harness.redis, run))!.resultsProblem);
    expect(problem).toContain('it answers 307, a redirect, which is not followed');
    expect(other.received).toEqual([]);
    receiver.answer = () => 200;
    await delivered(harness, run);
  });

  test('delivers a halted run, and replaces that set once the run has gone on and ended', async ({
    onTestFinished,
  }) => {
    const ids = makeIds('r', 700);
    const { harness, folder } = await openStage(onTestFinished, []);
    await harness.worker(['--results', folder]);
    const run = await submit(harness, ids);
    await delivered(harness, run);
    const halted = setIn(join(folder, run));
    expect(halted.summary).toMatchObject({ state: 'halted', ended_at: null, adds_up: true });
    expect(halted.outcomes!.filter((row) => row.includes(',pending,')).length).toBe(halted.summary.pending);
    await harness.expunge(['resume', run, '--expect-absent']);
    await until('the last set is there', async () =>
      (await readRun(harness.redis, run))!.resultsOf.startsWith('completed'),
    );
    expect(setIn(join(folder, run)).summary).toMatchObject({ state: 'completed', absent: 700, pending: 0 });
    expect(readdirSync(folder)).toEqual([run]);
  });

  test('says in summary.json that files at a URL are being replaced, as long as the receiver refuses one', async ({
    expect,
    onTestFinished,
  }) => {
    const { harness } = await openStage(onTestFinished, []);
    const receiver = await openReceiver(onTestFinished);
    await harness.worker(['--results', receiver.url]);
    const run = await submit(harness, makeIds('r', 700));
    await delivered(harness, run);
    const summary = () => JSON.parse(receiver.files().get(`/${run}/summary.json`)!);
    expect(receiver.received).toHaveLength(4);
    expect(summary()).toMatchObject({ type: 'summary', state: 'halted' });
    receiver.answer = ({ path }) => (path.endsWith('report.html') ? 500 : 200);
    await harness.expunge(['resume', run, '--expect-absent']);
    await until('it says so', async () => (await readRun(harness.redis, run))!.resultsProblem.includes('report.html'));
    expect(receiver.files().get(`/${run}/outcomes.csv`)).not.toContain(',pending,');
    expect(summary()).toEqual({ v: 1, type: 'replacing', run });
    receiver.answer = () => 200;
    await until('the last set is there', async () =>
      (await readRun(harness.redis, run))!.resultsOf.startsWith('completed'),
    );
    expect(summary()).toMatchObject({ type: 'summary', state: 'completed', absent: 700 });
  });

  test('delivers a cancelled run with the outcome of each id', async ({ onTestFinished }) => {
    const ids = makeIds('r', 40);
    const { harness, folder } = await openStage(onTestFinished, ids);
    const run = await submit(harness, ids);
    await harness.expunge(['pause', run]);
    await harness.worker(['--results', folder]);
    await harness.expunge(['cancel', run, '--yes']);
    await delivered(harness, run);
    const { summary, failures } = setIn(join(folder, run));
    expect(summary).toMatchObject({ state: 'cancelled', not_attempted: 40, pending: 0 });
    expect(failures).toHaveLength(40);
  });
});

describe.concurrent('the results of a run that has ended', () => {
  test('keep its keys for 30 days until they are delivered, then as long as --keep says', async ({
    onTestFinished,
  }) => {
    const ids = makeIds('r', 20);
    const { harness, folder } = await openStage(onTestFinished, ids);
    const { redis, target } = harness;
    await harness.worker(); // without --results
    await announceResults(redis, target.fp);
    const run = await submit(harness, ids, '--keep', '1h');
    await until('it waits', async () => (await readUndelivered(redis, target.fp)).length === 1);
    const all = [keys.run(run), keys.manifest(run, 0), keys.ledger(run, 0), keys.audit(run)];
    const left = () => Promise.all(all.map((key) => redis.pttl(key)));
    expect(Math.min(...(await left()))).toBeGreaterThan(29 * day);
    expect(await facts(harness, run)).toMatchObject({ results_problem: 'waiting for a worker with --results' });
    await delivererTo(harness, folder).deliver();
    expect(Math.max(...(await left()))).toBeLessThanOrEqual(3_600_000);
    expect(Math.min(...(await left()))).toBeGreaterThan(0);
    expect(await readUndelivered(redis, target.fp)).toEqual([]);
  });

  test('are not waited for where no worker has --results', async ({ onTestFinished }) => {
    const ids = makeIds('r', 5);
    const { harness } = await openStage(onTestFinished, ids);
    await harness.worker();
    const run = await submit(harness, ids, '--keep', '1h');
    await until('it has ended', async () => (await readRun(harness.redis, run))!.isExpiring);
    await until('its end was passed on', async () => (await harness.redis.pttl(keys.run(run))) <= 3_600_000);
    expect(await facts(harness, run)).toMatchObject({ results: null, results_problem: null });
    expect((await harness.expunge(['status', run])).stdout).not.toContain('results:');
  });

  /** @invariant one-result-set */
  test('are sent once, though several workers look for them at the same time', async ({ onTestFinished }) => {
    const ids = makeIds('r', 40);
    const { harness } = await openStage(onTestFinished, ids);
    const receiver = await openReceiver(onTestFinished);
    receiver.answer = () => until('others had the time to come', () => Promise.resolve(200));
    await harness.worker();
    const runs = [];
    for (let n = 0; n < 4; n++) runs.push(await endedRun(harness, ids.slice(n * 10, n * 10 + 10)));
    const workers = Array.from({ length: 4 }, () => delivererTo(harness, receiver.url));
    await until('all are there', async () => {
      await Promise.all(workers.map((worker) => worker.deliver()));
      return (await readUndelivered(harness.redis, harness.target.fp)).length === 0;
    });
    const paths = runs.flatMap((run) => names.map((name) => `/${run}/${name}`));
    expect(receiver.received.map(({ path }) => path).sort()).toEqual(paths.sort());
  });

  test('are not recorded by a worker that has lost the lease', async ({ onTestFinished }) => {
    const ids = makeIds('r', 5);
    const { harness } = await openStage(onTestFinished, ids);
    await harness.worker();
    const run = await endedRun(harness, ids);
    const lease = (await acquireLease(harness.redis, keys.resultsLease(run), never))!;
    await harness.redis.set(keys.resultsLease(run), 'another worker', 'PX', 60_000);
    const facts = { end: 'completed 1', at: 1, place: 'here', by: 'test' };
    expect(await recordResults(harness.redis, run, lease.token, facts)).toBe('lost');
    expect(await readRun(harness.redis, run)).toMatchObject({ resultsOf: '', resultsIn: '' });
    await lease.release();
    expect(await harness.redis.get(keys.resultsLease(run))).toBe('another worker');
  });

  test('of a run that somebody suspended delivers are not replaced, and else delivered once more', async ({
    onTestFinished,
  }) => {
    const ids = makeIds('r', 5);
    const { harness, folder } = await openStage(onTestFinished, ids);
    const { redis, target } = harness;
    await harness.worker();
    const run = await endedRun(harness, ids);
    await delivererTo(harness, folder).deliver();
    const found = (await readRun(redis, run))!;
    writeFileSync(join(folder, run, 'outcomes.csv'), 'of the other worker');
    const late = destinationTo(harness, folder).deliver(redis, found, { signal: never, isHeld: () => false });
    await expect(late).rejects.toThrow('stopped');
    expect(readFileSync(join(folder, run, 'outcomes.csv'), 'utf8')).toBe('of the other worker');
    expect(readdirSync(folder)).toEqual([run]);

    await redis.hset(keys.run(run), 'resultsOf', '');
    await queueResults(redis, (await readRun(redis, run))!);
    const destination = {
      label: folder,
      deliver: async () => {
        await redis.set(keys.resultsLease(run), 'another worker', 'PX', 60_000); // which has delivered it, too
        await redis.hset(keys.run(run), 'resultsOf', found.resultsOf);
        return folder;
      },
    };
    const options = { redis, fp: target.fp, log: silent, now: Date.now, random: () => 0.5 };
    await new Deliverer({ ...options, destination }).deliver();
    expect((await readRun(redis, run))!.resultsOf).toBe('');
    await redis.del(keys.resultsLease(run));
    await delivererTo(harness, folder).deliver();
    expect(setIn(join(folder, run)).outcomes).toHaveLength(5);
  });

  test.for(['while', 'after'])(
    'are delivered once more where a process wakes that was suspended in its delivery, %s another one delivers',
    async (when, { expect, onTestFinished }) => {
      const { harness, redis, target, run } = await openEnded(onTestFinished);
      const receiver = await openReceiver(onTestFinished);
      let wake = () => {};
      const woken = new Promise<void>((resolve) => {
        wake = resolve;
      });
      let isSuspended = false;
      const destination: Destination = {
        label: receiver.url,
        deliver: async (_redis, _run, lease) => {
          isSuspended = true;
          await woken; // then a file arrives that was on its way
          Object.assign(lease, { isHeld: () => false });
          throw new Error('stopped');
        },
      };
      const options = { redis, fp: target.fp, log: silent, now: Date.now, random: () => 0.5 };
      const late = new Deliverer({ ...options, destination }).deliver();
      await until('it is suspended', () => isSuspended);
      await redis.del(keys.resultsLease(run)); // it expires
      receiver.answer = async ({ path }) => {
        if (when === 'while' && path.endsWith('failures.csv')) {
          wake();
          await late;
        }
        return 200;
      };
      await delivererTo(harness, receiver.url).deliver();
      wake();
      await late;
      expect((await readRun(redis, run))!.resultsOf).toBe('');
      await redis.del(keys.resultsLease(run));
      await delivererTo(harness, receiver.url).deliver();
      expect((await readRun(redis, run))!.resultsOf).toMatch(/^completed/);
      expect(receiver.received.filter(({ path }) => path.endsWith('outcomes.csv'))).toHaveLength(2);
      expect(await readUndelivered(redis, target.fp)).toEqual([]);
    },
  );

  test('keep their summary where a process was suspended while it replaced them, and another one has done so', async ({
    expect,
    onTestFinished,
  }) => {
    const { harness, folder, redis, run } = await openEnded(onTestFinished);
    await moveSet(await writeSet(redis, (await readRun(redis, run))!, folder, never)); // which was not recorded
    suspendAtFailedRename(onTestFinished, join(folder, run), async () => {
      await redis.del(keys.resultsLease(run)); // it expires meanwhile
      await delivererTo(harness, folder).deliver();
      expect((await readRun(redis, run))!.resultsOf).toMatch(/^completed/);
    });
    await delivererTo(harness, folder).deliver();
    expect(readdirSync(folder)).toEqual([run]);
    expect(readdirSync(join(folder, run)).sort()).toEqual(names);
    expect(setIn(join(folder, run))).toMatchObject({ outcomes: { length: 5 }, summary: { state: 'completed' } });
  });

  test('stay in their folder, whatever name a run has in Redis', async ({ onTestFinished }) => {
    const ids = makeIds('r', 5);
    const { harness } = await openStage(onTestFinished, ids);
    await harness.worker();
    const run = await endedRun(harness, ids);
    const forged = '/../outside';
    const { redis, target } = harness;
    const alike = [keys.run, keys.audit, (id: string) => keys.manifest(id, 0), (id: string) => keys.ledger(id, 0)];
    for (const keyOf of alike) if (await redis.exists(keyOf(run))) await redis.rename(keyOf(run), keyOf(forged));
    await redis.zadd(keys.undelivered(target.fp), 1, forged);
    await delivererTo(harness, join(harness.folder, 'deep', 'results')).deliver();
    expect(readdirSync(harness.folder)).not.toContain('outside');
    expect((await readUndelivered(redis, target.fp)).map((one) => one.run)).not.toContain(forged);
    await redis.del(...alike.map((keyOf) => keyOf(forged)));
  });

  test('hold up no other run where one cannot be read', async ({ onTestFinished }) => {
    const ids = makeIds('r', 10);
    const { harness, folder } = await openStage(onTestFinished, ids);
    const { redis } = harness;
    await harness.worker();
    const broken = await endedRun(harness, ids.slice(0, 5));
    const run = await endedRun(harness, ids.slice(5));
    await redis.del(keys.manifest(broken, 0));
    await redis.set(keys.manifest(broken, 0), 'no chunk');
    await delivererTo(harness, folder).deliver();
    expect(readdirSync(folder)).toEqual([run]);
    expect((await readRun(redis, broken))!.resultsProblem).not.toBe('');
  });

  test('that end again while they are delivered are delivered again', async ({ onTestFinished }) => {
    const ids = makeIds('r', 5);
    const { harness, folder } = await openStage(onTestFinished, ids);
    const { redis, target } = harness;
    await harness.worker();
    const run = await endedRun(harness, ids);
    const [before] = await readUndelivered(redis, target.fp);
    await redis.hset(keys.run(run), 'state', 'halted', 'changedAt', before!.since - 5);
    await queueResults(redis, (await readRun(redis, run))!); // as at its halt; at its end it is put in once more
    await redis.hset(keys.run(run), 'state', 'completed');
    await redis.zadd(keys.undelivered(target.fp), before!.since, run);
    await delivererTo(harness, folder).deliver();
    expect(setIn(join(folder, run)).summary).toMatchObject({ state: 'completed' });
    expect(await readUndelivered(redis, target.fp)).toEqual([]);
  });

  test('are given to nobody where the run has gone on, or has got a late answer, while they were written', async ({
    expect,
    onTestFinished,
  }) => {
    const { harness, folder, redis, run } = await openEnded(onTestFinished);
    const found = (await readRun(redis, run))!;
    const lease = { signal: never, isHeld: () => true };
    for (const before of [
      { ...found, state: 'halted' as const },
      { ...found, counts: { ...found.counts, absent: 4 } },
    ]) {
      const delivery = destinationTo(harness, folder).deliver(redis, before, lease);
      await expect(delivery).rejects.toThrow('the run has changed in the meantime');
    }
    expect(readdirSync(folder)).toEqual([]);
  });

  test('that are put in once more while a worker takes them out stay in', async ({ expect, onTestFinished }) => {
    const { harness, folder, redis, target, run } = await openEnded(onTestFinished);
    const [seen] = await readUndelivered(redis, target.fp);
    await delivererTo(harness, folder).deliver();
    await requeueResults(redis, run, 'a lease that was lost');
    await dropUndelivered(redis, target.fp, seen!); // by a worker that saw them delivered
    await delivererTo(harness, folder).deliver();
    expect((await readRun(redis, run))!.resultsOf).toMatch(/^completed/);
    expect(await readUndelivered(redis, target.fp)).toEqual([]);
  });

  test('replace what a delivery left that was never recorded, and its drafts', async ({ onTestFinished }) => {
    const ids = makeIds('r', 5);
    const { harness, folder } = await openStage(onTestFinished, ids);
    await harness.worker();
    const run = await endedRun(harness, ids);
    const found = (await readRun(harness.redis, run))!;
    await moveSet(await writeSet(harness.redis, found, folder, never));
    mkdirSync(join(folder, `.${run}.elsewhere-1-00.part`));
    writeFileSync(join(folder, `.${run}.elsewhere-1-00.part`, 'outcomes.csv'), 'half');
    mkdirSync(join(folder, `.another.${hostname()}-4194400-00.part`)); // no process has this number
    writeFileSync(join(folder, run, 'outcomes.csv'), 'old');
    await delivererTo(harness, folder).deliver();
    expect(readdirSync(folder)).toEqual([run]);
    expect(readdirSync(join(folder, run)).sort()).toEqual(names);
    expect(setIn(join(folder, run)).outcomes).toHaveLength(5);
  });

  test('leave nothing behind where the folder cannot be written, and the run says so', async ({ onTestFinished }) => {
    const ids = makeIds('r', 5);
    const { harness } = await openStage(onTestFinished, ids);
    await harness.worker();
    const run = await endedRun(harness, ids);
    const file = join(harness.folder, 'taken');
    let now = Date.now();
    const deliverer = delivererTo(harness, file, { now: () => now });
    rmSync(file, { recursive: true }); // somebody puts a file in its place
    writeFileSync(file, '');
    await deliverer.deliver();
    const problem = (await readRun(harness.redis, run))!.resultsProblem;
    expect(problem).toContain(file);
    await harness.redis.hset(keys.run(run), 'resultsProblem', '');
    await deliverer.deliver(); // it waits first
    expect((await readRun(harness.redis, run))!.resultsProblem).toBe('');
    now += 2_000;
    await deliverer.deliver();
    expect((await readRun(harness.redis, run))!.resultsProblem).toBe(problem);
  });

  test('of a run that is removed are forgotten', async ({ onTestFinished }) => {
    const ids = makeIds('r', 5);
    const { harness } = await openStage(onTestFinished, ids);
    await harness.worker();
    const run = await endedRun(harness, ids);
    await harness.expunge(['runs', 'remove', run, '--yes']);
    expect(await readUndelivered(harness.redis, harness.target.fp)).toEqual([]);
    await requestDelivery(harness.redis, run);
    expect(await harness.redis.exists(keys.run(run))).toBe(0);
  });
});

test('a worker that is stopped gives its delivery up at once, and another one goes on without waiting', async ({
  onTestFinished,
}) => {
  const ids = makeIds('r', 5);
  const { harness } = await openStage(onTestFinished, ids);
  const receiver = await openReceiver(onTestFinished);
  receiver.answer = () => 'nothing';
  const worker = await harness.spawnWorker(['--results', receiver.url]);
  const run = await submit(harness, ids);
  await until('the delivery hangs', async () => (await harness.redis.exists(keys.resultsLease(run))) === 1);
  worker.signal('SIGTERM');
  expect(await worker.ended).toMatchObject({ code: 0 });
  expect(await harness.redis.exists(keys.resultsLease(run))).toBe(0);
  receiver.answer = () => 200;
  await delivererTo(harness, receiver.url).deliver();
  expect(await readRun(harness.redis, run)).toMatchObject({ resultsIn: `${receiver.url}/${run}/` });
});
