import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { summaryIn } from '../../support/command.ts';
import { type Harness, openHarness } from '../../support/harness.ts';
import { runProgram } from '../../support/processes.ts';
import { forgetDelivery, forgetTarget, lastingKeys, redisKeysWith } from '../../support/redis-keys.ts';
import { startProxy, startRelay } from '../../support/relay.ts';

let harness: Harness;

beforeAll(async () => {
  harness = await openHarness(null, {
    account: '',
    objects: { annotations: 900, views: 900 },
    record: true,
    faults: { script },
  });
});

afterAll(() => harness.close());

/** What the sandbox answers to the nth request for some of its objects; all others go well. */
const script = (_: string, id: string, nth: number) => {
  if (id === 'a-000005' && nth === 1) return 'status-503-executed';
  if (id === 'a-000006') return 'status-403';
  if (id === 'a-000007') return 'status-500';
  if (id === 'a-000008') return 'status-409';
  return null;
};

const soon = { EXPUNGE_RETRY_DELAYS: '1ms,1ms,1ms,1ms,1ms' };
const annotations = ['--resource', 'annotations', '--yes', '--json'];
const views = ['--resource', 'views', '--yes', '--json'];

/** The ids the sandbox was asked to delete since it had seen so many requests. */
function asked(since: number): string[] {
  return harness.sandbox.seen.slice(since).map((line) => line.replace('DELETE /v2/', ''));
}

/** `id,outcome,status,attempts` of each row of the report. */
function fates(run: string): string[] {
  return harness.outcomes(run).map((line) => line.split(',').slice(3, 7).join(','));
}

describe('a list', () => {
  it('is deleted, and the report says row by row what happened', async () => {
    harness.file('keep.txt', 'a-000004\n');
    const ids = [
      'a-000001',
      'a-000777x',
      'a-000001',
      'a/b',
      'a-000004',
      'a-000005',
      'a-000006',
      'a-000007',
      'a-000008',
    ];
    harness.file('mixed.csv', `id,note\n${ids.map((id) => `${id},"a, ""b"""`).join('\n')}\n`);
    const ended = await harness.run(['mixed.csv', '--protect', 'keep.txt', '--expect-absent', ...annotations], {
      env: soon,
    });
    const summary = summaryIn(ended);

    expect(fates(summary.run)).toEqual([
      'a-000001,deleted,204,1',
      'a-000777x,absent,404,1',
      'a-000001,duplicate,,0',
      'a/b,rejected,,0',
      'a-000004,protected,,0',
      'a-000005,gone_unconfirmed,404,2',
      'a-000006,failed,403,1',
      'a-000007,unknown,500,8',
      'a-000008,failed,409,8',
    ]);
    expect(Object.entries(summary)).toEqual(
      Object.entries({
        v: 1,
        type: 'summary',
        run: summary.run,
        state: 'completed',
        reason: '',
        rows: 9,
        pending: 0,
        deleted: 1,
        absent: 1,
        gone_unconfirmed: 1,
        failed: 2,
        unknown: 1,
        not_attempted: 0,
        rejected: 1,
        duplicate: 1,
        protected: 1,
        protected_read: 1,
        attempts: 21,
        answers_with_body: 0,
        seconds: summary.seconds,
        exit: 3,
        starts_at: null,
        retry_of: null,
        retried_by: [],
        results: null,
        results_problem: null,
        verified: null,
        standing: null,
        examples: [],
      }),
    );
    expect([ended.code, summary.seconds > 0]).toEqual([3, true]);
    expect(harness.sandbox.exists('annotations', 'a-000004')).toBe(true);
  });

  it('gives a report whose columns are known and which is a list again', async () => {
    harness.file('twelve.csv', 'file,id\nx,a-000011\ny,a-000012\n');
    const { run } = summaryIn(await harness.run(['twelve.csv', ...annotations]));
    const report = join(harness.stateDir, 'runs', run, 'outcomes.csv');
    const [header, first] = readFileSync(report, 'utf8').split('\n');
    expect(header).toBe('file,line,resource,id,outcome,status,attempts,settled_at,code,excerpt');
    expect(first).toMatch(
      /^twelve\.csv,2,annotations,a-000011,deleted,204,1,\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ,http_204,$/,
    );

    const again = await harness.run([report, '--resource-column', 'resource', '--expect-absent', '--yes', '--json']);
    expect(summaryIn(again)).toMatchObject({ rows: 2, absent: 2, exit: 0 });
  });

  it('that has ended makes a new run when it is given again, in which nothing is there', async () => {
    harness.file('again.csv', 'id\nv-000001\nv-000002\n');
    const first = summaryIn(await harness.run(['again.csv', ...views]));
    const second = summaryIn(await harness.run(['again.csv', ...views], { env: soon }));
    expect(first).toMatchObject({ deleted: 2, absent: 0, exit: 0 });
    expect(second).toMatchObject({ deleted: 0, absent: 0, unknown: 2, exit: 3 });
    expect(second.run).not.toBe(first.run);
  });

  it('that has ended without its report gets that from the same command, without a request', async () => {
    harness.file('cut.csv', 'id\nv-000011\nv-000012\n..\n');
    const first = summaryIn(await harness.run(['cut.csv', ...views]));
    // As a kill between the last answer and the report leaves it.
    const report = join(harness.stateDir, 'runs', first.run);
    rmSync(report, { recursive: true });
    await forgetDelivery(first.run);

    const before = harness.sandbox.seen.length;
    const again = await harness.run(['cut.csv', ...views.filter((flag) => flag !== '--yes')]);
    expect([again.code, summaryIn(again)]).toEqual([3, first]);
    expect(harness.outcomes(first.run)).toHaveLength(3);
    expect(harness.sandbox.seen.length).toBe(before);

    expect(summaryIn(await harness.run(['cut.csv', ...views], { env: soon }))).toMatchObject({ unknown: 2 });
  });
});

describe('files whose time is over', () => {
  it('are removed once the list is read, which may be one of them', async () => {
    harness.file('late.csv', 'id\na-000006\n');
    const { run } = summaryIn(await harness.run(['late.csv', ...annotations, '--json']));
    const folder = join(harness.stateDir, 'runs', run);
    writeFileSync(join(folder, 'kept-until'), '2020-01-01T00:00:00.000Z\n');
    const failures = join(folder, 'failures.csv');
    const { code, stdout } = await harness.run([failures, '--resource-column', 'resource', '--dry-run']);
    expect(stdout).toContain('1 row → 1 annotation to delete');
    expect([code, existsSync(failures)]).toEqual([0, false]);
  });
});

describe('a list can come', () => {
  const ids = (from: number) => [0, 1, 2].map((i) => `v-000${from + i}`);
  const lines = (list: string[]) => `${list.join('\n')}\n`;

  it.each([
    ['as NDJSON', 'list.ndjson', (list: string[]) => lines(list.map((id) => JSON.stringify({ id }))), 101],
    ['as plain lines', 'list.txt', lines, 111],
    ['as a gzipped CSV', 'list.csv.gz', (list: string[]) => gzipSync(`id\n${lines(list)}`), 121],
    ['with tabs', 'list.tsv', (list: string[]) => `x\tid\n${lines(list.map((id) => `1\t${id}`))}`, 131],
  ])('%s', async (_, name, content, from) => {
    harness.file(name, content(ids(from)));
    const since = harness.sandbox.seen.length;
    expect(summaryIn(await harness.run([name, ...views]))).toMatchObject({ rows: 3, deleted: 3, attempts: 3, exit: 0 });
    expect(asked(since).sort()).toEqual(ids(from).map((id) => `views/${id}`));
  });

  it('on stdin', async () => {
    const summary = summaryIn(await harness.run(['-', ...views], { input: lines(ids(141)) }));
    expect(summary).toMatchObject({ rows: 3, deleted: 3, exit: 0 });
    expect(harness.outcomes(summary.run)[2]).toMatch(/^\(stdin\),3,views,v-000143,deleted,/);
  });

  it('in several files, which make one run', async () => {
    harness.file('one.csv', lines(['id', ...ids(151)]));
    harness.file('two.csv', lines(['id', 'v-000153', 'v-000154']));
    const { run } = summaryIn(await harness.run(['one.csv', 'two.csv', ...views]));
    expect(fates(run).slice(2)).toEqual(['v-000153,deleted,204,1', 'v-000153,duplicate,,0', 'v-000154,deleted,204,1']);
  });

  it('with both resources, told apart by a column', async () => {
    harness.file('both.csv', 'kind,key\nviews,v-000161\nannotations,a-000161\nviews,a-000161\n');
    const since = harness.sandbox.seen.length;
    const ended = await harness.run([
      'both.csv',
      '--resource-column',
      'kind',
      '--column',
      'key',
      '--expect-absent',
      '--yes',
      '--json',
    ]);
    expect(fates(summaryIn(ended).run)).toEqual([
      'v-000161,deleted,204,1',
      'a-000161,deleted,204,1',
      'a-000161,absent,404,1',
    ]);
    expect(asked(since).sort()).toEqual(['annotations/a-000161', 'views/a-000161', 'views/v-000161']);
  });
});

describe('before anything is sent', () => {
  it('--dry-run shows the plan and needs neither token nor Redis', async () => {
    harness.file('dry.csv', 'id\nv-000201\nv-000201\n..\n');
    harness.file('others.txt', 'v-000202\nv-000203\n');
    const since = harness.sandbox.seen.length;
    const env = { EXPUNGE_TOKEN: '', REDIS_URL: 'redis://127.0.0.1:1' };
    const args = ['dry.csv', ...views.filter((word) => word !== '--yes'), '--dry-run', '--protect', 'others.txt'];
    const { code, stdout, stderr } = await harness.run(args, { env });
    expect(code).toBe(3);
    expect(stderr).toMatch(
      /3 rows → 1 view to delete · 1 duplicate · 1 rejected[\s\S]*2 ids read, none[\s\S]*Dry run: nothing was sent\./,
    );
    expect(JSON.parse(stdout)).toMatchObject({ v: 1, type: 'plan', rows: 3, views: 1, duplicate: 1, rejected: 1 });
    expect(JSON.parse(stdout)).toMatchObject({ protected: 0, protected_read: 2 });
    expect(harness.sandbox.seen).toHaveLength(since);
  });

  it('--limit takes the first rows, and says so', async () => {
    harness.file('long.csv', 'id\nv-000211\nv-000212\nv-000213\n');
    const ended = await harness.run(['long.csv', ...views, '--limit', '2']);
    expect(summaryIn(ended)).toMatchObject({ rows: 2, deleted: 2, exit: 0 });
    expect(ended.stderr).toContain('only the first 2 rows are in this run');
    expect(harness.sandbox.exists('views', 'v-000213')).toBe(true);
  });

  it('--confirm with the right number is a confirmation, also as we print it', async () => {
    const ids = Array.from({ length: 20 }, (_, i) => `v-000${221 + i}`);
    harness.file('confirmed.csv', `id\n${ids.join('\n')}\n`);
    const ended = await harness.run(['confirmed.csv', '--resource', 'views', '--json', '--confirm', '20']);
    expect(summaryIn(ended)).toMatchObject({ deleted: 20, exit: 0 });
  });
});

describe('on a terminal', () => {
  it('the count that was just shown is asked for, and a panel follows the run', async () => {
    harness.file('typed.csv', 'id\nv-000301\nv-000302\n');
    const { code, stderr } = await typing('typed.csv', '2\r');
    expect(stderr).toMatch(/2 rows → .*2 views.* to delete[\s\S]*100 %[\s\S]*completed: 2 ids/);
    expect([code, harness.sandbox.exists('views', 'v-000302')]).toEqual([0, false]);
  });

  it('any other answer stops it', async () => {
    harness.file('untyped.csv', 'id\nv-000311\nv-000312\n');
    const { code, stderr } = await typing('untyped.csv', 'yes\r');
    expect(stderr).toContain('not confirmed; nothing was sent');
    expect([code, harness.sandbox.exists('views', 'v-000311')]).toEqual([2, true]);
  });

  function typing(file: string, text: string) {
    return harness.run([file, '--resource', 'views'], {
      typed: [
        ['Type 2 to delete 2 views', text],
        ['2 tries are left', text],
        ['1 try is left', text],
      ],
    });
  }
});

describe('after a run', () => {
  it('its record can be listed, shown, verified, reported and removed, and then no key of it is left', async () => {
    harness.file('record.csv', 'id\nv-000401\nv-000402\n..\n');
    const ended = await harness.run(['record.csv', ...views, '--reason', 'OPS-1']);
    const summary = summaryIn(ended);
    const lines = (text: string) =>
      text
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line));

    expect(lines((await harness.expunge(['status', summary.run, '--json'])).stdout)).toEqual([summary]);
    expect((await harness.expunge(['status', summary.run])).stdout).toMatch(
      /because: OPS-1\n {2}Redis forgets it on [-\d]{10}; its report is kept until [-\d]{10} in \/.*\/runs\//,
    );
    await forgetDelivery(summary.run);
    expect(await lastingKeys(summary.run)).not.toEqual([]);
    const { examples: _, ...listed } = summary as Record<string, unknown>;
    const time = expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/);
    expect(lines((await harness.expunge(['runs', '--json'])).stdout)).toContainEqual({
      ...listed,
      target: harness.target.baseUrl,
      account: harness.target.account,
      files: [expect.any(String)],
      note: 'OPS-1',
      labels: {},
      created_by: expect.stringMatching(/./),
      created_at: time,
      started_at: time,
      changed_at: time,
      ended_at: time,
    });
    expect(await lastingKeys(summary.run)).toEqual([]);
    const verified = await harness.expunge(['report', summary.run, '--verify']);
    expect([verified.code, verified.stderr]).toEqual([
      0,
      expect.stringContaining('adds up: 3 rows = 2 deleted + 1 rejected'),
    ]);
    const ndjson = lines((await harness.expunge(['report', summary.run, '--format', 'ndjson'])).stdout);
    expect(ndjson.map(({ id, outcome }) => `${id} ${outcome}`)).toEqual([
      'v-000401 deleted',
      'v-000402 deleted',
      '.. rejected',
    ]);

    expect((await harness.expunge(['runs', 'remove', summary.run])).code).toBe(2);
    expect((await harness.expunge(['runs', 'remove', summary.run, '--yes'])).code).toBe(0);
    await expect.poll(() => redisKeysWith(summary.run), { timeout: 5_000 }).toEqual([]); // one that tried a write goes by itself
    expect((await harness.expunge(['status', summary.run])).code).toBe(2);
  });

  it('that left no report, whoever removes it is told that it takes along what happened', async () => {
    harness.file('detached.csv', 'id\nv-000411\n');
    const { run } = summaryIn(await harness.run(['detached.csv', ...views, '--detach']));
    await harness.expunge(['cancel', run, '--yes']);
    const kept = `to keep that: expunge report ${run} --output FILE`;
    expect((await harness.expunge(['status', run])).stdout).toMatch(
      new RegExp(`forgets it on [-\\d]{10}, and .*; ${kept}`),
    );
    const refused = await harness.expunge(['runs', 'remove', run]);
    expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining('what happened to each row is lost')]);

    await harness.expunge(['report', run, '--output', 'kept.csv']);
    const { stderr } = await harness.expunge(['runs', 'remove', run, '--yes']);
    expect(stderr).toContain(`Removed run ${run}; its report stays in ${join(harness.folder, 'kept.csv')}.`);
  });

  it('nothing of its list stays in the spool, and no token anywhere in the state folder', async () => {
    const files = readdirSync(harness.stateDir, { recursive: true, withFileTypes: true }).filter((file) =>
      file.isFile(),
    );
    expect(files.filter(({ parentPath }) => parentPath.includes('spool'))).toEqual([]);
    for (const { parentPath, name } of files)
      expect(readFileSync(join(parentPath, name), 'utf8')).not.toContain(harness.sandbox.token);
  });
});

describe('the way to the API', () => {
  it('can lead through a proxy', async () => {
    const proxy = await startProxy();
    try {
      harness.file('proxied.csv', 'id\nv-000571\nv-000572\n');
      const ended = await harness.run(['proxied.csv', ...views, '--proxy', `http://127.0.0.1:${proxy.port}`]);
      expect(summaryIn(ended)).toMatchObject({ deleted: 2, exit: 0 });
      expect(proxy.connections).toBeGreaterThan(0);
    } finally {
      await proxy.close();
    }
  });
});

const hasOpenssl = (await runProgram('openssl', ['version']).catch(() => null))?.code === 0;
if (!hasOpenssl) console.warn('skipped: https needs openssl to make a certificate');

describe.runIf(hasOpenssl)('https', () => {
  const make = async (name: string, address: string) => {
    const files = ['-keyout', `${name}.key`, '-out', `${name}.pem`];
    const subject = ['-subj', '/CN=expunge-test', '-addext', `subjectAltName=IP:${address}`];
    const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2'];
    const made = await runProgram('openssl', ['req', '-x509', ...key, ...files, ...subject], { cwd: harness.folder });
    expect(made.code).toBe(0);
    const read = (file: string) => readFileSync(join(harness.folder, file), 'utf8');
    return { key: read(`${name}.key`), cert: read(`${name}.pem`) };
  };

  it.each([
    ['goes on with a certificate of --ca-file', '127.0.0.1', ['--ca-file', 'right.pem'], { deleted: 1, exit: 0 }],
    ['halts the run where nobody vouches for the certificate', '127.0.0.1', [], { pending: 1, attempts: 0, exit: 6 }],
    [
      'halts the run where the certificate names another host',
      '127.0.0.9',
      ['--ca-file', 'right.pem'],
      { pending: 1, exit: 6 },
    ],
  ])('%s', async (name, address, flags, expected) => {
    const relay = await startRelay(harness.sandbox.url, await make('right', address));
    const url = `https://127.0.0.1:${relay.port}`;
    const since = harness.sandbox.seen.length;
    try {
      harness.file('secure.csv', `id\nv-000${600 + name.length}\n`);
      const ended = await harness.run(['secure.csv', ...views, '--base-url', url, ...flags]);
      expect(summaryIn(ended)).toMatchObject(expected);
      expect(ended.code).toBe(expected.exit);
      if (expected.exit === 6) {
        expect(ended.stderr).toMatch(/halted.*: the API cannot be reached: \w+/);
        expect(harness.sandbox.seen).toHaveLength(since);
      }
    } finally {
      await forgetTarget(url);
      await relay.close();
    }
  });
});
