import { readFileSync } from 'node:fs';
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { Role } from '../../../src/model/role.ts';
import { keys } from '../../../src/redis/keys.ts';
import { type Api, openApi } from '../../support/api.ts';
import { annotations, makeIds } from '../../support/ids.ts';
import { liveRun } from '../../support/live-run.ts';
import { until } from '../../support/processes.ts';
import { listen, openRowsWay } from '../../support/rows-way.ts';

const nowhere = 'redis://127.0.0.1:1';

/** What an operator has who knows the server only. */
async function overServer({ url, token }: Api, role: Role) {
  return { EXPUNGE_SERVER: url, EXPUNGE_SERVER_TOKEN: await token(role), REDIS_URL: nowhere };
}

type Judge = (asked: IncomingMessage) => boolean | Promise<boolean>;

/**
 * A way to the server on which those requests are lost of which `isLost` says so, and wait until it does; those of which `isLate` says so once
 * they are answered are answered as actions that are still being carried out.
 */
async function openRelay(url: string, isLost: Judge, isLate: Judge = () => false): Promise<string> {
  const relay = createServer(async (asked, answer) => {
    if (await isLost(asked)) return answer.destroy();
    const { method, url: path, headers } = asked;
    const sent = request(url + path, { method, headers }, async (got) => {
      got.pipe(answer.writeHead((await isLate(asked)) ? 202 : got.statusCode!, got.headers));
    });
    return asked.pipe(sent);
  });
  return listen(relay, onTestFinished);
}

/** Counts the requests for a run. */
function countRecords() {
  let records = 0;
  return ({ url }: IncomingMessage) => (url!.endsWith('/record') ? ++records : 0);
}

/** What a command told people, without the line about what it works on. */
function withoutPlace({ stderr }: { stderr: string }): string {
  return stderr.replace(/^(Redis|Server): .*\n/, '');
}

/** A run that has ended with a row of each kind, and one that waits. */
async function openWithRuns(): Promise<Api & { ids: string[]; ended: string; waiting: string }> {
  const ids = makeIds('s', 20);
  const api = await openApi(onTestFinished, { objects: annotations(ids.slice(0, 15)) });
  const { harness } = api;
  harness.file('old.csv', `id\n${ids.join('\n')}\n"two\nlines"\n${ids[0]}\n`);
  const done = await harness.run(['old.csv', '--resource', 'annotations', '--yes', '--json', '--reason', 'old']);
  const ended = JSON.parse(done.stdout.trimEnd().split('\n').at(-1)!).run;
  const waiting = await liveRun(harness, 's-waits', '--rate', '5/s');
  await harness.expunge(['pause', waiting, '--reason', 'too early']);
  return { ...api, ids, ended, waiting };
}

/** The lines of a run's audit trail: what, who and why. */
async function trailOf({ call }: Api, run: string): Promise<string[]> {
  const { audit } = (await call('read', `/runs/${run}`)).body;
  return audit.map(({ action, who, reason }: Record<string, string>) => `${action} ${who} ${reason}`.trim());
}

/** A server, a worker, and a run of 300 ids at 20/s that has deleted a few of them. */
async function openRunUnderWay(list: string, latencyMs = 0) {
  const ids = makeIds(list, 300);
  const api = await openApi(onTestFinished, { objects: annotations(ids), latencyMs });
  const { harness } = api;
  harness.file(`${list}.csv`, `id\n${ids.join('\n')}\n`);
  const line = [`${list}.csv`, '--resource', 'annotations', '--detach', '--yes', '--json', '--rate', '20/s'];
  const { run } = JSON.parse((await harness.run(line)).stdout);
  await harness.worker();
  await harness.runIs('under way', ({ counts }) => counts.deleted > 3);
  return { api, harness, run };
}

/** What a command printed, without the line that says where it ran. */
const comparable = <T extends { stderr: string }>(done: T): T => ({ ...done, stderr: withoutPlace(done) });

/** Without the second at which a state was read: the two commands run one after the other. */
const withoutTime = (text: string) => text.replace(/ at \d\d:\d\d:\d\d UTC$/m, '');

describe('a command with --server', () => {
  test('prints of runs and of a target what it prints where Redis can be reached, without Redis', async () => {
    const api = await openWithRuns();
    const { harness, ended, waiting, ids } = api;
    harness.file('other.csv', 'id\nnowhere\n');
    const env = await overServer(api, 'read');
    const lines: string[][] = [
      ...[['runs'], ['runs', '--json'], ['runs', '--sort', 'failed', '--limit', '1'], ['runs', '--state', 'paused']],
      ...[
        ['runs', '--list', 'OLD'],
        ['runs', '--since', '1970-01-02', '--by', 'nobody at all'],
      ],
      ...[
        ['status', ended],
        ['status', ended.slice(-4), '--json', '--audit', '--history'],
        ['status', waiting],
      ],
      ...[['status', waiting, '--json'], ['status', ended, '--watch', '--json'], ['status'], ['status', '--audit']],
      ...[
        ['report', ended],
        ['report', ended, '--format', 'ndjson', '--only', 'absent,rejected'],
      ],
      ...[
        ['explain', 'annotations', ids[3]!],
        ['explain', 'annotations', ids[17]!, '--json'],
        ['explain', 'annotations', ids[0]!, '--json'],
      ],
      ...[
        ['report', ended, '--spreadsheet-safe'],
        ['report', ended, '--verify', '--json'],
        ['report', ended, '--follow'],
        ['report', ended, '--certificate'],
        ['report', ended, '--certificate', '--hash-ids', 'salt'],
        ['report', ended, '--join', 'old.csv', '--resource', 'annotations'],
        ['report', ended, '--join', 'old.csv', '--only', 'absent,rejected'],
      ],
    ];
    for (const line of lines) {
      const direct = await harness.expunge(line);
      const over = await harness.expunge(line, { env });
      const compared = [over, direct].map((done) => ({ ...comparable(done), stdout: withoutTime(done.stdout) }));
      expect(compared[0], line.join(' ')).toEqual(compared[1]);
      expect(over.code, over.stderr).toBe(line.includes('--watch') ? 3 : 0); // it ends as the run did
      expect(over.stdout.length, line.join(' ')).toBeGreaterThan(5);
    }
    for (const line of [
      ['explain', 'views', 'nowhere'],
      ['explain', 'wrong', 'x'],
      ['report', waiting, '--certificate'],
      ['report', ended, '--join', 'other.csv'],
      ['report', ended, '--join', 'old.csv', '--verify'],
      ['report', ended, '--sign-key', 'key.pem'],
      ['report', ended, '--follow', '--from', 'AQAAAAAA'],
    ]) {
      const [direct, over] = [await harness.expunge(line), await harness.expunge(line, { env })];
      expect(comparable(over)).toEqual(comparable(direct));
      expect(over.code).toBe(2);
    }
    const count = ['report', ended, '--verify'];
    const [counted, countedOver] = [await harness.expunge(count), await harness.expunge(count, { env })];
    expect(comparable(countedOver)).toEqual(comparable(counted));
    expect([counted.code, withoutPlace(counted)]).toEqual([0, expect.stringContaining('adds up: 22 rows')]);
    const told = await harness.expunge(['report', ended, '-o', 'over.csv', '--json'], { env });
    const direct = await harness.expunge(['report', ended, '-o', 'direct.csv', '--json']);
    expect(withoutPlace(told)).toBe('22 rows in over.csv\n');
    expect(told.stdout.replace('over.csv', 'direct.csv')).toBe(direct.stdout);
    const [a, b] = ['over.csv', 'direct.csv'].map((name) => readFileSync(`${harness.folder}/${name}`, 'utf8'));
    expect(a).toBe(b);
  });

  test.for([['--certificate'], ['--join', 'old.csv']])(
    'makes nothing of a part of the rows, and leaves the file as it was: %s',
    async (options) => {
      const api = await openWithRuns();
      const { harness, ended, url } = api;
      const cut = (answer: ServerResponse, text: string) =>
        answer.end(text.slice(0, text.lastIndexOf('\n', text.length - 2) + 1));
      const env = { ...(await overServer(api, 'read')), EXPUNGE_SERVER: await openRowsWay(url, cut, onTestFinished) };
      harness.file('out', 'as it was');
      const done = await harness.expunge(['report', ended, ...options, '-o', 'out'], { env });
      expect([done.code, done.stdout, done.stderr]).toEqual([
        ...[1, '', expect.stringContaining(`the server sent 21 of 22 rows of run ${ended}`)],
      ]);
      expect(readFileSync(`${harness.folder}/out`, 'utf8')).toBe('as it was');
    },
  );

  test('follows a run to its end, once, also where the connection breaks behind the last line', async () => {
    const api = await openWithRuns();
    const { harness, ended, url } = api;
    const end = (answer: ServerResponse, text: string) =>
      answer.write(text, () => setTimeout(() => answer.destroy(), 100));
    const way = await openRowsWay(url, end, onTestFinished);
    const env = { ...(await overServer(api, 'read')), EXPUNGE_SERVER: way };
    const line = ['report', ended, '--follow'];
    const [direct, over] = [await harness.expunge(line), await harness.expunge(line, { env })];
    expect([over.code, over.stdout]).toEqual([0, direct.stdout]);
  });

  test('takes the page of a proxy for no rows', async () => {
    const api = await openWithRuns();
    const { harness, ended, url } = api;
    const end = (answer: ServerResponse) => answer.writeHead(200, { 'content-type': 'text/html' }).end('<p>\n');
    const way = await openRowsWay(url, end, onTestFinished);
    const env = { ...(await overServer(api, 'read')), EXPUNGE_SERVER: way };
    for (const option of ['--follow', '--format=ndjson', '--spreadsheet-safe']) {
      const done = await harness.expunge(['report', ended, option], { env });
      expect(done).toMatchObject({ code: 2, stdout: '', stderr: expect.stringContaining('it answers 200, text/html') });
    }
  });

  test('ends a follower where Redis has lost a part of the run, as beside Redis', async () => {
    const api = await openWithRuns();
    const { harness, ended, redis } = api;
    await redis.del(keys.manifest(ended, 0));
    const env = await overServer(api, 'read');
    const line = ['report', ended, '--follow'];
    const [direct, over] = [await harness.expunge(line), await harness.expunge(line, { env })];
    expect(direct.stderr).toContain('manifest chunk 0 is missing');
    expect(comparable(over)).toEqual(comparable(direct));
    expect(over.code).toBe(1);
  });

  test('ends a follower at once at SIGINT, also while the server is silent, and tells how to go on', async () => {
    const api = await openWithRuns();
    const { harness, ended, url } = api;
    const end = (answer: ServerResponse, text: string) => answer.write(text.slice(0, text.indexOf('\n') + 1));
    const way = await openRowsWay(url, end, onTestFinished);
    const env = { ...(await overServer(api, 'read')), EXPUNGE_SERVER: way };
    const running = harness.start(['report', ended, '--follow'], env);
    await until('it has a cursor', () => running.stdout.includes('"type":"cursor"'));
    running.signal('SIGINT');
    expect((await running.ended).code).toBe(130);
    expect(running.stderr).toContain(`Continue: expunge report ${ended} --follow --from `);
  });

  test('says as little as without it of a run that is not there, with the same exit code', async () => {
    const { harness, ...api } = await openApi(onTestFinished);
    const env = await overServer({ harness, ...api }, 'read');
    for (const command of ['status', 'pause', 'report']) {
      const over = await harness.expunge([command, 'none'], { env });
      expect(over).toMatchObject({ code: 2, stdout: '', stderr: expect.stringContaining('no run is called "none"') });
    }
  });
});

describe('an action with --server', () => {
  const actions: string[][] = [
    ...[['pause'], ['pause', '--json'], ['rate', '7/s'], ['rate', '7/s', '--json'], ['rate', 'none']],
    ...[
      ['resume', '--reason', 'go on'],
      ['resume', '--json'],
    ],
    ...[['resume', '--detach', '--max-deletes', '9'], ['cancel', '--yes'], ['cancel', '--yes', '--json'], ['resume']],
    ...[['rate', '1/s'], ['pause'], ['rate', 'fast'], ['runs', 'remove', '--yes', '--json']],
  ];

  test('does and says what it does and says where Redis can be reached, in the name of the token', async () => {
    const api = await openApi(onTestFinished);
    const { harness } = api;
    const [one, other] = [await liveRun(harness, 'o-00001'), await liveRun(harness, 'o-00002')];
    const env = await overServer(api, 'operate');
    const facts = (text: string, run: string) =>
      text.replaceAll(run, 'RUN').replaceAll(/"(seconds|since)":("[^"]*"|[\d.]+)/g, '');
    for (const action of actions) {
      const isRemoval = action[1] === 'remove';
      const trails = isRemoval ? [] : [await trailOf(api, one), await trailOf(api, other)].map((trail) => trail.length);
      const words = isRemoval ? action.slice(0, 2) : action.slice(0, 1);
      const line = (run: string) => [...words, run, ...action.slice(words.length)];
      const direct = await harness.expunge(line(one), { env: { EXPUNGE_USER: 'test-operate' } });
      const over = await harness.expunge(line(other), { env });
      const label = action.join(' ');
      expect(over.code, label + over.stderr).toBe(direct.code);
      expect(facts(over.stdout, other), label).toBe(facts(direct.stdout, one));
      expect(facts(withoutPlace(over), other), label).toBe(facts(withoutPlace(direct), one));
      if (isRemoval) break;
      expect(trails[0]).toBe(trails[1]);
      expect(await trailOf(api, other), label).toEqual(await trailOf(api, one));
    }
    for (const run of [one, other]) expect((await api.call('read', `/runs/${run}`)).status).toBe(404);
  });

  test('cancels a run that a worker deletes, and returns when no request of it is in flight any more', async () => {
    const { api, harness, run } = await openRunUnderWay('w');
    const env = await overServer(api, 'operate');
    const done = await harness.expunge(['cancel', run, '--yes', '--reason', 'wrong list'], { env });
    expect(done, done.stderr).toMatchObject({ code: 0, stderr: expect.stringContaining(`Run ${run} is cancelled.`) });
    const { state, counts } = await harness.onlyRun();
    expect([state, counts.deleted < 300]).toEqual(['cancelled', true]);
    expect(harness.sandbox.remaining()).toBe(300 - counts.deleted);
    expect(await trailOf(api, run)).toContain('cancel test-operate wrong list');
  });

  test('cancels a paused run whose last answers come in meanwhile', async () => {
    const { api, harness, run } = await openRunUnderWay('p', 3_000);
    const way = await openRelay(api.url, async ({ method, url }) => {
      const { deleted } = (await harness.onlyRun()).counts;
      if (method === 'POST' && url!.endsWith('/cancel'))
        await harness.runIs('smaller', ({ counts }) => counts.deleted > deleted);
      return false;
    });
    const env = { ...(await overServer(api, 'operate')), EXPUNGE_SERVER: way };
    expect(await harness.expunge(['pause', run], { env })).toMatchObject({ code: 0 });
    const done = await harness.expunge(['cancel', run, '--yes'], { env });
    expect(done, done.stderr).toMatchObject({ code: 0, stderr: expect.stringContaining(`Run ${run} is cancelled.`) });
  });

  test('is refused for a token that may only read, with exit code 5, and changes nothing', async () => {
    const api = await openApi(onTestFinished);
    const { harness } = api;
    const run = await liveRun(harness, 'r-00001');
    const env = await overServer(api, 'read');
    const before = [await api.redis.hgetall(keys.run(run)), await trailOf(api, run)];
    for (const [command = '', ...more] of [['pause'], ['cancel', '--yes'], ['rate', '1/s'], ['resume']]) {
      const done = await harness.expunge([command, run, ...more], { env });
      expect(done).toMatchObject({
        code: 5,
        stdout: '',
        stderr: expect.stringContaining('has the role "read", but this request requires "operate"'),
      });
    }
    expect([await api.redis.hgetall(keys.run(run)), await trailOf(api, run)]).toEqual(before);
  });

  test('that fails after the server has taken it ends with what went wrong, and never says that it is done', async () => {
    const api = await openApi(onTestFinished);
    const { harness, redis, server } = api;
    const run = await liveRun(harness, 'r-00003');
    const env = await overServer(api, 'operate');
    const way = await openRelay(api.url, ({ method }) => {
      if (method === 'POST') void redis.call('CLIENT', 'PAUSE', '600000', 'WRITE');
      return false;
    });
    const ended = harness.expunge(['pause', run], { env: { ...env, EXPUNGE_SERVER: way } });
    await until('it has failed', () => server.stderr.includes('an action was not carried out'));
    await redis.call('CLIENT', 'UNPAUSE');
    const done = await ended;
    expect(done).toMatchObject({ code: 2, stdout: '', stderr: expect.stringContaining('Redis') });
    expect(done.stderr).not.toContain('Paused run');
  });

  test('that was carried out ends, though the run is something else by then', async () => {
    const api = await openApi(onTestFinished);
    const { harness } = api;
    const run = await liveRun(harness, 'r-00004');
    const opposite: Record<string, string> = { pause: 'resume', resume: 'pause' };
    const way = await openRelay(
      api.url,
      () => false,
      async ({ method, url }) => {
        if (method !== 'POST') return false;
        const { code } = await harness.expunge([opposite[url!.split('/').at(-1)!]!, run]);
        return code === 0;
      },
    );
    const env = { ...(await overServer(api, 'operate')), EXPUNGE_SERVER: way };
    const paused = await harness.expunge(['pause', run], { env });
    expect(paused).toMatchObject({ code: 0, stderr: expect.stringContaining(`Run ${run} was paused, but is running`) });
    await harness.expunge(['pause', run]);
    const resumed = await harness.expunge(['resume', run], { env });
    expect(resumed).toMatchObject({ code: 0, stderr: expect.stringContaining('was resumed, but is paused by now') });
  });

  test('to detach a run ends once the run is detached, not while it is merely running', async () => {
    const api = await openApi(onTestFinished);
    const { harness, redis } = api;
    const run = await liveRun(harness, 'r-00005');
    const detach = (isDetached: number) => redis.hset(keys.run(run), 'detached', isDetached);
    let looks = 0;
    const way = await openRelay(
      api.url,
      async ({ url }) => {
        if (looks > 0 && url!.endsWith('/record') && ++looks === 4) await detach(1);
        return false;
      },
      async ({ method }) => {
        if (method !== 'POST') return false;
        looks = 1;
        return (await detach(0)) >= 0; // the server has not got so far
      },
    );
    const env = { ...(await overServer(api, 'operate')), EXPUNGE_SERVER: way };
    const done = await harness.expunge(['resume', run, '--detach'], { env });
    expect(done.code, done.stderr).toBe(0);
    expect(looks).toBeGreaterThanOrEqual(4);
  });

  test('is not given without a confirmation, nor for a token that nobody made', async () => {
    const api = await openApi(onTestFinished);
    const { harness } = api;
    const run = await liveRun(harness, 'r-00002');
    const env = await overServer(api, 'operate');
    expect(await harness.expunge(['cancel', run], { env })).toMatchObject({ code: 2 });
    const unknown = { ...env, EXPUNGE_SERVER_TOKEN: 'nobody-made-this-token' };
    const done = await harness.expunge(['cancel', run, '--yes'], { env: unknown });
    expect(done).toMatchObject({ code: 5, stderr: expect.stringContaining('EXPUNGE_SERVER_TOKEN') });
    expect((await harness.onlyRun()).state).toBe('running');
  });
});

describe('status --watch with --server', () => {
  test('waits for a server that is away, and shows how the run ended', async () => {
    const api = await openApi(onTestFinished);
    const { harness } = api;
    const run = await liveRun(harness, 'a-00001');
    const cancelled: Promise<unknown>[] = [];
    const nthOf = countRecords();
    const url = await openRelay(api.url, (asked) => {
      const nth = nthOf(asked);
      if (nth === 3) cancelled.push(harness.expunge(['cancel', run, '--yes']));
      return nth === 2 || nth === 3;
    });
    const env = { ...(await overServer(api, 'read')), EXPUNGE_SERVER: url };
    const done = await harness.expunge(['status', run, '--watch', '--json'], { env });
    expect(done.code, done.stderr).toBe(3);
    expect(JSON.parse(done.stdout)).toMatchObject({ run, state: 'cancelled', not_attempted: 1 });
    expect(cancelled).toHaveLength(1);
  });

  test('ends when its token is revoked', async () => {
    const api = await openApi(onTestFinished);
    const { harness } = api;
    const run = await liveRun(harness, 'a-00002');
    const env = await overServer(api, 'read');
    const nthOf = countRecords();
    const url = await openRelay(api.url, (asked) => {
      if (nthOf(asked) === 2) void harness.expunge(['token', 'revoke', 'test-read']);
      return false;
    });
    const done = await harness.expunge(['status', run, '--watch'], { env: { ...env, EXPUNGE_SERVER: url } });
    expect(done).toMatchObject({ code: 5, stderr: expect.stringContaining('EXPUNGE_SERVER_TOKEN') });
  });
});
