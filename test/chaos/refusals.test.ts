import { describe, test } from 'vitest';
import { wentWell } from '../../src/ledger/conclusion.ts';
import { refusalOf } from '../../src/ledger/thresholds.ts';
import { type AtEnd, openHarness } from '../support/harness.ts';
import { annotations, makeIds } from '../support/ids.ts';
import { runThrough, type Spell } from '../support/refusals.ts';
import { sized } from '../support/size.ts';

const seeds = sized(3, 200);
const concurrency = 16;
const env = { EXPUNGE_MAX_CONCURRENCY: `${concurrency}`, EXPUNGE_RETRY_DELAYS: '50ms,50ms,50ms,50ms,50ms' };
const lists = sized(
  [
    [0.3, 404, 'random order'],
    [0.95, 403, 'blocks'],
  ] as const,
  [0.05, 0.3, 0.95].flatMap((share) =>
    ([404, 403] as const).flatMap((status) =>
      (['random order', 'blocks'] as const).map((order) => [share, status, order] as const),
    ),
  ),
);

function randomFrom(seed: number): () => number {
  let state = seed * 7_919 + 1;
  return () => {
    state = (state * 48_271) % 2_147_483_647;
    return state / 2_147_483_647;
  };
}

/** A time of one to three bursts of 20 to 5,000 false answers: at the start, in the middle or at the end. */
function spellOf(random: () => number): Spell {
  const pick = <T>(...all: T[]) => all[Math.floor(random() * all.length)]!;
  const ids = pick(400, 1_500, 3_000);
  const bursts = Array.from({ length: pick(1, 1, 2, 3) }, () => {
    const length = pick(20, 25, 40, 90, 400, 5_000);
    return { from: pick(0, Math.floor(random() * ids), Math.max(0, ids - length)), length };
  });
  return {
    ids,
    absent: pick(0, 0, 0.02, 0.1, 0.3),
    bursts,
    workers: pick(1, 4),
    latencyMs: pick(0, 3, 20),
    status: pick(404, 404, 410, 400, 403, 409, 418, 498),
  };
}

describe.concurrent('while an API refuses everything, no id is settled by it', () => {
  for (let seed = 1; seed <= seeds; seed++)
    test(`with seed ${seed}`, async ({ expect, onTestFinished }) => {
      const random = randomFrom(seed);
      const spell = spellOf(random);
      const { run, wrong, broken } = await runThrough(onTestFinished, spell, random);
      const seen = `${JSON.stringify(spell)}: ${run.state} ${run.halt} ${JSON.stringify(run.counts)}`;
      const { halt } = refusalOf(spell.status, false);
      // A refusal at the very end is no success, so it is believed.
      expect(wrong, seen).toBeLessThanOrEqual(halt === 'all_absent' ? 0 : 60);
      if (wrong === 0) expect(broken, seen).toBeNull();
      const expected = spell.absent > 0 ? [halt, 'all_absent'] : [halt];
      if (run.state === 'halted') expect(expected, seen).toContain(run.halt);
    });

  test('and with --expect-absent it is, because all of it is believed', async ({ expect, onTestFinished }) => {
    const bursts = [{ from: 500, length: 40 }];
    const spell: Spell = { ids: 1_000, absent: 0, bursts, workers: 1, latencyMs: 3, status: 404, expectAbsent: true };
    const { run, wrong } = await runThrough(onTestFinished, spell, randomFrom(1));
    expect(run.state).toBe('completed');
    expect(wrong).toBe(40);
  });
});

const late = sized(
  [[403, 100, 1] as const],
  [403, 404, 409, 418, 498].flatMap((status) =>
    [100, 6_000, 60_000].flatMap((after) => [1, 4].map((workers) => [status, after, workers] as const)),
  ),
);

describe('an API that refuses everything late', () => {
  test.for(late)(
    'halts the run with the ids of the streak open: %i after %i ids, with %i processes',
    async ([status, after, workers], { expect, onTestFinished }) => {
      const bursts = [{ from: after, length: 1_000_000 }];
      const spell: Spell = { ids: after + 1_000, absent: 0, bursts, workers, latencyMs: 0, status };
      const { run, wrong, requests } = await runThrough(onTestFinished, spell, randomFrom(1));
      expect([run.state, run.halt, wrong]).toEqual(['halted', refusalOf(status, false).halt, 0]);
      expect(run.reason).toMatch(new RegExp(`\\(${status}\\) while nothing was accepted.* --expect`));
      expect(run.counts.deleted).toBe(after);
      expect(requests - after).toBeLessThan(workers * (24 + 9 * 64));
    },
  );
});

describe.concurrent('at the end of a list, an API that says of everything that it is not there', () => {
  for (let seed = 1; seed <= seeds; seed++)
    test(`makes no id absent in a run that ends well, with seed ${seed}`, async ({ expect, onTestFinished }) => {
      const random = randomFrom(1_000 + seed);
      const pick = <T>(...all: T[]) => all[Math.floor(random() * all.length)]!;
      const last = 1 + Math.floor(random() * 19);
      const ids = last + pick(0, 1, 5, 100, 700);
      const bursts = [{ from: ids - last, length: 1_000_000 }];
      const spell: Spell = { ids, absent: 0, bursts, workers: pick(1, 4), latencyMs: pick(0, 3, 20), status: 404 };
      const { run, wrong, broken } = await runThrough(onTestFinished, spell, random);
      const seen = `${JSON.stringify(spell)}: ${run.state} ${run.halt} ${JSON.stringify(run.counts)}`;
      expect({ wrong, broken, wentWell: wentWell(run) }, seen).toEqual({ wrong: 0, broken: null, wentWell: false });
    });
});

test('a retry of ids that were unknown because nothing was accepted after them believes the same answer no sooner', async ({
  expect,
  onTestFinished,
}) => {
  const ids = makeIds('r', 8);
  const lost = ids.slice(-2);
  const script = (_: string, id: string) => (lost.includes(id) ? ('status-404' as const) : null);
  const harness = await openHarness(onTestFinished, { objects: annotations(ids), faults: { script } });
  Object.assign(harness.env, env);
  const counted = async (code: number | null) => {
    const [last] = (await harness.runs()).sort((a, b) => b.createdAt - a.createdAt);
    return { code, last: last!.id, counts: last!.counts };
  };
  const first = await counted((await harness.run([harness.list(ids), '--resource', 'annotations', '--yes'])).code);
  expect(first).toMatchObject({ code: 3, counts: { deleted: 6, unknown: 2 } });
  const again = await counted((await harness.expunge(['retry', first.last, '--yes'])).code);
  expect(again).toMatchObject({ code: 3, counts: { absent: 0, unknown: 2 } });
  harness.sandbox.faults = {};
  const last = await counted((await harness.expunge(['retry', again.last, '--yes'])).code);
  expect(last).toMatchObject({ code: 0, counts: { deleted: 2 } });
});

describe.concurrent('a run', () => {
  const ids = makeIds('h', 400);
  /** Requests that may still be under way when the rule strikes: a window of each of two chunks, and what is on the wire. */
  const underWay = 2 * 4 * concurrency + concurrency;
  const open = async (atEnd: AtEnd, status: 402 | 403 | 404 | 405 | 418) => {
    const harness = await openHarness(atEnd, {
      objects: annotations(ids),
      latencyMs: 30,
      faults: { [`status-${status}`]: 1 },
    });
    Object.assign(harness.env, env);
    return { harness, line: ['run', harness.list(ids), '--resource', 'annotations', '--yes'] };
  };

  test.for([
    [402, 'halting_status', 0],
    [403, 'forbidden', 24],
    [404, 'all_absent', 24],
    [405, 'wrong_endpoint', 24],
    [418, 'refused', 24],
  ] as const)(
    'is halted by %i for %s soon after %i ids, and the same command goes on',
    async ([status, halt, after], { expect, onTestFinished }) => {
      const { harness, line } = await open(onTestFinished, status);
      expect(await harness.expunge(line)).toMatchObject({ code: 4, stderr: expect.stringContaining('halted: ') });
      const { counts, ...halted } = await harness.onlyRun();
      expect(halted).toMatchObject({ state: 'halted', halt, by: 'guard' });
      expect(counts).toMatchObject({ absent: 0, deleted: 0 });
      expect(harness.arrivals.length).toBeLessThanOrEqual(after + underWay);
      expect(harness.sandbox.remaining()).toBe(ids.length);
      harness.sandbox.faults = {};
      expect(await harness.expunge(line)).toMatchObject({ code: 0 });
      const ended = await harness.onlyRun();
      expect(ended.counts.deleted).toBe(ids.length);
    },
  );

  test('is halted by refusals of one resource, although those of another are accepted all the time', async ({
    expect,
    onTestFinished,
  }) => {
    const script = (resource: string) => (resource === 'views' ? ('status-403' as const) : null);
    const objects = ids.flatMap((id) => [
      { resource: 'annotations' as const, id },
      { resource: 'views' as const, id },
    ]);
    const harness = await openHarness(onTestFinished, { objects, latencyMs: 3, faults: { script } });
    Object.assign(harness.env, env);
    const rows = ids.flatMap((id) => [`annotations,${id}`, `views,${id}`]);
    const list = harness.file('both.csv', `kind,id\n${rows.join('\n')}\n`);
    const { code } = await harness.run([list, '--resource-column', 'kind', '--yes']);
    const { halt, counts } = await harness.onlyRun();
    expect([code, halt, counts.failed]).toEqual([4, 'forbidden', 0]);
    expect(counts.deleted).toBeGreaterThan(0);
  });

  test('is halted for all workers by what they see together, and goes on to its end with --expect-absent', async ({
    expect,
    onTestFinished,
  }) => {
    const { harness, line } = await open(onTestFinished, 404);
    await Promise.all([harness.worker(), harness.worker()]);
    await harness.expunge([...line, '--detach']);
    const { id, halt } = await harness.runIs('halted', ({ state }) => state === 'halted');
    expect(halt).toBe('all_absent');
    expect(harness.arrivals.length).toBeLessThanOrEqual(2 * (24 + underWay));
    expect(await harness.expunge(['resume', id, '--expect-absent'])).toMatchObject({ code: 0 });
    const { counts } = await harness.runIs('completed', ({ state }) => state === 'completed');
    expect(counts).toMatchObject({ absent: ids.length });
  });
});

describe.concurrent('a list of which the API refuses many ids', () => {
  test.for(lists)(
    '%d of it with %i, in %s: ends if that is expected, otherwise a halt explains itself',
    async ([share, status, order], { expect, onTestFinished }) => {
      const random = randomFrom(9);
      const ids = makeIds('m', 1_000);
      const isRefused = (n: number) => (order === 'blocks' ? n % 200 < 200 * share : random() < share);
      const refused = new Set(ids.filter((_, n) => isRefused(n)));
      const objects = annotations(ids.filter((id) => status === 403 || !refused.has(id)));
      const script = (_: string, id: string) => (status === 403 && refused.has(id) ? ('status-403' as const) : null);
      const harness = await openHarness(onTestFinished, { objects, faults: { script } });
      Object.assign(harness.env, env);
      const run = (...more: string[]) =>
        harness.run([harness.list(ids), '--resource', 'annotations', '--yes', ...more]);
      const expected = status === 404 ? ['--expect-absent'] : ['--expect', '403'];
      const first = await run();
      if (first.code === 4) {
        expect(first.stderr).toMatch(new RegExp(`\\(${status}\\)[\\s\\S]*${expected.join(' ')}`));
        await run(...expected);
      }
      const { counts, state } = await harness.onlyRun();
      expect([state, counts.deleted, counts.absent + counts.unknown, counts.failed]).toEqual([
        'completed',
        ids.length - refused.size,
        status === 404 ? refused.size : 0,
        status === 403 ? refused.size : 0,
      ]);
    },
  );
});
