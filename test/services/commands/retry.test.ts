import { describe, expect, test } from 'vitest';
import { readAudit } from '../../../src/ledger/audit.ts';
import { readRun } from '../../../src/ledger/run.ts';
import { keys } from '../../../src/redis/keys.ts';
import { summaryIn } from '../../support/command.ts';
import { type AtEnd, type Harness, openHarness } from '../../support/harness.ts';
import { until } from '../../support/processes.ts';

const final = ['--on-status', '409=failed']; // else a conflict is tried again for seconds
const yes = ['--yes', '--json'];

/** Ids of both resources. The name of one says what comes of it while `isBroken`: c a conflict, f forbidden, l an answer that says nothing. */
const list = 'kind,id\nviews,v-1\nviews,f-1\nannotations,l-1\nviews,c-1\nannotations,f-2\nannotations,a-1\n';
const objects = list
  .trimEnd()
  .split('\n')
  .slice(1)
  .map((line) => ({ resource: line.split(',')[0] as 'views', id: line.split(',')[1]! }));

const faults: Record<string, 'status-403' | 'status-409' | 'status-200-executed'> = {
  f: 'status-403',
  c: 'status-409',
  l: 'status-200-executed',
};

/** A run that has ended, with 2 failed as forbidden, 1 for a conflict, and 1 unknown. */
async function openEnded(atEnd: AtEnd) {
  let isBroken = true;
  const script = (_: string, id: string) => (isBroken ? (faults[id[0]!] ?? null) : null);
  const harness = await openHarness(atEnd, { objects, faults: { script } });
  harness.file('old.csv', list);
  const { run } = summaryIn(await harness.run(['old.csv', '--resource-column', 'kind', ...final, ...yes]));
  const sent = harness.sandbox.seen.length;
  return {
    harness,
    run,
    mend: () => {
      isBroken = false;
    },
    /** What was sent since the run ended, sorted. */
    sent: () =>
      harness.sandbox.seen
        .slice(sent)
        .map((line) => line.replace('DELETE /v2/', ''))
        .sort(),
    retry: (...more: string[]) => harness.expunge(['retry', run, ...more]),
  };
}

/** A detached run of three ids that nobody works on. */
async function openIdle(atEnd: AtEnd) {
  const harness = await openHarness(atEnd, { objects });
  harness.file('old.csv', list);
  const { run } = summaryIn(await harness.run(['old.csv', '--resource-column', 'kind', '--detach', ...yes]));
  return { harness, run };
}

async function runsBut({ runs }: Harness, ...others: string[]) {
  return (await runs()).filter(({ id }) => !others.includes(id));
}

describe('a retry', () => {
  test('sends what is left of a run, each with its resource, and reports the rows where they were', async ({
    onTestFinished,
  }) => {
    const { harness, run, mend, sent, retry } = await openEnded(onTestFinished);
    mend();
    const { code, stdout } = await retry(...yes);
    const made = summaryIn({ stdout });
    expect([code, made]).toMatchObject([0, { rows: 4, deleted: 3, absent: 1, retry_of: run, retried_by: [] }]);
    expect(sent()).toEqual(['annotations/f-2', 'annotations/l-1', 'views/c-1', 'views/f-1']);
    expect(harness.outcomes(made.run).map((line) => line.split(',').slice(0, 5).join(','))).toEqual([
      'old.csv,3,views,f-1,deleted',
      'old.csv,4,annotations,l-1,absent',
      'old.csv,5,views,c-1,deleted',
      'old.csv,6,annotations,f-2,deleted',
    ]);
  });

  test.for([
    ['failed', ['annotations/f-2', 'views/c-1', 'views/f-1']],
    ['http_409', ['views/c-1']],
    ['unknown,http_409', ['annotations/l-1', 'views/c-1']],
  ] as const)('with --only %s sends those alone', async ([only, wanted], { onTestFinished }) => {
    const { mend, sent, retry } = await openEnded(onTestFinished);
    mend();
    expect(summaryIn(await retry('--only', only, ...yes))).toMatchObject({ rows: wanted.length, exit: 0 });
    expect(sent()).toEqual(wanted);
  });

  test('with --only absent sends again what the API called gone, whose answer the report and explain show', async ({
    onTestFinished,
  }) => {
    let isBrownOut = true;
    const script = (_: string, id: string) => (isBrownOut && id.startsWith('a') ? ('status-410' as const) : null);
    const ids = ['a-1', 'a-2', 'b-1'].map((id) => ({ resource: 'views' as const, id }));
    const harness = await openHarness(onTestFinished, { objects: ids, faults: { script } });
    const views = ['--resource', 'views', ...yes];
    const { run } = summaryIn(await harness.run([harness.list(ids.map(({ id }) => id)), '--expect-absent', ...views]));
    expect(harness.outcomes(run).filter((line) => line.includes('sandbox_410'))).toHaveLength(2);
    const { stdout } = await harness.expunge(['explain', 'views', 'a-1']);
    expect(stdout).toMatch(/It answered: \[\S+\] \{"error":"sandbox_410"\}/);
    isBrownOut = false;
    const nothing = await harness.expunge(['retry', run, ...yes]);
    expect(JSON.parse(nothing.stdout)).toMatchObject({ type: 'nothing_to_retry' });
    const made = summaryIn(await harness.expunge(['retry', run, '--only', 'absent', ...yes]));
    expect(made).toMatchObject({ rows: 2, deleted: 2, exit: 0 });
    expect(harness.sandbox.remaining()).toBe(0);
    expect(harness.sandbox.seen.filter((line) => line.endsWith('b-1'))).toHaveLength(1);
  });

  test('is named by the run it retries, and names it: in records, status, runs, reports and the audit trail', async ({
    onTestFinished,
  }) => {
    const { harness, run, retry } = await openEnded(onTestFinished);
    expect((await harness.expunge(['status', run])).stdout).toContain(`retry the others: expunge retry ${run}`);
    const { run: made } = summaryIn(await retry('--only', 'failed', ...yes));
    const second = summaryIn(await retry('--only', 'unknown', ...yes)).run;
    expect(await readRun(harness.redis, made)).toMatchObject({ retryOf: run, retriedBy: [] });
    const old = (await readRun(harness.redis, run))!;
    expect(old).toMatchObject({ retryOf: '', retriedBy: [made, second] });
    const trail = (await readAudit(harness.redis, old)).filter(({ action }) => action === 'retry');
    expect(trail.map((entry) => entry.run)).toEqual([made, second]);

    expect((await harness.expunge(['status', made])).stdout).toContain(`retry of run ${run}`);
    expect((await harness.expunge(['status', run])).stdout).toContain(`retried by run ${made}, ${second}`);
    const listed = (await harness.expunge(['runs', '--json'])).stdout.split('\n');
    expect(JSON.parse(listed.find((line) => line.includes(`"run":"${made}"`))!)).toMatchObject({ retry_of: run });
    expect(JSON.parse(listed.find((line) => line.includes(`"run":"${run}"`))!)).toMatchObject({
      retried_by: [made, second],
    });
    expect((await harness.expunge(['runs'])).stdout).toContain(`retry of ${run}`);
    expect((await harness.expunge(['report', made])).stderr).toContain(`Run ${made}: retry of run ${run}`);
    const facts = (await harness.expunge(['report', run, '--output', 'r.csv', '--json'])).stdout;
    expect(JSON.parse(facts)).toMatchObject({ retried_by: [made, second] });
    const verified = (await harness.expunge(['report', made, '--verify', '--json'])).stdout;
    expect(JSON.parse(verified)).toMatchObject({ adds_up: true, retry_of: run });
  });

  /** @invariant same-list-same-run */
  test('that is repeated resumes the same run, however its rows are chosen, and sends nothing twice', async ({
    onTestFinished,
  }) => {
    const { harness, run, mend, sent, retry } = await openEnded(onTestFinished);
    mend();
    harness.sandbox.latencyMs = 1_000;
    const first = harness.start(['retry', run, '--yes'], { EXPUNGE_MAX_CONCURRENCY: '1' });
    await until('it sends', () => sent().length > 0);
    first.signal('SIGINT');
    expect((await first.ended).code).toBe(130);
    harness.sandbox.latencyMs = 0;
    const [made] = await runsBut(harness, run);
    expect([made!.state, sent().length]).toEqual(['paused', 1]);
    const again = await retry('--only', 'not_attempted,unknown,failed', ...yes);
    expect(summaryIn(again)).toMatchObject({ run: made!.id, rows: 4, exit: 0 });
    expect(new Set(sent()).size).toBe(sent().length);
    expect(again.stderr).toContain(`run ${made!.id} of the same list`);
    const before = sent().length;

    const third = await retry(...yes);
    expect(third.stderr).toContain(`were retried by run ${made!.id}, which is completed`);
    expect(summaryIn(third)).toMatchObject({ run: made!.id, exit: 0 });
    expect([third.code, sent().length]).toEqual([0, before]);
    expect(await runsBut(harness, run)).toHaveLength(1);
  });

  test('is another run than that of a file with the same rows', async ({ onTestFinished }) => {
    const { harness, run, retry } = await openEnded(onTestFinished);
    await harness.expunge(['report', run, '--only', 'http_409', '--output', 'rest.csv']);
    const byFile = ['rest.csv', '--resource-column', 'resource', '--detach', ...yes];
    const made = summaryIn(await harness.run(byFile)).run;
    const retried = summaryIn(await retry('--only', 'http_409', ...yes));
    expect(retried.run).not.toBe(made);
    expect(summaryIn(await harness.run(byFile)).run).toBe(made);
    expect(await readRun(harness.redis, made)).toMatchObject({ state: 'running', retryOf: '' });
  });

  test('of a retry works, and says what the one before left', async ({ onTestFinished }) => {
    const { run, harness, mend, retry } = await openEnded(onTestFinished);
    const first = summaryIn(await retry('--only', 'failed', ...yes));
    expect(first).toMatchObject({ failed: 3, exit: 3 });
    const again = await retry('--only', 'failed', ...yes);
    expect([again.code, again.stderr]).toEqual([3, expect.stringContaining(`expunge retry ${first.run}`)]);
    mend();
    const second = summaryIn(await harness.expunge(['retry', first.run, ...yes]));
    expect(second).toMatchObject({ deleted: 3, retry_of: first.run });
    expect(await readRun(harness.redis, run)).toMatchObject({ retriedBy: [first.run] });
  });

  test('of conflicts, locks and lost answers sends each until it is settled, and explain tells all three runs', async ({
    onTestFinished,
  }) => {
    const words = ['ok', 'conflict', 'lock', 'conflict', 'lost', 'lock'];
    const ids = Array.from({ length: 12 }, (_, n) => `${words[n % 6]}-${n}`);
    const made = ids.map((id) => ({ resource: 'views' as const, id }));
    const answers = { conflict: 'status-409', lock: 'status-423', lost: 'status-200-executed', ok: null } as const;
    const script = (_: string, id: string) => answers[id.split('-')[0] as 'ok'];
    const harness = await openHarness(onTestFinished, { objects: made, faults: { script } });
    const refused = ['--on-status', '409=failed,423=failed']; // kept by each retry
    const list = harness.list(ids);
    const first = summaryIn(await harness.run([list, '--resource', 'views', ...refused, ...yes]));
    expect(first).toMatchObject({ deleted: 2, failed: 8, unknown: 2 });
    const again = (run: string, ...more: string[]) => harness.expunge(['retry', run, ...more, ...yes]);
    const sent = () => harness.sandbox.seen.length;
    let before = sent();
    const second = summaryIn(await again(first.run, '--only', 'http_409,http_423'));
    expect([second, sent() - before]).toMatchObject([{ rows: 8, failed: 8 }, 8]);
    harness.sandbox.faults = {};
    before = sent();
    const third = summaryIn(await again(second.run));
    expect([third, sent() - before]).toMatchObject([{ rows: 8, deleted: 8 }, 8]);
    const lost = summaryIn(await again(first.run, '--only', 'unknown'));
    expect(lost).toMatchObject({ rows: 2, absent: 2 });
    const { stdout } = await harness.expunge(['explain', 'views', ids[1]!]);
    expect(stdout.match(/^Run \S+|^ {2}\w+ · \S+ · \d attempts?|^ {2}Retry of .*/gm)).toEqual([
      ...[`Run ${third.run}`, '  deleted · http_204 · 1 attempt', `  Retry of run ${second.run}`],
      ...[`Run ${second.run}`, '  failed · http_409 · 1 attempt', `  Retry of run ${first.run}`],
      ...[`Run ${first.run}`, '  failed · http_409 · 1 attempt'],
    ]);
  });

  test('keeps what the run was told, unless it is told otherwise', async ({ onTestFinished }) => {
    const harness = await openHarness(onTestFinished, {
      objects,
      faults: { script: (_, id) => faults[id[0]!] ?? null },
    });
    harness.file('old.csv', 'id\nc-1\nv-1\n');
    const told = ['--on-status', '409=failed', '--rate', '50/s'];
    const { run } = summaryIn(await harness.run(['old.csv', '--resource', 'views', ...told, ...yes]));
    const plan = await harness.expunge(['retry', run, '--dry-run']);
    expect(plan.stdout).toMatch(/On status {1}409=failed[\s\S]*at most 50\/s/);
    const { run: made } = summaryIn(await harness.expunge(['retry', run, '--detach', ...yes]));
    const kept = { onStatus: '409=failed', rate: [{ count: 50, perMs: 1_000 }] };
    expect(await readRun(harness.redis, made)).toMatchObject(kept);
    await harness.expunge(['cancel', made, '--yes']);
    const other = await harness.expunge([
      ...['retry', made, '--on-status', '409=absent', '--expect-absent', '--rate', '9/s', ...yes],
    ]);
    expect(summaryIn(other)).toMatchObject({ absent: 1 });
    const changed = { onStatus: '409=absent', rate: [{ count: 9, perMs: 1_000 }] };
    expect(await readRun(harness.redis, summaryIn(other).run)).toMatchObject(changed);
  });

  test('is held back by the guards of a run', async ({ onTestFinished }) => {
    const { harness, sent, retry, run } = await openEnded(onTestFinished);
    const tooMany = await retry('--expect-count', '3', '--yes');
    expect([tooMany.code, tooMany.stderr]).toEqual([4, expect.stringContaining('holds 4 ids, --expect-count is 3')]);
    const unconfirmed = await retry('--confirm', '3');
    expect([unconfirmed.code, unconfirmed.stderr]).toEqual([2, expect.stringContaining('4')]);
    const dry = await retry('--dry-run');
    expect([dry.code, dry.stdout]).toEqual([
      0,
      expect.stringContaining(`Retries   3 failed, 1 unknown from run ${run} of old.csv`),
    ]);
    expect(sent()).toEqual([]);
    expect(await runsBut(harness, run)).toEqual([]);
    harness.file('keep.txt', 'f-1\nl-1\n');
    expect(summaryIn(await retry('--protect', 'keep.txt', ...yes))).toMatchObject({ rows: 4, protected: 2 });
    expect(sent().filter((id) => /f-1|l-1/.test(id))).toEqual([]);
  });

  test('sends no token to an address that only Redis names', async ({ onTestFinished }) => {
    const { sent, retry, harness } = await openEnded(onTestFinished);
    const other = await retry('--account', 'other', '--yes');
    expect([other.code, other.stderr]).toEqual([
      2,
      expect.stringContaining(`but the settings name ${harness.sandbox.url} as account other; nothing was sent`),
    ]);
    const env = { EXPUNGE_BASE_URL: '' };
    const none = await harness.expunge(['retry', (await harness.runs())[0]!.id, '--yes'], { env });
    expect([none.code, none.stderr]).toEqual([2, expect.stringContaining(`add --base-url ${harness.sandbox.url}`)]);
    expect(sent()).toEqual([]);
  });

  test('of a run with nothing to retry says so, and is done', async ({ onTestFinished }) => {
    const { run, retry, harness, sent } = await openEnded(onTestFinished);
    const { code, stdout, stderr } = await retry('--only', 'not_attempted', ...yes);
    expect([code, JSON.parse(stdout)]).toEqual([0, { v: 1, type: 'nothing_to_retry', run, only: ['not_attempted'] }]);
    expect(stderr).toContain(`Run ${run} has nothing to retry: no id is not_attempted. Nothing is sent.`);
    const several = await retry('--only', 'not_attempted,http_418,http_451', ...yes);
    expect(several.stderr).toContain('no id is not_attempted, http_418 or http_451. Nothing is sent.');
    expect([sent(), await runsBut(harness, run)]).toEqual([[], []]);
  });

  test('can be left to workers', async ({ onTestFinished }) => {
    const { run, retry, harness, mend, sent } = await openEnded(onTestFinished);
    mend();
    expect((await retry('--detach', '--max-concurrency', '1', ...yes)).stderr).toContain(
      '--max-concurrency: with --detach, workers send',
    );
    const detached = summaryIn(await harness.expunge(['retry', run, '--detach', ...yes])).run;
    await harness.worker();
    await until('it is done', async () => (await readRun(harness.redis, detached))?.state === 'completed');
    expect(sent()).toHaveLength(4);
  });
});

describe('a run that has not ended', () => {
  test.for([
    ['running', [], /wait for its end: expunge status \S+ --watch; or end it: expunge cancel/],
    ['paused', ['pause'], /let it continue: expunge resume \S+; or end it: expunge cancel/],
  ] as const)('and is %s cannot be retried, and the error says what to do', async ([state, actions, advice], test) => {
    const { harness, run } = await openIdle(test.onTestFinished);
    for (const action of actions) await harness.expunge([action, run]);
    const { code, stderr } = await harness.expunge(['retry', run, '--yes']);
    expect([code, stderr]).toEqual([2, expect.stringContaining(`run ${run} is ${state}; only a run that has ended`)]);
    expect(stderr).toMatch(advice);
    expect(await harness.runs()).toHaveLength(1);
  });

  test('can be once it is cancelled: what it did not attempt is sent', async ({ onTestFinished }) => {
    const { harness, run } = await openIdle(onTestFinished);
    await harness.expunge(['cancel', run, '--yes']);
    expect(summaryIn(await harness.expunge(['retry', run, ...yes]))).toMatchObject({ rows: 6, deleted: 6, exit: 0 });
  });

  test('expires whole, also with an audit trail that begins with its retry', async ({ onTestFinished }) => {
    const { harness, run } = await openIdle(onTestFinished);
    await harness.expunge(['cancel', run, '--yes']);
    await harness.redis.del(keys.audit(run));
    await harness.expunge(['retry', run, ...yes]);
    expect(await harness.redis.llen(keys.audit(run))).toBe(1);
    expect(await harness.redis.pttl(keys.audit(run))).toBeGreaterThan(0);
  });
});
