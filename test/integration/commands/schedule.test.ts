import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Harness, openHarness } from '../../support/harness.ts';
import { annotations, makeIds } from '../../support/ids.ts';

const ids = makeIds('s', 30);
let harness: Harness;

beforeAll(async () => {
  harness = await openHarness(null, { account: '', objects: annotations(ids) });
  const sources = {
    expired: { glob: 'expired.txt', settle: '1ms' },
    broken: { command: ['sh', '-c', 'echo a; exit 3'] },
  };
  harness.file('expunge.config.json', JSON.stringify({ baseUrl: harness.sandbox.url, sources }));
  harness.file('expired.txt', `${ids.join('\n')}\n`);
});
afterAll(() => harness.close());

const schedule = (line: string) => harness.expunge(['schedule', ...line.split(' ')]);
const add = (name: string, cron: string, line: string) => {
  const [from = '', ...more] = line.split(' ');
  return harness.expunge([
    'schedule',
    'add',
    name,
    '--cron',
    cron,
    '--from',
    from,
    '--resource',
    'annotations',
    ...more,
  ]);
};

/** The only line of `--json`. */
const facts = ({ stdout }: { stdout: string }) => JSON.parse(stdout);

describe('expunge schedule', () => {
  it('adds a schedule, says when it runs, and warns where no worker has its source', async () => {
    const { code, stderr } = await add('nightly', '30 2 * * *', 'expired --tz America/New_York --max-deletes 100');
    expect(code).toBe(0);
    expect(stderr).toContain(
      'Schedule nightly added: At 02:30, America/New_York; annotations from expired, at most 100 ids per run.',
    );
    expect(stderr).toMatch(/Next {2}\w{3} \d{4}-\d\d-\d\d 02:30 E[SD]T · /);
    expect(stderr).toContain('warning: no worker of this target that has the source "expired" is alive');
  });

  it('says of a schedule when its runs start and pause: where it is added, listed and previewed, and as JSON', async () => {
    const line = 'expired --tz Europe/Berlin --max-deletes 9 --grace 15min --max-duration 2h --stop-at 06:00';
    const words = [
      'sends nothing of a run for its first 15min',
      'pauses each run at 06:00 Europe/Berlin, or after 2 h of deleting',
    ];
    const added = await add('timed', '30 2 * * *', line);
    const preview = await schedule('preview timed');
    const list = await schedule('list');
    for (const text of words) {
      expect(added.stderr).toContain(`It ${text}`);
      expect(preview.stdout).toContain(`It ${text}`);
      expect(list.stdout).toContain(`timed ${text}`);
    }
    expect(facts(await add('timed', '30 2 * * *', `${line} --json`))).toMatchObject({
      done: 'same',
      max_duration_seconds: 7_200,
      stop_at: '06:00',
      settings: { grace: '15min' },
    });
    const changed = await add('timed', '30 2 * * *', 'expired --tz Europe/Berlin --max-deletes 9 --replace');
    expect(changed.stderr).toContain('--max-duration 2h → none · --stop-at 06:00 → none · --grace 15min → none');
    expect(await schedule('remove timed --yes')).toMatchObject({ code: 0 });
  });

  it.each(['25:00', '06:00:30', 'noon', '06:00 Nowhere'])('refuses %j as the time of day of a pause', async (time) => {
    const args = ['--cron', '30 2 * * *', '--from', 'expired', '--resource', 'annotations', '--max-deletes', '9'];
    const refused = await harness.expunge(['schedule', 'add', 'wrong', ...args, '--stop-at', time]);
    expect(refused).toMatchObject({ code: 2, stderr: expect.stringContaining('--stop-at') });
  });

  it('adds the same again without a change, and another one of its name only to replace it', async () => {
    const again = await add('nightly', '30 2 * * *', 'expired --tz America/New_York --max-deletes 100');
    expect(again.stderr).toContain('exists already, with these settings');
    const other = await add('nightly', '30 2 * * *', 'expired --tz America/New_York --max-deletes 50');
    expect([other.code, other.stderr]).toEqual([
      2,
      expect.stringContaining('schedule nightly exists with other settings'),
    ]);
    const replaced = await add(
      'nightly',
      '30 2 * * *',
      'expired --tz America/New_York --max-deletes 20 --replace --json',
    );
    expect(facts(replaced)).toMatchObject({ v: 1, type: 'schedule', name: 'nightly', settings: { maxDeletes: '20' } });
    expect(facts(replaced).audit.map(({ action }: { action: string }) => action)).toEqual(['change', 'add']);
  });

  it.each([
    ['--max-deletes is required', ['--cron', '0 3 * * *', '--from', 'expired', '--resource', 'views']],
    ['exactly one of --resource and', ['--cron', '0 3 * * *', '--from', 'expired', '--max-deletes', '5']],
    [
      '--at-most 6: expected no more than --max-deletes, which is 5',
      ['--cron', '0 3 * * *', '--from', 'expired', '--resource', 'views', '--max-deletes', '5', '--at-most', '6'],
    ],
    [
      '--retry-failed: runs are kept for 2 d, but occurrences can be 3 d apart',
      [
        ...['--cron', '0 3 * * 1-5', '--from', 'expired', '--resource', 'views', '--max-deletes', '5', '--keep', '2d'],
        '--retry-failed',
      ],
    ],
    ['--from: expected the name of a source', ['--cron', '0 3 * * *', '--resource', 'views', '--max-deletes', '5']],
  ])('refuses what is missing or wrong: %s', async (words, args) => {
    const { code, stderr } = await harness.expunge(['schedule', 'add', 'wrong', ...args]);
    expect([code, stderr]).toEqual([2, expect.stringContaining(words)]);
  });

  it('previews runs across a clock change, in words', async () => {
    const { code, stdout } = await schedule('preview nightly --after 2027-03-13T12:00Z --count 2');
    expect(code).toBe(0);
    expect(stdout.split('\n')).toEqual([
      'nightly: At 02:30, America/New_York',
      '  Sun 2027-03-14 03:30 EDT · 07:30 UTC (02:30 does not exist that day)',
      '  Mon 2027-03-15 02:30 EDT · 06:30 UTC',
      '',
    ]);
    const { stderr } = await schedule('preview nigthly');
    expect(stderr).toContain('is called "nigthly". Did you mean nightly?');
  });

  it('is refused by --max-deletes when it is run, and exits 4; a dry run says so and changes nothing', async () => {
    const dry = await schedule('run nightly --dry-run --json');
    expect(facts(dry)).toMatchObject({ type: 'plan', rows: 30, ids: 30, guard: 'too_many' });
    const { code, stderr } = await schedule('run nightly');
    expect([code, stderr]).toEqual([
      4,
      expect.stringContaining('sent nothing: the list holds 30 ids, --max-deletes allows 20'),
    ]);
    expect(harness.sandbox.seen).toEqual([]);
  });

  it('keeps the protected ids of the variable, and says what another definition changes', async () => {
    const never = harness.file('never.txt', `${ids[0]}\n${ids[1]}\n`);
    const args = ['--cron', '0 3 * * *', '--from', 'expired', '--resource', 'annotations', '--max-deletes', '100'];
    const addIt = (env: NodeJS.ProcessEnv, ...more: string[]) =>
      harness.expunge(['schedule', 'add', 'careful', ...args, ...more], { env });
    const added = await addIt({ EXPUNGE_PROTECT: 'never.txt' });
    expect(added.stderr).toContain(`It never deletes the 2 ids of ${never}`);
    const dry = await schedule('run careful --dry-run --json');
    expect(facts(dry)).toMatchObject({ rows: 30, ids: 28, protected: 2, protected_list: { ids: 2 }, guard: null });
    const { stdout } = await schedule('preview careful');
    expect(stdout).toContain(`It never deletes the 2 ids of ${never}`);
    const without = await addIt({});
    expect([without.code, without.stderr]).toEqual([2, expect.stringContaining(`: --protect ${never} → none`)]);
    const replaced = await addIt({}, '--replace');
    expect(replaced.stderr).toContain(`warning: it no longer protects the ids of ${never}`);
    const gone = await addIt({ EXPUNGE_PROTECT: 'nevr.txt' }, '--replace');
    expect([gone.code, gone.stderr]).toEqual([2, expect.stringContaining('nevr.txt: not found here; without')]);
    await schedule('remove careful --yes');
  });

  it('is paused and resumed with a reason, which stands in its audit trail', async () => {
    expect(
      facts(await harness.expunge(['schedule', 'pause', 'nightly', '--reason', 'an audit', '--json'])),
    ).toMatchObject({
      state: 'paused',
      reason: 'an audit',
      next: null,
    });
    const { stdout } = await schedule('list');
    expect(stdout).toMatch(
      /^NAME +STATE +WHEN +NEXT +LAST\nnightly +paused +At 02:30, America\/New_York +- +refused: the list holds/,
    );
    expect(stdout).toMatch(
      /nightly was paused .* ago by \S+ at \S+: an audit\n {4}Resume: expunge schedule resume nightly/,
    );
    const resumed = facts(await schedule('resume nightly --json'));
    expect(resumed).toMatchObject({
      state: 'active',
      audit: [{ action: 'resume' }, { action: 'pause', reason: 'an audit' }, {}, {}],
    });
  });

  it('is run by hand, and its run is left to the workers', async () => {
    await add('nightly', '30 2 * * *', 'expired --max-deletes 100 --replace');
    const { code, stderr, stdout } = await schedule('run nightly --json');
    expect([code, stderr]).toEqual([0, expect.stringContaining('30 ids is left to the workers')]);
    expect(stderr).toContain('warning: no worker of this target is alive');
    const { run } = facts({ stdout });
    expect((await harness.expunge(['status', run])).stdout).toContain('submitted by schedule nightly on ');
    const second = await schedule('run nightly');
    expect([second.code, second.stderr]).toEqual([2, expect.stringContaining(`run ${run} has not ended`)]);
  });

  it('says what it carries over and retries, what a run would send, and what another definition changes', async () => {
    const parts = 'expired --max-deletes 100 --at-most 12 --retry-failed';
    const added = await add('parts', '0 3 * * *', parts);
    expect(added.stderr).toContain(
      '  It deletes at most 12 ids per occurrence and carries the others over to the next\n',
    );
    expect(added.stderr).toContain('  It sends again the ids that the last occurrence left as failed or unknown\n');
    expect((await add('parts', '0 3 * * *', parts)).stderr).toContain('exists already, with these settings');
    const dry = await schedule('run parts --dry-run --json');
    expect(facts(dry)).toMatchObject({ ids: 30, sends: 12, carried_over: 18, retried: 0, left: 0, guard: null });
    expect(dry.stderr).toContain('  The run sends 12 ids; 18 are carried over to the next occurrence\n');
    const started = await schedule('run parts --json');
    expect(facts(started)).toMatchObject({ type: 'scheduled', ids: 12, carried_over: 18, retried: 0 });
    const [listed] = (await schedule('list --json')).stdout.split('\n').filter((line) => line.includes('"parts"'));
    const [entry] = JSON.parse(listed!).history;
    expect(JSON.parse(listed!)).toMatchObject({ at_most: 12, retry_failed: true, carried_over: 18 });
    expect(entry).toMatchObject({ outcome: 'started', rows: 12, carried_over: 18, retried: 0 });
    const { stdout } = await schedule('list');
    expect(stdout).toMatch(/run \S+, 12 rows, 18 carried over to the next occurrence/);
    expect(stdout).toContain('  parts carries 18 ids over to its next occurrence');
    const other = await add('parts', '0 3 * * *', 'expired --max-deletes 100');
    expect(other.stderr).toContain(': --at-most 12 → none, --retry-failed true → false');
    await harness.expunge(['cancel', facts(started).run, '--yes']);
    await schedule('remove parts --yes');
  });

  it('starts nothing where its source fails, or is not defined here', async () => {
    await add('broken', '0 3 * * *', 'broken --max-deletes 100');
    const failed = await schedule('run broken');
    expect([failed.code, failed.stderr]).toEqual([
      2,
      expect.stringMatching(/sent nothing: .*the command sh ended with 3\n/),
    ]);
    await add('elsewhere', '0 3 * * *', 'expird --max-deletes 100');
    const { code, stderr } = await schedule('run elsewhere --dry-run');
    expect([code, stderr]).toEqual([
      2,
      expect.stringContaining('no source "expird" in the configuration file here. Did you mean expired?'),
    ]);
  });

  it('is removed, and its runs stay', async () => {
    const refused = await schedule('remove broken');
    expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining('add --yes')]);
    expect((await schedule('remove broken --yes')).code).toBe(0);
    const lines = (await schedule('list --json')).stdout.trimEnd().split('\n');
    expect(lines.map((line) => JSON.parse(line).name)).toEqual(['elsewhere', 'nightly']);
    const listed = await harness.expunge(['runs']);
    expect(listed.stdout, listed.stderr).toContain('expired.txt');
  });
});
