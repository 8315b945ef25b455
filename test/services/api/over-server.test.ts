import { readFileSync } from 'node:fs';
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { keys } from '../../../src/redis/keys.ts';
import { type Api, openApi, overServer } from '../../support/api.ts';
import { summaryIn } from '../../support/command.ts';
import { atEndOfTests } from '../../support/harness.ts';
import { annotations, makeIds } from '../../support/ids.ts';
import { liveRun } from '../../support/live-run.ts';
import { until } from '../../support/processes.ts';
import { listen, openRowsWay } from '../../support/rows-way.ts';

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

let api: Api;
let ended: string; // a run that has ended, with rows that were rejected and one that failed
const atEnd = atEndOfTests();

beforeAll(async () => {
  const ids = makeIds('s', 20);
  const broken = (_: string, id: string) => (id === ids[3] ? ('status-422' as const) : null);
  api = await openApi(atEnd, { objects: annotations(ids), faults: { script: broken } });
  const list = api.harness.file('old.csv', `id\n${ids.join('\n')}\n"two\nlines"\n${ids[0]}\n`);
  ended = summaryIn(await api.harness.run([list, '--resource', 'annotations', '--yes', '--json'])).run;
});

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

describe('a command with --server', () => {
  test.for([
    ['--manifest', 'manifest.json'],
    ['--join', 'old.csv'],
  ])('makes nothing of a part of the rows, and leaves the file as it was: %s', async (options) => {
    const { harness, url } = api;
    const cut = (answer: ServerResponse, text: string) =>
      answer.end(text.slice(0, text.lastIndexOf('\n', text.length - 2) + 1));
    const env = { ...(await overServer(api, 'read')), EXPUNGE_SERVER: await openRowsWay(url, cut, onTestFinished) };
    harness.file('out', 'as it was');
    const done = await harness.expunge(['report', ended, ...options, '-o', 'out'], { env });
    expect([done.code, done.stdout, done.stderr]).toEqual([
      ...[1, '', expect.stringContaining(`the server sent 21 of 22 rows of run ${ended}`)],
    ]);
    expect(readFileSync(`${harness.folder}/out`, 'utf8')).toBe('as it was');
  });

  test('takes the page of a proxy for no rows', async () => {
    const { harness, url } = api;
    const end = (answer: ServerResponse) => answer.writeHead(200, { 'content-type': 'text/html' }).end('<p>\n');
    const way = await openRowsWay(url, end, onTestFinished);
    const env = { ...(await overServer(api, 'read')), EXPUNGE_SERVER: way };
    for (const option of ['--format=ndjson', '--spreadsheet-safe']) {
      const done = await harness.expunge(['report', ended, option], { env });
      expect(done).toMatchObject({ code: 2, stdout: '', stderr: expect.stringContaining('it answers 200, text/html') });
    }
  });
});

describe('an action with --server', () => {
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
    const { api, harness, run } = await openRunUnderWay('p', 1_000);
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
});

describe('status --watch with --server', () => {
  test('waits for a server that is away, and shows how the run ended', async () => {
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
