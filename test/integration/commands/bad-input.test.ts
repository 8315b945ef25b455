import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { targetOf } from '../../../src/model/target.ts';
import { connectLedger, ready } from '../../../src/redis/connect.ts';
import { keys } from '../../../src/redis/keys.ts';
import { resolveRedis } from '../../../src/redis/private/open.ts';
import { type CommandOptions, summaryIn } from '../../support/command.ts';
import { type Harness, openHarness } from '../../support/harness.ts';
import { runProgram } from '../../support/processes.ts';
import { makeStateDir, removeStateDir, urlOf } from '../../support/redis.ts';
import { redisKeysWith } from '../../support/redis-keys.ts';

const mayMount = process.platform === 'linux' && process.getuid?.() === 0;

let harness: Harness;

beforeAll(async () => {
  harness = await openHarness(null, { account: '', objects: { annotations: 500 } });
  harness.file('ids.csv', 'id\na-000001\na-000002\na-000003\n');
  harness.file('unclosed.csv', 'id\na-000001\na-000002\n"a-000003');
  harness.file('paths.csv', `id\na-1\na-2\n${Array.from({ length: 12 }, (_, n) => `/x/${n + 1}\n`).join('')}`);
});

afterAll(() => harness.close());

const list = ['ids.csv', '--resource', 'annotations', '--yes'];

/** Runs it and checks that the API saw nothing, and that Redis knows no run of it. */
async function refused(args: string[], options?: CommandOptions) {
  const before = harness.sandbox.counts.requests;
  const ended = await harness.run(args, options);
  expect(harness.sandbox.counts.requests).toBe(before);
  expect(ended.stdout).toBe('');
  return ended;
}

describe('a list that cannot be used is refused before anything is sent', () => {
  it.each([
    ['a column that is not there', [...list, '--column', 'ids'], /no column "ids" in the header, which has: "id"\./],
    [
      'a resource nobody knows',
      ['ids.csv', '--resource', 'anotations', '--yes'],
      /"anotations" is not one of .*annotations\?/,
    ],
    ['no resource', ['ids.csv', '--yes'], /expected exactly one of --resource and --resource-column/],
    [
      'a missing file',
      ['nothing.csv', '--resource', 'views', '--yes'],
      /^error: nothing\.csv: not found\n {2}check the name;.*\n$/,
    ],
    [
      'a folder',
      ['.', '--resource', 'views', '--yes'],
      /^error: \.: expected a file, got a folder\n {2}name the files in it: \.\/\*\.csv\n$/,
    ],
    [
      'a quote on the last line that is never closed',
      ['unclosed.csv', ...list.slice(1)],
      /unclosed\.csv:4: a quote opens/,
    ],
    ['a flag nobody knows', [...list, '--forse'], /no such option: --forse\./],
    [
      'a count that does not fit',
      ['ids.csv', '--resource', 'views', '--confirm', '4'],
      /--confirm 4: expected 3, because 3 views on 127/,
    ],
    [
      'nobody to ask',
      ['ids.csv', '--resource', 'views'],
      /3 views on 127.* would be deleted, but there is no terminal to confirm on\n {2}add --confirm 3 or --yes/,
    ],
    [
      'a state folder that cannot be made',
      [...list, '--state-dir', 'ids.csv/state'],
      /--state-dir ids\.csv\/state: expected a folder/,
    ],
    [
      'a certificate file that is not there',
      [...list, '--ca-file', 'ca.pem'],
      /--ca-file ca\.pem: not found\n {2}check the name/,
    ],
    [
      'a protect file that is not there',
      [...list, '--protect', 'keep.txt'],
      /^error: keep\.txt: not found\n {2}check the name;.*\n$/,
    ],
    [
      'a column that holds no ids',
      ['paths.csv', ...list.slice(1)],
      /12 of 14 rows are rejected as unsafe_character, like "\/x\/1", [\s\S]*--expect-rejected\n$/,
    ],
  ])('%s: exit 2', async (_, args, words) => {
    const { code, stderr } = await refused(args);
    expect(stderr).toMatch(words);
    expect(code).toBe(2);
  });

  it('ids on stdin whose last line has no end, because their writer may have died: exit 2', async () => {
    const { code, stderr } = await refused(['-', '--resource', 'views', '--yes'], { input: 'v-000001\nv-0000' });
    expect(stderr).toMatch(/\(stdin\):2: .*line/);
    expect(code).toBe(2);
  });

  it('another number of ids than --expect-count says: exit 4', async () => {
    const { code, stderr } = await refused([...list, '--expect-count', '2']);
    expect(stderr).toContain('the list holds 3 ids, --expect-count is 2; nothing was sent');
    expect(code).toBe(4);
  });
});

// Nothing is unreadable for root.
describe.skipIf(process.getuid?.() === 0)('a file that may not be read', () => {
  it('is refused: exit 2', async () => {
    chmodSync(harness.file('closed.csv', 'id\na-000001\n'), 0);
    const { code, stderr } = await refused(['closed.csv', ...list.slice(1)]);
    expect(stderr).toMatch(/^error: closed\.csv: permission denied\n {2}let this user use it/);
    expect(code).toBe(2);
  });
});

describe('a base URL that would lose or leak something is refused', () => {
  it.each([
    ['a query', 'https://api.example.com?tenant=1', /cannot hold a query/],
    ['a user name', 'https://ana:geheim@api.example.com', /cannot hold a user name or password/],
    [
      'http to another machine',
      'http://api.example.com',
      /over http an attacker in the network could read the token\n.*--allow-http/,
    ],
    ['no URL', 'api.example.com', /expected a URL like https/],
  ])('%s: exit 2', async (_, url, words) => {
    const { code, stderr } = await refused([...list, '--base-url', url]);
    expect(stderr).toMatch(words);
    expect(stderr).not.toContain('geheim');
    expect(code).toBe(2);
  });

  it('certificate checks that are switched off: exit 2', async () => {
    const { code, stderr } = await refused(list, { env: { NODE_TLS_REJECT_UNAUTHORIZED: '0' } });
    expect(stderr).toContain('NODE_TLS_REJECT_UNAUTHORIZED=0 would send the token to any server');
    expect(code).toBe(2);
  });
});

describe('a token', () => {
  it('has to be there: exit 5', async () => {
    const { code, stderr } = await refused(list, { env: { EXPUNGE_TOKEN: '' } });
    expect(stderr).toMatch(/expected an access token in EXPUNGE_TOKEN or in --token-file, got none/);
    expect(code).toBe(5);
  });

  it.each([
    ['two words', 'text that holds white space'],
    ['Authorization: Bearer geheim', 'a header with its name'],
    ['geheim\u00e4', 'text that holds a character beyond ASCII'],
    ['geheim\r', 'text that ends with CR (a Windows line end)'],
  ])('has to be one: %j is refused unseen, exit 5', async (token, got) => {
    const { code, stderr } = await refused(list, { env: { EXPUNGE_TOKEN: token } });
    expect(stderr).toContain(`EXPUNGE_TOKEN: expected one bearer token, got ${got}\n`);
    expect(stderr).not.toContain(token);
    expect(code).toBe(5);
  });

  it('that the API refuses halts the run with nothing deleted, and the right one goes on with it: exit 5, then 0', async () => {
    const ids = ['a-000101', 'a-000102', 'a-000103'];
    const args = [
      harness.file('halted.csv', `id\n${ids.join('\n')}\n`),
      '--resource',
      'annotations',
      '--yes',
      '--json',
    ];
    const halted = await harness.run(args, { env: { EXPUNGE_TOKEN: 'wrong' } });
    expect(halted.stderr).toMatch(/halted.*the API refused the token from EXPUNGE_TOKEN \(401\b/);
    expect(summaryIn(halted)).toMatchObject({ state: 'halted', pending: 3, deleted: 0, attempts: 0, exit: 5 });
    expect(halted.code).toBe(5);
    expect(ids.every((id) => harness.sandbox.exists('annotations', id))).toBe(true);

    const unsure = await harness.expunge(['run', ...args.slice(0, 3), '--base-url', harness.sandbox.url]);
    expect(unsure.stderr).toMatch(
      /error: the 3 ids left of run \S+ would be deleted, but there is no terminal to confirm on/,
    );
    const resumed = await harness.run(args);
    expect(summaryIn(resumed)).toMatchObject({ run: summaryIn(halted).run, deleted: 3, attempts: 3, exit: 0 });
  });
});

describe('a Redis that cannot be used ends the command before anything is sent', () => {
  it('when nobody listens: exit 6', async () => {
    const { code, stderr } = await refused(list, { env: { REDIS_URL: `redis://127.0.0.1:${await closedPort()}` } });
    expect(stderr).toMatch(/Redis at redis:\/\/127\.0\.0\.1:\d+: connection refused/);
    expect(code).toBe(6);
  });

  it('when REDIS_URL is none: exit 2', async () => {
    const { code, stderr } = await refused(list, { env: { REDIS_URL: 'localhost:6379' } });
    expect(stderr).toMatch(/REDIS_URL: expected redis:\/\//);
    expect(code).toBe(2);
  });

  it('when it evicts keys: exit 6', async () => {
    const stateDir = makeStateDir();
    try {
      const address = await resolveRedis(
        { stateDir, allowPlaintextRedis: false },
        { ...process.env, REDIS_URL: '' },
        () => {},
      );
      address.stay?.presence.disconnect();
      const redis = connectLedger(address);
      await ready(redis, address);
      await redis.config('SET', 'maxmemory-policy', 'allkeys-lru');
      redis.disconnect();
      const { code, stderr } = await refused(list, { env: { REDIS_URL: urlOf(address) } });
      expect(stderr).toMatch(/this Redis evicts keys \(maxmemory-policy allkeys-lru\)/);
      expect(code).toBe(6);
    } finally {
      await removeStateDir(stateDir);
    }
  });
});

describe('rows that cannot be sent', () => {
  it('are rejected one by one where the column names no resource, and the others are deleted: exit 3', async () => {
    const csv = 'kind,id\nannotations,a-000201\nfolders,a-000202\nAnnotations,a-000203\n,a-000204\n';
    const ended = await harness.run([harness.file('kinds.csv', csv), '--resource-column', 'kind', '--yes', '--json']);
    const summary = summaryIn(ended);
    expect(summary).toMatchObject({ rows: 4, deleted: 1, rejected: 3, attempts: 1, exit: 3 });
    expect(
      harness.outcomes(summary.run).filter((line) => /rejected,,0,,(unknown|misspelt)_resource/.test(line)),
    ).toHaveLength(3);
    expect(harness.sandbox.exists('annotations', 'a-000202')).toBe(true);
  });
});

describe('a state folder in which nothing can be written', () => {
  it.each([
    ['the rows', 'spool'],
    ['the list of rejected rows', 'rejects'],
  ])('for %s is said in words: exit 2', async (_, name) => {
    const stateDir = join(harness.folder, `no-${name}`);
    mkdirSync(stateDir);
    harness.file(`no-${name}/${name}`, 'a file where a folder should be');
    harness.file('one-bad.csv', 'id\na-000001\n..\n');
    const { code, stderr } = await refused(['one-bad.csv', ...list.slice(1), '--state-dir', stateDir]);
    expect(stderr).toMatch(/--state-dir .*: expected a folder that can be written: [a-z: ]+; nothing was sent\n/);
    expect(code).toBe(2);
  });
});

describe('the same list twice at once', () => {
  it('is one run, whose ids all end as deleted for both', async () => {
    const own = await openHarness(null, { account: '', objects: { views: 400 }, latencyMs: 20, record: true });
    try {
      const ids = Array.from({ length: 300 }, (_, i) => `v-${String(i + 1).padStart(6, '0')}`);
      own.file('twice.csv', `id\n${ids.join('\n')}\n`);
      const args = ['twice.csv', '--resource', 'views', '--yes', '--json', '--max-concurrency', '4'];
      const [first, second] = (await Promise.all([own.run(args), own.run(args)])).map(summaryIn);
      expect(second!.run).toBe(first!.run);
      for (const summary of [first!, second!])
        expect(summary).toMatchObject({ state: 'completed', rows: 300, pending: 0, deleted: 300, exit: 0 });
      expect(new Set(own.sandbox.seen)).toEqual(new Set(ids.map((id) => `DELETE /v2/views/${id}`)));
      expect(own.sandbox.remaining('views')).toBe(100);
    } finally {
      await own.close();
    }
  });
});

describe('a report that cannot be written', () => {
  const ids = Array.from({ length: 99 }, (_, i) => `a-000${401 + i}`);

  it('takes nothing from the run, and can be written again: exit 1', async () => {
    harness.file('late.csv', `id\n${ids.slice(0, 50).join('\n')}\n`);
    const stateDir = join(harness.folder, 'blocked');
    mkdirSync(stateDir);
    harness.file('blocked/runs', 'a file where the folder of the reports should be');
    await expectSafe('late.csv', stateDir, 50, 'its folder does not exist');
  });

  it.runIf(mayMount)('because the disk is full, neither', async () => {
    harness.file('full.csv', `id\n${ids.slice(50).join('\n')}\n`);
    const stateDir = join(harness.folder, 'full');
    mkdirSync(join(stateDir, 'runs'), { recursive: true });
    const mounted = await runProgram('mount', ['-t', 'tmpfs', '-o', 'size=4k', 'tmpfs', join(stateDir, 'runs')]);
    try {
      if (mounted.code !== 0) return console.warn(`skipped: no tmpfs can be mounted here: ${mounted.stderr.trim()}`);
      await runProgram('sh', ['-c', 'cat /dev/zero > filler'], { cwd: join(stateDir, 'runs') });
      await expectSafe('full.csv', stateDir, 49, 'no space left');
    } finally {
      await runProgram('umount', [join(stateDir, 'runs')]);
    }
  });

  async function expectSafe(file: string, stateDir: string, rows: number, why: string) {
    const ended = await harness.run([file, '--resource', 'annotations', '--yes', '--json', '--state-dir', stateDir]);
    const summary = summaryIn(ended);
    expect(ended.stderr).toMatch(/error: the report could not be written to .*; the run's outcomes are safe in Redis/);
    expect(ended.stderr).toContain(why);
    expect(summary).toMatchObject({ state: 'completed', deleted: rows, pending: 0, exit: 1 });
    expect(ended.code).toBe(1);
    const again = await harness.expunge(['report', summary.run, '--output', 'again.csv']);
    expect(again.code).toBe(0);
    expect(readFileSync(join(harness.folder, 'again.csv'), 'utf8').trimEnd().split('\n')).toHaveLength(rows + 1);
  }

  it.skipIf(!existsSync('/dev/full'))(
    'by `report --output` is said in words: exit 1, and another place works',
    async () => {
      const summary = summaryIn(await harness.run([...list, '--json']));
      const full = await harness.expunge(['report', summary.run, '--output', '/dev/full']);
      expect(full.stderr).toMatch(
        /could not be written to \/dev\/full: no space left on the disk; .* safe in Redis\n {2}expunge report/,
      );
      expect(full.code).toBe(1);
      expect(statSync('/dev/full').isCharacterDevice()).toBe(true);
      const { code, stdout } = await harness.expunge(['report', summary.run]);
      expect([code, stdout.trimEnd().split('\n').length]).toEqual([0, 4]);
    },
  );
});

describe('a refused list', () => {
  it('leaves no run in Redis and no rows on disk', async () => {
    const { fp } = targetOf(harness.sandbox.url, '');
    const kept = async () => (await redisKeysWith(fp)).filter((key) => key !== keys.probe(fp)); // this one expires after a second
    const before = await kept();
    await refused([...list, '--confirm', '9']);
    expect(await kept()).toEqual(before);
    expect(readdirSync(join(harness.stateDir, 'spool'))).toEqual([]);
  });
});

/** A port that was free a moment ago. */
function closedPort(): Promise<number> {
  return new Promise((resolve) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const { port } = server.address() as { port: number };
      server.close(() => resolve(port));
    });
  });
}
