import { describe, test } from 'vitest';
import { runThrough, type Spell } from '../support/absence.ts';
import { type AtEnd, openHarness } from '../support/harness.ts';
import { annotations, makeIds } from '../support/ids.ts';
import { sized } from '../support/size.ts';

const seeds = sized(3, 200);
const lists = sized(
  [
    [0.3, 'random order'],
    [0.95, 'blocks'],
  ] as const,
  [0.3, 0.6, 0.95].flatMap((share) => (['random order', 'blocks'] as const).map((order) => [share, order] as const)),
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
  return { ids, absent: pick(0, 0, 0.02, 0.1, 0.3), bursts, workers: pick(1, 4), latencyMs: pick(0, 3, 20) };
}

describe.concurrent('while an API says of everything that it is not there, nothing is falsely absent', () => {
  for (let seed = 1; seed <= seeds; seed++)
    test(`with seed ${seed}`, async ({ expect, onTestFinished }) => {
      const random = randomFrom(seed);
      const spell = spellOf(random);
      const { run, falselyAbsent, broken } = await runThrough(onTestFinished, spell, random);
      const seen = `${JSON.stringify(spell)}: ${run.state} ${run.halt} ${JSON.stringify(run.counts)}`;
      expect({ falselyAbsent, broken }, seen).toEqual({ falselyAbsent: 0, broken: null });
      if (run.state === 'halted') expect(run.halt, seen).toBe('all_absent');
    });

  test('and with --expect-absent it is, because all of it is believed', async ({ expect, onTestFinished }) => {
    const bursts = [{ from: 500, length: 40 }];
    const spell: Spell = { ids: 1_000, absent: 0, bursts, workers: 1, latencyMs: 3, expectAbsent: true };
    const { run, falselyAbsent } = await runThrough(onTestFinished, spell, randomFrom(1));
    expect(run.state).toBe('completed');
    expect(falselyAbsent).toBe(40);
  });
});

describe.concurrent('a run', () => {
  const ids = makeIds('h', 400);
  const concurrency = 16;
  const env = { EXPUNGE_MAX_CONCURRENCY: `${concurrency}`, EXPUNGE_RETRY_DELAYS: '50ms,50ms,50ms,50ms,50ms' };
  /** Requests that may still be under way when the rule strikes: a window of each of two chunks, and what is on the wire. */
  const underWay = 2 * 4 * concurrency + concurrency;
  const open = async (atEnd: AtEnd, status: 402 | 403 | 404 | 405) => {
    const kind = { 402: 'status-402', 403: 'status-403', 404: 'status-404', 405: 'status-405' }[status];
    const harness = await openHarness(atEnd, { objects: annotations(ids), latencyMs: 30, faults: { [kind]: 1 } });
    Object.assign(harness.env, env);
    return { harness, line: ['run', harness.list(ids), '--resource', 'annotations', '--yes'] };
  };

  test.for([
    [402, 'halting_status', 0, 0],
    [403, 'forbidden', 20, 3],
    [404, 'all_absent', 50, 0],
    [405, 'wrong_endpoint', 3, 3],
  ] as const)(
    'is halted by %i for %s soon after %i ids, and the same command goes on',
    async ([status, halt, after, exit], { expect, onTestFinished }) => {
      const { harness, line } = await open(onTestFinished, status);
      expect(await harness.expunge(line)).toMatchObject({ code: 4, stderr: expect.stringContaining('halted: ') });
      const { counts, ...halted } = await harness.onlyRun();
      expect(halted).toMatchObject({ state: 'halted', halt, by: 'guard' });
      expect(counts).toMatchObject({ absent: 0, deleted: 0 });
      expect(harness.arrivals.length).toBeLessThanOrEqual(after + underWay);
      expect(harness.sandbox.remaining()).toBe(ids.length);
      harness.sandbox.faults = {};
      expect(await harness.expunge(line)).toMatchObject({ code: exit });
      const ended = await harness.onlyRun();
      expect(ended.counts.deleted + ended.counts.failed).toBe(ids.length);
    },
  );

  test('is halted for all workers by what they see together, and goes on to its end with --expect-absent', async ({
    expect,
    onTestFinished,
  }) => {
    const { harness, line } = await open(onTestFinished, 404);
    await Promise.all([harness.worker(), harness.worker()]);
    await harness.expunge([...line, '--detach']);
    const { id, halt } = await harness.runIs('halted', ({ state }) => state === 'halted');
    expect(halt).toBe('all_absent');
    expect(harness.arrivals.length).toBeLessThanOrEqual(50 + 2 * underWay);
    expect(await harness.expunge(['resume', id, '--expect-absent'])).toMatchObject({ code: 0 });
    const { counts } = await harness.runIs('completed', ({ state }) => state === 'completed');
    expect(counts).toMatchObject({ absent: ids.length });
  });
});

describe.concurrent('a list of which many are not there', () => {
  test.for(lists)(
    '%d of it, in %s: ends with --expect-absent, without it a halt explains itself',
    async ([share, order], { expect, onTestFinished }) => {
      const random = randomFrom(9);
      const ids = makeIds('m', 1_000);
      const isThere = (n: number) => (order === 'blocks' ? n % 200 >= 200 * share : random() >= share);
      const objects = annotations(ids.filter((_, n) => isThere(n)));
      const harness = await openHarness(onTestFinished, { objects });
      const run = (...more: string[]) =>
        harness.run([harness.list(ids), '--resource', 'annotations', '--yes', ...more]);
      const first = await run();
      if (first.code !== 0) {
        expect(first.code).toBe(4);
        expect(first.stderr).toMatch(/were not there \(404 or 410\)[\s\S]*--expect-absent/);
        expect((await run('--expect-absent')).code).toBe(0);
      }
      const { counts, state } = await harness.onlyRun();
      expect([state, counts.deleted, counts.absent]).toEqual([
        'completed',
        objects.length,
        ids.length - objects.length,
      ]);
    },
  );
});
