import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import files from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test, vi } from 'vitest';
import { unlinkRun } from '../../../src/ledger/end-run.ts';
import {
  announceResults,
  dropUndelivered,
  queueResults,
  readUndelivered,
  requeueResults,
} from '../../../src/ledger/results.ts';
import { readRun } from '../../../src/ledger/run.ts';
import { keys } from '../../../src/redis/keys.ts';
import { type Destination, openDestination } from '../../../src/results/destination.ts';
import { moveSet, writeSet } from '../../../src/results/result-set.ts';
import { Deliverer } from '../../../src/worker/deliverer.ts';
import type { AtEnd } from '../../support/harness.ts';
import { until } from '../../support/processes.ts';
import { openReceiver } from '../../support/receiver.ts';
import { openLoneTarget } from './lone-target.ts';

const never = new AbortController().signal;
const day = 86_400_000;
const names = ['failures.csv', 'outcomes.csv', 'report.html', 'summary.json'];

/** A set of results as it stands in a folder. */
function setIn(folder: string) {
  const outcomes = readFileSync(join(folder, 'outcomes.csv'), 'utf8').trimEnd().split('\n').slice(1);
  return { outcomes, summary: JSON.parse(readFileSync(join(folder, 'summary.json'), 'utf8')) };
}

/** A target whose runs have their results delivered, by deliverers with a clock that the test sets. */
async function openStage(atEnd: AtEnd) {
  const stage = await openLoneTarget(atEnd);
  const { redis, fp, clock, log, start, settle, recover } = stage;
  const place = mkdtempSync(join(tmpdir(), 'expunge-results-'));
  atEnd(async () => rmSync(place, { recursive: true, force: true }));
  await announceResults(redis, fp);
  const destinationTo = (results: string, more: object = {}, env: NodeJS.ProcessEnv = {}): Destination => {
    const settings = { results, resultsHeaderFile: undefined, proxy: undefined, allowHttp: undefined, ...more };
    return openDestination({ ...settings, stateDir: join(place, 'state') }, env)!;
  };
  const deliver = (destination: Destination) =>
    new Deliverer({ redis, fp, destination, log, now: () => clock.now, random: () => 0.5 });
  return {
    ...stage,
    place,
    folder: join(place, 'results'),
    destinationTo,
    delivererTo: (results: string | Destination) =>
      deliver(typeof results === 'string' ? destinationTo(results) : results),
    found: async (run: string) => (await readRun(redis, run))!,
    undelivered: () => readUndelivered(redis, fp),
    /** A run whose ids were all deleted, which waits for its delivery. */
    ended: async (ids = 5) => {
      const run = await start(ids);
      await recover();
      await settle(run, 0, ids);
      await recover();
      return run;
    },
  };
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

describe('the results of a run that ends', () => {
  test('come into a folder of its own, readable by its owner only', async ({ onTestFinished }) => {
    const { ended, delivererTo, folder, found, undelivered } = await openStage(onTestFinished);
    const run = await ended(7);
    await delivererTo(folder).deliver();
    expect(readdirSync(folder)).toEqual([run]);
    expect(readdirSync(join(folder, run)).sort()).toEqual(names);
    expect(setIn(join(folder, run))).toMatchObject({ outcomes: { length: 7 }, summary: { run, deleted: 7 } });
    const modes = (paths: string[]) => paths.map((path) => (statSync(path).mode & 0o777).toString(8));
    expect(modes([folder, join(folder, run)])).toEqual(['700', '700']);
    expect(modes(names.map((name) => join(folder, run, name)))).toEqual(['600', '600', '600', '600']);
    expect([(await found(run)).resultsIn, await undelivered()]).toEqual([join(folder, run), []]);
  });

  test('go to a URL with its headers and its query, which nobody is told, the summary last', async ({
    onTestFinished,
  }) => {
    const { ended, delivererTo, destinationTo, place, found, told } = await openStage(onTestFinished);
    const receiver = await openReceiver(onTestFinished);
    const run = await ended();
    const resultsHeaderFile = join(place, 'headers');
    writeFileSync(resultsHeaderFile, 'Authorization: Bearer geheim\nx-ms-blob-type: BlockBlob\n');
    await delivererTo(destinationTo(`${receiver.url}/store/?sig=verschwiegen`, { resultsHeaderFile })).deliver();
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
    expect(receiver.received[0]!.body.split('\n')).toHaveLength(7);
    expect(readdirSync(join(place, 'state', 'results'))).toEqual([]);
    const said = JSON.stringify([told, await found(run)]);
    expect(said).toContain(`${receiver.url}/store/${run}/`);
    expect(said).not.toMatch(/geheim|verschwiegen/);
  });

  test('are tried again later where the receiver answers 500, and hold up those of no other run', async ({
    onTestFinished,
  }) => {
    const { ended, delivererTo, clock, found, undelivered } = await openStage(onTestFinished);
    const receiver = await openReceiver(onTestFinished);
    const [first, second] = [await ended(), await ended()];
    receiver.answer = ({ path }) => (path.includes(first) && receiver.received.length < 9 ? 500 : 200);
    const deliverer = delivererTo(receiver.url);
    await deliverer.deliver();
    expect([receiver.files().size, (await found(second)).resultsAt > 0]).toEqual([4, true]);
    expect((await found(first)).resultsProblem).toBe(`PUT ${receiver.url}/${first}/outcomes.csv: it answers 500`);
    const before = receiver.received.length;
    await deliverer.deliver(); // it waits first
    expect(receiver.received).toHaveLength(before);
    while ((await undelivered()).length > 0) {
      clock.now += 300_000;
      await deliverer.deliver();
    }
    expect(receiver.received.filter(({ status }) => status === 500)).toHaveLength(5); // and four files of the other run
    expect([receiver.files().size, (await found(first)).resultsProblem]).toEqual([8, '']);
  });

  test('follow no redirect: the other host never gets the secret', async ({ onTestFinished }) => {
    const { ended, delivererTo, destinationTo, found } = await openStage(onTestFinished);
    const [receiver, other] = [await openReceiver(onTestFinished), await openReceiver(onTestFinished)];
    const run = await ended();
    receiver.answer = () => ({ location: other.url });
    const env = { EXPUNGE_RESULTS_HEADERS: 'Authorization: Bearer geheim' };
    await delivererTo(destinationTo(receiver.url, {}, env)).deliver();
    expect((await found(run)).resultsProblem).toContain('it answers 307, a redirect, which is not followed');
    expect(other.received).toEqual([]);
  });

  test('come for a halt, and are replaced once the run has gone on and ended', async ({ onTestFinished }) => {
    const { start, settle, steer, recover, delivererTo, folder } = await openStage(onTestFinished);
    const run = await start(9);
    await recover();
    await settle(run, 0, 4);
    await steer(run, 'halt', 'all absent');
    await recover();
    await delivererTo(folder).deliver();
    expect(setIn(join(folder, run)).summary).toMatchObject({ state: 'halted', ended_at: null, pending: 5 });
    await steer(run, 'start');
    await settle(run, 4, 9);
    await recover();
    await delivererTo(folder).deliver();
    expect(setIn(join(folder, run)).summary).toMatchObject({ state: 'completed', deleted: 9, pending: 0 });
    expect(readdirSync(folder)).toEqual([run]);
  });

  test('say in summary.json that files at a URL are being replaced, as long as the receiver refuses one', async ({
    onTestFinished,
  }) => {
    const { start, settle, steer, recover, delivererTo, clock } = await openStage(onTestFinished);
    const receiver = await openReceiver(onTestFinished);
    const deliverer = delivererTo(receiver.url);
    const run = await start(9);
    await recover();
    await steer(run, 'halt', 'all absent');
    await recover();
    await deliverer.deliver();
    const summary = () => JSON.parse(receiver.files().get(`/${run}/summary.json`)!);
    expect(summary()).toMatchObject({ type: 'summary', state: 'halted' });
    receiver.answer = ({ path }) => (path.endsWith('report.html') ? 500 : 200);
    await steer(run, 'start');
    await settle(run, 0, 9);
    await recover();
    await deliverer.deliver();
    expect(receiver.files().get(`/${run}/outcomes.csv`)).not.toContain(',pending,');
    expect(summary()).toEqual({ v: 1, type: 'replacing', run });
    receiver.answer = () => 200;
    clock.now += 300_000;
    await deliverer.deliver();
    expect(summary()).toMatchObject({ type: 'summary', state: 'completed', deleted: 9 });
  });

  test('come for a cancel, with the outcome of each id', async ({ onTestFinished }) => {
    const { start, steer, recover, delivererTo, folder } = await openStage(onTestFinished);
    const run = await start(4);
    await recover();
    await steer(run, 'cancel');
    await recover();
    await delivererTo(folder).deliver();
    expect(setIn(join(folder, run)).summary).toMatchObject({ state: 'cancelled', not_attempted: 4, pending: 0 });
  });

  test('keep its keys for 30 days until they are delivered, then as long as the run is kept', async ({
    onTestFinished,
  }) => {
    const { ended, start, settle, recover, delivererTo, folder, redis, fp, undelivered } =
      await openStage(onTestFinished);
    const keysOf = (run: string) => [keys.run(run), keys.manifest(run, 0), keys.ledger(run, 0), keys.audit(run)];
    const left = (run: string) => Promise.all(keysOf(run).map((key) => redis.pttl(key)));
    const run = await ended();
    expect(Math.min(...(await left(run)))).toBeGreaterThan(29 * day);
    await delivererTo(folder).deliver();
    for (const ms of await left(run)) expect(ms > 0 && ms <= 60_000).toBe(true);
    expect(await undelivered()).toEqual([]);

    await redis.del(keys.results(fp)); // no worker has --results
    const other = await start(5);
    await recover();
    await settle(other, 0, 5);
    await recover();
    for (const ms of await left(other)) expect(ms > 0 && ms <= 60_000).toBe(true);
    expect(await undelivered()).toEqual([]);
  });

  /** @invariant one-result-set */
  test('are sent once, though several workers look for them at the same time', async ({ onTestFinished }) => {
    const { ended, delivererTo, undelivered } = await openStage(onTestFinished);
    const receiver = await openReceiver(onTestFinished);
    receiver.answer = () => until('others had the time to come', () => Promise.resolve(200));
    const runs = [await ended(), await ended(), await ended(), await ended()];
    const workers = Array.from({ length: 4 }, () => delivererTo(receiver.url));
    await until('all are there', async () => {
      await Promise.all(workers.map((worker) => worker.deliver()));
      return (await undelivered()).length === 0;
    });
    const paths = runs.flatMap((run) => names.map((name) => `/${run}/${name}`));
    expect(receiver.received.map(({ path }) => path).sort()).toEqual(paths.sort());
  });

  test('of a run that somebody suspended delivers are not replaced, and else delivered once more', async ({
    onTestFinished,
  }) => {
    const { ended, delivererTo, destinationTo, folder, redis, found } = await openStage(onTestFinished);
    const run = await ended();
    await delivererTo(folder).deliver();
    const before = await found(run);
    writeFileSync(join(folder, run, 'outcomes.csv'), 'of the other worker');
    const late = destinationTo(folder).deliver(redis, before, { signal: never, isHeld: () => false });
    await expect(late).rejects.toThrow('stopped');
    expect(readFileSync(join(folder, run, 'outcomes.csv'), 'utf8')).toBe('of the other worker');
    expect(readdirSync(folder)).toEqual([run]);

    await redis.hset(keys.run(run), 'resultsOf', '');
    await queueResults(redis, await found(run));
    const deliver = async () => {
      await redis.set(keys.resultsLease(run), 'another worker', 'PX', 60_000); // which has delivered it, too
      await redis.hset(keys.run(run), 'resultsOf', before.resultsOf);
      return folder;
    };
    await delivererTo({ label: folder, deliver }).deliver();
    expect((await found(run)).resultsOf).toBe('');
    expect(await redis.get(keys.resultsLease(run))).toBe('lost'); // it gave up a lease that was not its own
    await redis.del(keys.resultsLease(run));
    await delivererTo(folder).deliver();
    expect(setIn(join(folder, run)).outcomes).toHaveLength(5);
  });

  test.for(['while', 'after'])(
    'are delivered once more where a process wakes that was suspended in its delivery, %s another one delivers',
    async (when, { onTestFinished }) => {
      const { ended, delivererTo, redis, found, undelivered } = await openStage(onTestFinished);
      const receiver = await openReceiver(onTestFinished);
      const run = await ended();
      let wake = () => {};
      const woken = new Promise<void>((resolve) => {
        wake = resolve;
      });
      let isSuspended = false;
      const deliver: Destination['deliver'] = async (_redis, _run, lease) => {
        isSuspended = true;
        await woken; // then a file arrives that was on its way
        Object.assign(lease, { isHeld: () => false });
        throw new Error('stopped');
      };
      const late = delivererTo({ label: receiver.url, deliver }).deliver();
      await until('it is suspended', () => isSuspended);
      await redis.del(keys.resultsLease(run)); // it expires
      receiver.answer = async ({ path }) => {
        if (when === 'while' && path.endsWith('failures.csv')) {
          wake();
          await late;
        }
        return 200;
      };
      await delivererTo(receiver.url).deliver();
      wake();
      await late;
      expect((await found(run)).resultsOf).toBe('');
      await redis.del(keys.resultsLease(run));
      await delivererTo(receiver.url).deliver();
      expect((await found(run)).resultsOf).toMatch(/^completed/);
      expect(receiver.received.filter(({ path }) => path.endsWith('outcomes.csv'))).toHaveLength(2);
      expect(await undelivered()).toEqual([]);
    },
  );

  test('keep their summary where a process was suspended while it replaced them, and another one has done so', async ({
    onTestFinished,
  }) => {
    const { ended, delivererTo, folder, redis, found } = await openStage(onTestFinished);
    const run = await ended();
    await moveSet(await writeSet(redis, await found(run), folder, never)); // which was not recorded
    suspendAtFailedRename(onTestFinished, join(folder, run), async () => {
      await redis.del(keys.resultsLease(run)); // it expires meanwhile
      await delivererTo(folder).deliver();
      expect((await found(run)).resultsOf).toMatch(/^completed/);
    });
    await delivererTo(folder).deliver();
    expect(readdirSync(folder)).toEqual([run]);
    expect(readdirSync(join(folder, run)).sort()).toEqual(names);
    expect(setIn(join(folder, run))).toMatchObject({ outcomes: { length: 5 }, summary: { state: 'completed' } });
  });

  test('stay in their folder, whatever name a run has in Redis', async ({ onTestFinished }) => {
    const { ended, delivererTo, place, redis, fp, undelivered } = await openStage(onTestFinished);
    const run = await ended();
    const forged = '/../outside';
    const alike = [keys.run, keys.audit, (id: string) => keys.manifest(id, 0), (id: string) => keys.ledger(id, 0)];
    for (const keyOf of alike) if (await redis.exists(keyOf(run))) await redis.rename(keyOf(run), keyOf(forged));
    await redis.zadd(keys.undelivered(fp), 1, forged);
    await delivererTo(join(place, 'deep', 'results')).deliver();
    expect(readdirSync(place)).toEqual(['deep']);
    expect((await undelivered()).map((one) => one.run)).not.toContain(forged);
    await redis.del(...alike.map((keyOf) => keyOf(forged)));
  });

  test('hold up no other run where one cannot be read', async ({ onTestFinished }) => {
    const { ended, delivererTo, folder, redis, found } = await openStage(onTestFinished);
    const [broken, run] = [await ended(), await ended()];
    await redis.set(keys.manifest(broken, 0), 'no chunk');
    await delivererTo(folder).deliver();
    expect(readdirSync(folder)).toEqual([run]);
    expect((await found(broken)).resultsProblem).not.toBe('');
  });

  test('again while they are delivered are delivered again', async ({ onTestFinished }) => {
    const { ended, delivererTo, folder, redis, fp, found, undelivered } = await openStage(onTestFinished);
    const run = await ended();
    const [before] = await undelivered();
    await redis.hset(keys.run(run), 'state', 'halted', 'changedAt', before!.since - 5);
    await queueResults(redis, await found(run)); // as at its halt; at its end it is put in once more
    await redis.hset(keys.run(run), 'state', 'completed');
    await redis.zadd(keys.undelivered(fp), before!.since, run);
    await delivererTo(folder).deliver();
    expect(setIn(join(folder, run)).summary).toMatchObject({ state: 'completed' });
    expect(await undelivered()).toEqual([]);
  });

  test('are given to nobody where the run has gone on, or has got a late answer, while they were written', async ({
    onTestFinished,
  }) => {
    const { ended, destinationTo, folder, redis, found } = await openStage(onTestFinished);
    const now = await found(await ended());
    const lease = { signal: never, isHeld: () => true };
    for (const before of [
      { ...now, state: 'halted' as const },
      { ...now, counts: { ...now.counts, absent: 4 } },
    ]) {
      const delivery = destinationTo(folder).deliver(redis, before, lease);
      await expect(delivery).rejects.toThrow('the run has changed in the meantime');
    }
    expect(readdirSync(folder)).toEqual([]);
  });

  test('that are put in once more while a worker takes them out stay in', async ({ onTestFinished }) => {
    const { ended, delivererTo, folder, redis, fp, found, undelivered } = await openStage(onTestFinished);
    const run = await ended();
    const [seen] = await undelivered();
    await delivererTo(folder).deliver();
    await requeueResults(redis, run, 'a lease that was lost');
    await dropUndelivered(redis, fp, seen!); // by a worker that saw them delivered
    await delivererTo(folder).deliver();
    expect((await found(run)).resultsOf).toMatch(/^completed/);
    expect(await undelivered()).toEqual([]);
  });

  test('replace what a delivery left that was never recorded, and its drafts', async ({ onTestFinished }) => {
    const { ended, delivererTo, folder, redis, found } = await openStage(onTestFinished);
    const run = await ended();
    await moveSet(await writeSet(redis, await found(run), folder, never));
    mkdirSync(join(folder, `.${run}.elsewhere-1-00.part`));
    writeFileSync(join(folder, `.${run}.elsewhere-1-00.part`, 'outcomes.csv'), 'half');
    mkdirSync(join(folder, `.another.${hostname()}-4194400-00.part`)); // no process has this number
    writeFileSync(join(folder, run, 'outcomes.csv'), 'old');
    await delivererTo(folder).deliver();
    expect(readdirSync(folder)).toEqual([run]);
    expect(readdirSync(join(folder, run)).sort()).toEqual(names);
    expect(setIn(join(folder, run)).outcomes).toHaveLength(5);
  });

  test('of a run that is removed are forgotten', async ({ onTestFinished }) => {
    const { ended, redis, found, undelivered } = await openStage(onTestFinished);
    const run = await ended();
    expect(await undelivered()).toHaveLength(1);
    await unlinkRun(redis, await found(run));
    expect(await undelivered()).toEqual([]);
  });

  test('leave nothing behind where the folder cannot be written, and the run says so', async ({ onTestFinished }) => {
    const { ended, delivererTo, folder, place, clock, redis, found } = await openStage(onTestFinished);
    const run = await ended();
    const deliverer = delivererTo(folder);
    rmSync(folder, { recursive: true }); // somebody puts a file in its place
    writeFileSync(folder, '');
    await deliverer.deliver();
    const { resultsProblem } = await found(run);
    expect(resultsProblem).toContain(folder);
    await redis.hset(keys.run(run), 'resultsProblem', '');
    await deliverer.deliver(); // it waits first
    expect((await found(run)).resultsProblem).toBe('');
    clock.now += 2_000;
    await deliverer.deliver();
    expect((await found(run)).resultsProblem).toBe(resultsProblem);
    expect(readdirSync(place)).toEqual(['results']);
  });
});

test('a worker that is stopped gives its delivery up at once, and another one goes on without waiting', async ({
  onTestFinished,
}) => {
  const { ended, delivererTo, redis, found } = await openStage(onTestFinished);
  const receiver = await openReceiver(onTestFinished);
  const run = await ended();
  receiver.answer = () => 'nothing';
  const { part } = delivererTo(receiver.url);
  await part.start!();
  await until('the delivery hangs', async () => (await redis.exists(keys.resultsLease(run))) === 1);
  await part.drain!();
  expect(await redis.exists(keys.resultsLease(run))).toBe(0);
  receiver.answer = () => 200;
  await delivererTo(receiver.url).deliver();
  expect((await found(run)).resultsIn).toBe(`${receiver.url}/${run}/`);
});
