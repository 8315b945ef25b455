import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { addToken } from '../../src/api/token-store.ts';
import { type Harness, openHarness } from '../support/harness.ts';
import { openOwnRedis } from '../support/own-redis.ts';
import { until } from '../support/processes.ts';

// Text that somebody else wrote, in every place that takes text, and all that shows it: nothing of it steers a terminal.

/** A title for the terminal, its bell, blinking, an erased screen, the same in one character, a turned direction, and what leaves no mark. */
const poison = 'a\u001b]0;owned\u0007\u001b[5mb\u001b[2J\u009b2Jc\u202ed\u200b\ufeffe\u2066f';
const shown = 'a\\u001b]0;owned\\u0007\\u001b[5mb\\u001b[2J\\u009b2Jc\\u202ed\\u200b\\ufeffe\\u2066f';

/** What no stored name or reason holds, what no line does, and what no terminal gets beside our own styles and the moves of the cursor. */
const unseen = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u;
const unseenInLine = /(?!\n)[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u;
const steering = /\u0007|\u001b\]|\u001b\[5m|[\u009b\u202e\u200b\ufeff\u2066]/;

const tasks: (() => Promise<void>)[] = [];
const names: Record<string, string> = { POISON: poison };
let harness: Harness;
let env: Record<string, string> = {};

/** Does a line as somebody with that name. Words in capitals stand for what the line cannot hold. */
async function does(line: string, typed?: [afterText: string, text: string]) {
  const words = line.split(' ').map((word) => names[word] ?? word);
  return harness.expunge(words, { env, ...(typed && { typed }) });
}

beforeAll(async () => {
  const own = await openOwnRedis((task) => tasks.push(task));
  harness = await openHarness((task) => tasks.push(task), {}, own);
  env = {
    EXPUNGE_USER: poison,
    EXPUNGE_BASE_URL: await serveAnswers(),
    EXPUNGE_ACCOUNT: poison,
    EXPUNGE_RETRY_DELAYS: '1ms,1ms,1ms,1ms,1ms',
    EXPUNGE_CONFIG: harness.file(
      'config.json',
      JSON.stringify({ sources: { all: { glob: `${harness.folder}/*.csv`, settle: '1ms' } } }),
    ),
  };
  names.FILE = harness.file(`${poison}.csv`, 'id\u200b,x\na\u202eb,1\nb\u001b[2J,2\nc,3\n');
  names.COLUMN = 'id\u200b';
  names.RUN = await submit('run FILE --resource views --column COLUMN --allow-invisible --yes');
  names.OTHER = await submit('run FILE --resource annotations --column COLUMN --allow-invisible --yes --detach');
  for (const line of [
    'pause OTHER --reason POISON',
    'stop-all --reason POISON',
    'target limit 5/s,5/day --reason POISON',
    'target grace 1min --reason POISON',
    'schedule add nightly --cron @daily --from all --resource views --column COLUMN --max-deletes 5 --reason POISON',
    'schedule pause nightly --reason POISON',
    'token add ana',
  ])
    expect(await does(line), line).toMatchObject({ code: 0 });
  await pauseOverHttp();
});

afterAll(async () => {
  for (const task of tasks.reverse()) await task();
});

/** An API that refuses everything in poisonous words. */
async function serveAnswers(): Promise<string> {
  const server = createServer((request, response) => {
    request.resume();
    response.writeHead(409, { 'retry-after': 'soon \u009b2J', 'x-request-id': 'r\u009b5m' }).end(poison);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  tasks.push(async () => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

async function submit(line: string): Promise<string> {
  const { stdout, stderr } = await does(`${line} --reason POISON --json`);
  return /\d{8}-\d{4}-\w{4}/.exec(stdout)?.[0] ?? expect.fail(stderr);
}

/** Somebody with a token of the role operate. */
async function pauseOverHttp(): Promise<void> {
  const server = harness.start(['dashboard', '--port', '0'], env);
  const url = await until('it listens', () => /http:\/\/[\d.]+:\d+/.exec(server.stdout + server.stderr)?.[0]);
  const token = await addToken(harness.redis, {
    name: 'o',
    role: 'operate',
    reach: null,
    at: Date.now(),
    who: 'x',
    expiresAt: 0,
  });
  const answer = await fetch(`${url}/api/v1/runs/${names.OTHER}/pause`, {
    method: 'POST',
    body: JSON.stringify({ reason: `over HTTP ${poison}` }),
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
  });
  expect(answer.status, await answer.text()).toBe(200);
  server.signal('SIGTERM');
  await server.ended;
}

/** The texts of people in all keys: fields of hashes, entries of lists. `change` is given each one, and what stores another in its place. */
async function eachStored(change: (text: string, store: (other: string) => Promise<unknown>) => Promise<void> | void) {
  const { redis } = harness;
  const ofPeople = /who|reason|by$|note|pauses|approver|stop|limit/i;
  for (const key of await redis.keys('expunge*')) {
    const type = await redis.type(key);
    const list = type === 'list' && /audit/.test(key) ? await redis.lrange(key, 0, -1) : [];
    for (const [n, text] of list.entries()) await change(text, (other) => redis.lset(key, n, other));
    const hash = type === 'hash' ? await redis.hgetall(key) : {};
    for (const [field, text] of Object.entries(hash))
      if (ofPeople.test(field)) await change(text, (other) => redis.hset(key, field, other));
  }
}

/** The strings in JSON, or the text itself. */
function stringsIn(text: string): string[] {
  if (!/^[[{]/.test(text)) return [text];
  const found: string[] = [];
  JSON.parse(text, (_, value) => {
    if (typeof value === 'string') found.push(value);
    return value;
  });
  return found;
}

describe('a name and a reason', () => {
  it('are stored without control and format characters', async () => {
    const texts: string[] = [];
    await eachStored((text) => void texts.push(...stringsIn(text)));
    expect(texts.filter((text) => text === shown).length).toBeGreaterThan(10);
    expect(texts).toContain(`over HTTP ${shown}`);
    expect(texts.filter((text) => unseen.test(text))).toEqual([]);
  });
});

describe('what an older version has stored', () => {
  const inJson = (text: string) => JSON.stringify(text).slice(1, -1);
  beforeAll(async () => {
    let changed = 0;
    await eachStored(async (text, store) => {
      const older = /^[[{]/.test(text)
        ? text.replaceAll(inJson(shown), inJson(poison))
        : text.replaceAll(shown, poison);
      if (older !== text) await store(older);
      if (older !== text) changed++;
    });
    expect(changed).toBeGreaterThan(10);
  });

  it.each([
    ['runs', 0],
    ['status', 0],
    ['status RUN', 0],
    ['status RUN --audit', 0],
    ['status OTHER', 0],
    ['status OTHER --audit', 0],
    ['explain views c', 0],
    ['explain annotations c', 0],
    ['report RUN --verify', 0],
    ['retry RUN --dry-run', 0],
    ['schedule list', 0],
    ['schedule preview nightly', 0],
    ['schedule run nightly --dry-run', 0],
    ['token list', 0],
    ['config show', 0],
    ['run FILE --resource views --column COLUMN --allow-invisible --dry-run', 3],
    ['run FILE --resource views --column COLUMN --allow-invisible', 2],
    ['run FILE --resource views --column POISON --yes', 2],
    ['run POISON --resource views --yes', 2],
    ['run FILE --resource POISON --yes', 2],
    ['status POISON', 2],
    ['schedule list POISON', 2],
    ['runs remove OTHER --yes', 2],
    ['--POISON', 2],
    ['POISON', 2],
    ['help POISON', 2],
    ['target acknowledge', 0],
    ['pause OTHER', 0],
    ['rate OTHER 5/s', 0],
    ['schedule resume nightly', 0],
    ['target limit none', 0],
    ['target grace none', 0],
    ['start-all', 0],
    ['resume OTHER --detach', 0],
    ['cancel OTHER --yes', 0],
  ])('is shown by expunge %s as codes', async (line, code) => {
    const done = await does(line);
    const said = done.stdout + done.stderr;
    expect([done.code, said]).toEqual([code, expect.stringMatching(/./)]);
    expect(said.split('\n').filter((each) => unseenInLine.test(each))).toEqual([]);
  });

  it.each([
    ['run FILE --resource views --column COLUMN --allow-invisible', ['Type ', '\r']],
    ['retry RUN --yes', ['never', '']], // the panel
  ] as [string, [string, string]][])('is shown by expunge %s on a terminal as codes, too', async (line, typed) => {
    const { stderr } = await does(line, typed);
    expect(stderr).toMatch(/\\u202e|\\u001b/);
    expect(stderr.split('\n').filter((each) => steering.test(each))).toEqual([]);
  });
});

describe('what is for programs', () => {
  it('has each character as it is: JSON escapes it, a report in a pipe holds it', async () => {
    const appearance = JSON.parse((await does('explain views a\u202eb --json')).stdout.split('\n')[0]!);
    expect(appearance.file).toContain(`${poison}.csv`);
    expect((await does('explain views a\u202eb --json')).stdout).not.toMatch(unseenInLine);
    expect((await does('report RUN')).stdout).toContain(',views,a\u202eb,');
  });
});
