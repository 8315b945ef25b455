import { describe, expect, onTestFinished, test } from 'vitest';
import { openLedger } from '../../../src/ledger/ledger.ts';
import { type HaltCode, type Run, readRun } from '../../../src/ledger/run.ts';
import { type Target, targetOf } from '../../../src/model/target.ts';
import type { RedisClient } from '../../../src/redis/client.ts';
import { openApi, overServer } from '../../support/api.ts';
import type { CommandOptions } from '../../support/command.ts';
import { minute, openScheduleHarness, someIds, start } from '../../support/schedule-harness.ts';
import { writeTestRun } from '../ledger/lone-run.ts';

// A rejected token halts every run of a target: one action resumes them all, as they were shown, and nothing besides.

const guard = { by: 'guard', who: '' } as const;

async function haltRun(redis: RedisClient, run: string, halt: HaltCode) {
  const ledger = openLedger(redis);
  await ledger.steer(run, Date.now(), { action: 'start', by: 'operator', who: 'test', reason: '' });
  await ledger.steer(run, Date.now(), { action: 'halt', ...guard, reason: `the API said so (${halt})`, halt });
}

async function writeHalted(redis: RedisClient, target: Target, halt: HaltCode): Promise<string> {
  const run = await writeTestRun(redis, [2], null, target);
  await haltRun(redis, run, halt);
  return run;
}

/** Two runs that a rejected token halted; one that it halted at another target, and one of the target that another rule halted. */
async function openHalted() {
  const api = await openApi(onTestFinished);
  const { harness, redis } = api;
  const { target } = harness;
  const other = targetOf('https://other.example.com', 'acme');
  const [one, two] = [await writeHalted(redis, target, 'credentials'), await writeHalted(redis, target, 'credentials')];
  const elsewhere = await writeHalted(redis, other, 'credentials');
  const forbidden = await writeHalted(redis, target, 'forbidden');
  const states = async () => {
    const runs = await Promise.all([one, two, elsewhere, forbidden].map((run) => readRun(redis, run)));
    return runs.map((run) => (run as Run).state);
  };
  const where = ['--base-url', target.baseUrl, '--account', target.account];
  const resumeAll = (args: string[], options?: CommandOptions) =>
    harness.expunge(['resume', '--all', '--halted', 'credentials', ...where, ...args], options);
  return { ...api, one, two, elsewhere, forbidden, states, resumeAll };
}

type Scene = Awaited<ReturnType<typeof openHalted>>;

/** The environment of who works beside Redis, and of who knows a server only. */
const ways: [string, (scene: Scene) => Promise<NodeJS.ProcessEnv>][] = [
  ['in Redis', async () => ({})],
  ['over a server', (scene) => overServer(scene)],
];

describe.each(ways)('resume --all --halted %s', (_, envOf) => {
  test('resumes what this halt stopped at this target, after one question that shows it', async () => {
    const scene = await openHalted();
    const { one, two, elsewhere, forbidden, states, resumeAll } = scene;
    const { code, stderr } = await resumeAll([], { env: await envOf(scene), typed: ['Resume these 2 runs', 'yes\r'] });
    expect([code, await states()], stderr).toEqual([0, ['running', 'running', 'halted', 'halted']]);
    const [shown = ''] = stderr.split('Resume these 2 runs');
    for (const run of [one, two]) {
      expect(shown).toContain(run);
      expect(stderr).toContain(`Resumed run ${run}`);
    }
    expect(shown).toContain('the API said so (credentials)');
    for (const run of [elsewhere, forbidden]) expect(stderr).not.toContain(run);
  });

  test('refuses a run that has changed since it was shown, and resumes the others', async () => {
    const scene = await openHalted();
    const { harness, one, two, states, resumeAll } = scene;
    const answer = async () => {
      await harness.expunge(['pause', one, '--reason', 'legal hold'], { env: { EXPUNGE_USER: 'ana' } });
      return 'yes\r';
    };
    const { code, stderr } = await resumeAll([], { env: await envOf(scene), typed: ['Resume these 2 runs', answer] });
    expect([code, (await states()).slice(0, 2)], stderr).toEqual([4, ['halted', 'running']]);
    expect(stderr).toContain(`Not resumed: run ${one} has changed since it was shown`);
    expect(stderr).toContain(`Resumed run ${two}`);
    expect(stderr).toContain('1 of 2 runs was not resumed');
  });

  test('leaves a run to the operator who has paused it as well', async () => {
    const scene = await openHalted();
    const { harness, one, states, resumeAll } = scene;
    await harness.expunge(['pause', one, '--reason', 'legal hold'], { env: { EXPUNGE_USER: 'ana' } });
    const { code, stderr } = await resumeAll(['--yes'], { env: await envOf(scene) });
    expect([code, (await states()).slice(0, 2)], stderr).toEqual([0, ['halted', 'running']]);
    expect(stderr).toContain(`Left out: run ${one} is also paused by ana: legal hold.`);
  });

  test('fails where it reaches nothing', async () => {
    const scene = await openHalted();
    const { harness, states, resumeAll } = scene;
    const env = await envOf(scene);
    const args = ['resume', '--all', '--halted', 'canary', '--base-url', harness.target.baseUrl, '--yes'];
    const { code, stderr } = await harness.expunge(args, { env });
    expect([code, stderr]).toEqual([2, expect.stringContaining('no run is halted for canary at ')]);
    expect(await states()).toEqual(['halted', 'halted', 'halted', 'halted']);
    expect((await resumeAll(['--yes'], { env })).code, 'negative control').toBe(0);
    expect((await resumeAll(['--yes'], { env })).code, 'there is none any more').toBe(2);
  });
});

test.each([
  ['neither a run nor --all', ['resume']],
  ['--all alone', ['resume', '--all', '--yes']],
  ['a halt alone', ['resume', '--halted', 'credentials']],
  ['a run and --all', ['resume', 'r1', '--all', '--halted', 'credentials']],
  ['a schedule and --all', ['schedule', 'resume', 'nightly', '--all', '--halted', 'credentials']],
])('refuses %s', async (_, args) => {
  const { harness } = await openApi(onTestFinished);
  const { code, stderr } = await harness.expunge(args);
  expect([code, stderr]).toEqual([
    2,
    expect.stringMatching(/expected either a (run|schedule), or --all with --halted/),
  ]);
});

test('without an answer nothing is resumed', async () => {
  const { states, resumeAll } = await openHalted();
  expect(await resumeAll([])).toMatchObject({ code: 2, stderr: expect.stringContaining('add --yes') });
  expect((await resumeAll([], { typed: ['Resume these 2 runs', 'no\r'] })).code).toBe(2);
  expect(await states()).toEqual(['halted', 'halted', 'halted', 'halted']);
});

test('--json has a line for each, also for one that is refused', async () => {
  const { harness, one, two, resumeAll } = await openHalted();
  const answer = async () => {
    await harness.expunge(['cancel', one, '--yes']);
    return 'yes\r';
  };
  const { code, stdout } = await resumeAll(['--json'], { typed: ['Resume these 2 runs', answer] });
  const lines = stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  expect([code, lines.length]).toEqual([2, 2]);
  expect(lines).toContainEqual(expect.objectContaining({ run: two, state: 'running', changed: true }));
  expect(lines).toContainEqual(expect.objectContaining({ type: 'refused', name: one }));
});

describe('schedule resume --all --halted', () => {
  /** The schedule `nightly`, paused because its run was halted. */
  async function openPaused() {
    const harness = await openScheduleHarness(onTestFinished);
    await harness.add();
    harness.list(someIds('v', 5));
    await harness.at(start + minute);
    const [run] = await harness.runs();
    await haltRun(harness.redis, run!.id, 'credentials');
    await harness.at(start + 2 * minute);
    expect(await harness.schedule()).toMatchObject({ state: 'paused', pausedBy: 'halted', halt: 'credentials' });
    const { baseUrl, account } = harness.target;
    const where = ['--base-url', baseUrl, '--account', account, '--yes'];
    const resumeAll = (halt: string) => harness.expunge(['schedule', 'resume', '--all', '--halted', halt, ...where]);
    const resumeRuns = () => harness.expunge(['resume', '--all', '--halted', 'credentials', ...where]);
    return { harness, run: run!.id, resumeAll, resumeRuns };
  }

  test('resumes those that this halt paused, once their runs are resumed', async () => {
    const { harness, run, resumeAll, resumeRuns } = await openPaused();
    const early = await resumeAll('credentials');
    expect([early.code, early.stderr]).toEqual([2, expect.stringContaining(`its run ${run} is halted`)]);
    expect((await resumeAll('forbidden')).code, 'another halt').toBe(2);
    expect((await harness.schedule()).state).toBe('paused');
    const resumed = await resumeRuns();
    expect([resumed.code, resumed.stderr]).toEqual([
      0,
      expect.stringMatching(/Schedules that these halts paused: \S.* schedule resume --all --halted credentials /),
    ]);
    const { code, stderr } = await resumeAll('credentials');
    expect([code, (await harness.schedule()).state], stderr).toEqual([0, 'active']);
    expect(stderr).toContain('Resumed schedule nightly');
  });

  test('leaves one alone that an operator has paused as well', async () => {
    const { harness, resumeAll, resumeRuns } = await openPaused();
    await harness.expunge([
      'schedule',
      'pause',
      'nightly',
      '--base-url',
      harness.target.baseUrl,
      '--account',
      harness.target.account,
    ]);
    await resumeRuns();
    expect((await resumeAll('credentials')).code).toBe(2);
    expect((await harness.schedule()).state).toBe('paused');
  });
});
