import { describe, test } from 'vitest';
import { runThrough, type Spell } from '../support/absence.ts';
import { openHarness } from '../support/harness.ts';
import { annotations, makeIds } from '../support/ids.ts';
import { until } from '../support/processes.ts';
import { sized } from '../support/size.ts';

const seeds = sized(8, 200);
const settings = { EXPUNGE_MAX_CONCURRENCY: '32', EXPUNGE_RETRY_DELAYS: '50ms,50ms,50ms,50ms,50ms' };

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

describe.concurrent('a run that halts because ids are not there in a row', () => {
  test('has them open, and asks for them again when it is resumed', async ({ expect, onTestFinished }) => {
    const ids = makeIds('h', 2_000);
    let [isAway, n] = [true, 0];
    const script = () => (isAway && ++n > 700 ? ('status-404' as const) : null);
    const harness = await openHarness(onTestFinished, { objects: annotations(ids), latencyMs: 3, faults: { script } });
    const run = () => harness.spawn(['run', harness.list(ids), '--resource', 'annotations', '--yes'], settings);
    const running = run();
    expect(await running.ended, running.stderr).toMatchObject({ code: 4 });
    const halted = await harness.onlyRun();
    expect(halted).toMatchObject({ halt: 'all_absent', by: 'guard', counts: { absent: 0 } });
    expect(running.stderr).toMatch(
      /ids in a row were not there \(404 or 410\) while nothing was deleted, such as h-00/,
    );
    expect(running.stderr).toContain('resume with --expect-absent');
    isAway = false;
    const again = run();
    expect(await again.ended, again.stderr).toMatchObject({ code: 0 });
    expect(await harness.onlyRun()).toMatchObject({ state: 'completed', counts: { deleted: 2_000, absent: 0 } });
    expect(harness.sandbox.remaining()).toBe(0);
  });

  test('does so before a token that may not see the objects has cost one of them', async ({
    expect,
    onTestFinished,
  }) => {
    const ids = makeIds('w', 400);
    let maySee = false;
    const script = () => (maySee ? null : ('status-404' as const));
    const harness = await openHarness(onTestFinished, { objects: annotations(ids), faults: { script } });
    const run = () => harness.spawn(['run', harness.list(ids), '--resource', 'annotations', '--yes'], settings).ended;
    expect(await run()).toMatchObject({ code: 4 });
    maySee = true;
    expect(await run()).toMatchObject({ code: 0 });
    expect(await harness.onlyRun()).toMatchObject({ state: 'completed', counts: { deleted: 400, absent: 0 } });
  });
});

test('a worker that is killed in the middle of it leaves nothing falsely absent', async ({
  expect,
  onTestFinished,
}) => {
  const ids = makeIds('k', 3_000);
  let n = 0;
  const script = () => (++n > 1_000 && n <= 1_040 ? ('status-404' as const) : null);
  const harness = await openHarness(onTestFinished, { objects: annotations(ids), latencyMs: 10, faults: { script } });
  const workers = await Promise.all([1, 2, 3, 4].map(() => harness.spawnWorker([], settings)));
  harness.spawn(['run', harness.list(ids), '--resource', 'annotations', '--yes', '--detach'], settings);
  await until('the burst has begun', () => n > 1_020);
  for (const worker of workers.slice(0, 2)) worker.signal('SIGKILL');
  const run = await harness.runIs('at its end', ({ state }) => state === 'completed' || state === 'halted', 120_000);
  expect(run.counts.absent).toBe(0);
});

describe.concurrent('a list of which many are not there', () => {
  for (const share of [0.3, 0.6, 0.95])
    for (const order of ['random order', 'blocks'])
      test(`${100 * share} % in ${order}: ends with --expect-absent, without it a halt explains itself`, async ({
        expect,
        onTestFinished,
      }) => {
        const random = randomFrom(9);
        const ids = makeIds('m', 2_000);
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
        expect([state, counts.deleted, counts.absent]).toEqual(['completed', objects.length, 2_000 - objects.length]);
      });
});
