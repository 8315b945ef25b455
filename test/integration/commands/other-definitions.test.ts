import { describe, expect, onTestFinished, test } from 'vitest';
import { type CommandOptions, summaryIn } from '../../support/command.ts';
import { type AtEnd, type Harness, openHarness } from '../../support/harness.ts';
import { makeIds } from '../../support/ids.ts';
import type { Done } from '../../support/processes.ts';
import { know, knowDuringTests } from '../../support/resources.ts';
import { openScheduleHarness, start } from '../../support/schedule-harness.ts';

const ids = makeIds('d', 6);
const objects = ids.map((id) => ({ resource: 'dashboards', id }));

const before = { path: '/v1/dashboards/{id}', repeat: 'harmless', success: [204] };
const after = { ...before, success: [200, 204] };
const words = '"success" of the resource dashboards is [200,204] here instead of [204]';

knowDuringTests({ dashboards: before });

type Stage = {
  harness: Harness;
  list: string;
  /** `expunge …` where dashboards are defined as they were. */
  expunge(args: readonly string[]): Promise<Done>;
};

/** The commands of a person after the definition may have changed; the last one sends, or lets workers send. */
type Way = { name: string; prepare(stage: Stage): Promise<string[]> };

const line = ['--resource', 'dashboards', '--yes'];
const done = (result: Done): Done => {
  if (result.code !== 0) throw new Error(result.stderr);
  return result;
};

/** The id of a run that has sent all that it may. */
async function halted({ expunge, list }: Stage): Promise<string> {
  return summaryIn(await expunge(['run', list, ...line, '--max-deletes', '2', '--partial', '--json'])).run;
}

const further = ['--max-deletes', '6'];

async function paused({ expunge, list }: Stage): Promise<string> {
  const { run } = summaryIn(done(await expunge(['run', list, ...line, '--detach', '--json'])));
  done(await expunge(['pause', run]));
  return run;
}

/** The id of a run that has ended, with one id that the API refused. */
async function ended({ harness, expunge, list }: Stage): Promise<string> {
  harness.sandbox.faults = { script: (_, id) => (id === ids[0] ? 'status-403' : null) };
  const { run } = summaryIn(await expunge(['run', list, ...line, '--json']));
  harness.sandbox.faults = {};
  return run;
}

const ways: Way[] = [
  { name: 'resume of a foreground run', prepare: async (stage) => ['resume', await halted(stage), ...further] },
  { name: 'resume --detach', prepare: async (stage) => ['resume', await halted(stage), ...further, '--detach'] },
  { name: 'resume of a detached run', prepare: async (stage) => ['resume', await paused(stage)] },
  {
    name: 'the same command again',
    async prepare(stage) {
      await halted(stage);
      return ['run', stage.list, ...line, ...further];
    },
  },
  {
    name: 'the same command with --detach again',
    async prepare(stage) {
      await paused(stage);
      return ['run', stage.list, ...line, '--detach'];
    },
  },
  { name: 'retry', prepare: async (stage) => ['retry', await ended(stage), '--yes'] },
  { name: 'retry --detach', prepare: async (stage) => ['retry', await ended(stage), '--yes', '--detach'] },
  { name: 'verify --sample', prepare: async (stage) => ['verify', await ended(stage), '--sample', '3', '--yes'] },
  ...[[], ['--detach']].map((more) => ({
    name: ['apply of a plan', ...more].join(' '),
    async prepare({ expunge, list }: Stage) {
      const made = done(await expunge(['plan', list, '--resource', 'dashboards']));
      const id = /Plan (\S+) waits/.exec(made.stderr)![1]!;
      return ['apply', id, '--confirm', String(ids.length), ...more];
    },
  })),
  {
    name: 'a run of a schedule',
    async prepare(stage) {
      await addSchedule(stage);
      return ['schedule', 'run', 'nightly'];
    },
  },
  {
    name: 'a dry run of a schedule',
    async prepare(stage) {
      await addSchedule(stage);
      return ['schedule', 'run', 'nightly', '--dry-run'];
    },
  },
];

async function addSchedule({ expunge }: Stage): Promise<void> {
  const place = ['--cron', '0 3 1 1 *', '--from', 'expired', '--max-deletes', '100'];
  done(await expunge(['schedule', 'add', 'nightly', ...place, '--resource', 'dashboards']));
}

/** `at`: the same command line in a place with this definition. */
async function openStage(atEnd: AtEnd) {
  know({ dashboards: before });
  const harness = await openHarness(atEnd, { objects });
  const list = harness.list(ids);
  const config = (definition: object, name: string) =>
    harness.file(
      name,
      JSON.stringify({ resources: { dashboards: definition }, sources: { expired: { command: ['cat', list] } } }),
    );
  const files = {
    before: config(before, 'before.json'),
    after: config(after, 'after.json'),
    none: harness.file('none.json', '{}'),
  };
  const at = (which: keyof typeof files, args: readonly string[], options: CommandOptions = {}) =>
    harness.expunge(args, { ...options, env: { EXPUNGE_CONFIG: files[which] } });
  const stage: Stage = { harness, list, expunge: (args) => at('before', args) };
  const trace = async () => {
    const runs = (await harness.runs()).map(({ id, state, revision, definitions }) => ({
      id,
      state,
      revision,
      definitions,
    }));
    return { seen: harness.sandbox.seen.length, runs };
  };
  return { stage, at, trace };
}

describe.each(ways)('$name', ({ prepare }) => {
  test('is refused with 4 where a resource of it is defined in another way, changes nothing, and goes through where it is the same', async ({
    onTestFinished,
  }) => {
    const { stage, at, trace } = await openStage(onTestFinished);
    const args = await prepare(stage);
    const untouched = await trace();
    const refused = await at('after', args);
    expect(refused.stderr).toContain(words);
    expect(refused.stderr).toContain('nothing was sent');
    expect([refused.code, await trace()]).toEqual([4, untouched]);
    const through = await at('before', args);
    expect(through.stderr).not.toContain('in another way');
    expect(through.code, through.stderr).toBe(0);
  });

  test('is refused where the resource is not defined at all', async ({ onTestFinished }) => {
    const { stage, at, trace } = await openStage(onTestFinished);
    const args = await prepare(stage);
    const untouched = await trace();
    const refused = await at('none', args);
    const isNamed = args.includes('--resource');
    expect(refused.stderr).toContain(
      isNamed ? '"dashboards" is not one of' : 'resource dashboards is not defined here',
    );
    expect([refused.code, await trace()]).toEqual([isNamed ? 2 : 4, untouched]);
  });
});

test.each(['after', 'none'] as const)(
  'whatever its resource is here (%s), a run can be paused, cancelled and reported',
  async (place) => {
    const { stage, at } = await openStage(onTestFinished);
    const { run } = summaryIn(done(await stage.expunge(['run', stage.list, ...line, '--detach', '--json'])));
    for (const args of [
      ['pause', run],
      ['cancel', run, '--yes'],
      ['status', run],
      ['report', run],
    ]) {
      const { code, stderr } = await at(place, args);
      expect([args[0], code], stderr).toEqual([args[0], args[0] === 'status' ? expect.any(Number) : 0]);
    }
    expect((await stage.harness.onlyRun()).state).toBe('cancelled');
    const explained = await at(place, ['report', run]);
    expect(explained.stdout).toContain(`dashboards,${ids[0]},not_attempted`);
  },
);

test('an occurrence of a schedule sends nothing where its resource is defined in another way, and says so in the history', async ({
  onTestFinished,
}) => {
  know({ dashboards: before });
  const harness = await openScheduleHarness(onTestFinished, { objects });
  harness.list(ids);
  const definitions = JSON.stringify({ dashboards: { ...stored, ...before } });
  await harness.add({ settings: { resource: 'dashboards', maxDeletes: '100' }, definitions });
  know({ dashboards: after });
  await harness.at(start + 60_000);
  expect(await harness.history()).toEqual([
    expect.objectContaining({ outcome: 'failed', run: '', reason: expect.stringContaining(words) }),
  ]);
  know({ dashboards: before });
  await harness.at(start + 120_000);
  expect((await harness.history()).map(({ outcome }) => outcome)).toContain('started');
  expect(await harness.onlyRun()).toMatchObject({ ids: ids.length, definitions });
});

/** What a definition holds that says nothing of it. */
const stored = { absent: [404, 410], auth: { header: 'authorization', scheme: 'Bearer' }, headers: {} };
