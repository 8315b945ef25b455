import { once } from 'node:events';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, test } from 'vitest';
import type { RedisClient } from '../../src/redis/client.ts';
import { type AtEnd, type Harness, openHarness } from '../support/harness.ts';
import { type OwnRedis, openOwnRedis } from '../support/own-redis.ts';
import { type Running, until } from '../support/processes.ts';
import { openSentinelSet } from '../support/sentinel.ts';

// Canaries in every place where a secret goes in, and a look at every place where words come out.

const canaries = {
  token: 'canary-token-4711',
  secret: 'canary-secret-4712',
  password: 'canary-password-4713',
  sentinel: 'canary-sentinel-4714',
};
const known = Object.values(canaries);

type Answer = (response: ServerResponse, echo: string) => void;

/** An API that throws back at us all it was sent. */
const answers: Record<string, Answer> = {
  'a refusal': (response, echo) => response.writeHead(403, { 'x-request-id': canaries.token }).end(echo),
  'a refused token': (response, echo) => response.writeHead(401, { 'www-authenticate': 'Bearer' }).end(echo),
  'a redirect': (response, echo) => response.writeHead(302, { location: `/${canaries.token}` }).end(echo),
  'a page': (response, echo) => response.writeHead(200, { 'content-type': 'text/html' }).end(echo),
  'a wait': (response, echo) => response.writeHead(429, { 'retry-after': canaries.token }).end(echo),
  trouble: (response, echo) => response.writeHead(503, { 'retry-after': '1' }).end(echo),
  'a broken header': (response) => response.socket!.end(`HTTP/1.1 204 ${canaries.token}\r\n${canaries.token}\r\n\r\n`),
  nothing: (response) => response.socket!.destroy(),
};

async function serve(answer: Answer, atEnd: (task: () => void) => void): Promise<string> {
  const echo = ({ headers }: IncomingMessage) => JSON.stringify({ error: headers.authorization, headers });
  const server = createServer((request, response) => answer(response, echo(request)));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  atEnd(() => {
    server.close();
    server.closeAllConnections();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** Of all tests that don't break it. */
let shared: OwnRedis;
const atEndOfFile: (() => Promise<void>)[] = [];
beforeAll(async () => {
  shared = await openOwnRedis((task) => void atEndOfFile.push(task), canaries.password);
});
afterAll(async () => {
  for (const task of atEndOfFile) await task();
});

async function openCanaryScene(atEnd: AtEnd, redis = shared) {
  const client = { id: 'abc', secret: canaries.secret };
  const harness = await openHarness(atEnd, { client, token: canaries.token });
  const env = { REDIS_URL: redis.url, EXPUNGE_MAX_CONCURRENCY: '4', EXPUNGE_RETRY_DELAYS: '1ms,1ms,1ms,1ms,1ms' };
  return { harness, redis, env };
}

const list = (harness: Harness) => harness.list(Array.from({ length: 40 }, (_, n) => `c-${n}`));

/** Every place where one of the canaries can be read, as `where: …`. */
async function findCanaries(harness: Harness, redis: OwnRedis, processes: Running[]): Promise<string[]> {
  const places: [string, string][] = processes.flatMap(({ stdout, stderr }) => [
    ['stdout', stdout],
    ['stderr', stderr],
  ]);
  for (const file of filesOf(harness.stateDir)) places.push([file, readFileSync(file, 'latin1')]);
  places.push(['Redis', await everythingIn(redis.connect())]);
  return places.filter(([, text]) => known.some((canary) => text.includes(canary))).map(([where]) => where);
}

function filesOf(folder: string): string[] {
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true });
  return entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
}

async function everythingIn(redis: RedisClient): Promise<string> {
  const parts: unknown[] = [await redis.client('LIST')];
  for (const key of await redis.keys('*')) {
    const readers: Record<string, () => Promise<unknown>> = {
      string: () => redis.get(key),
      hash: () => redis.hgetall(key),
      list: () => redis.lrange(key, 0, -1),
      set: () => redis.smembers(key),
      zset: () => redis.zrange(key, '0', '-1'),
      stream: () => redis.xrange(key, '-', '+'),
    };
    const type = await redis.type(key);
    if (type !== 'none') parts.push(key, await readers[type]!()); // none: it has expired meanwhile
  }
  return JSON.stringify(parts);
}

function runIn({ stdout }: Running): string {
  return JSON.parse(stdout.trimEnd().split('\n').at(-1)!).run;
}

function argumentsOf({ pid }: Running): string {
  return readFileSync(`/proc/${pid}/cmdline`, 'latin1');
}

/** @invariant nothing-stays */
describe.concurrent('no secret is told', () => {
  test.for(Object.keys(answers))('when the API answers %s', async (name, { expect, onTestFinished }) => {
    const { harness, redis, env } = await openCanaryScene(onTestFinished);
    const base = await serve(answers[name]!, onTestFinished);
    const args = ['run', list(harness), '--resource', 'annotations', '--yes', '--json', '--base-url', base];
    const running = harness.start(args, {
      ...env,
      EXPUNGE_UNREACHABLE_TIMEOUT_MS: '300',
      EXPUNGE_TOKEN: canaries.token,
    });
    await until('something was sent', () => running.isOver || running.stderr.includes('· deleted'));
    if (!running.isOver) running.signal('SIGTERM');
    await running.ended;
    expect(await findCanaries(harness, redis, [running])).toEqual([]);
  });

  test.for([{ error: 'invalid_client', status: 401 }, { status: 503 }, { status: 302 }])(
    'when the token endpoint answers %j',
    async (tokenFaults, { expect, onTestFinished }) => {
      const { harness, redis, env } = await openCanaryScene(onTestFinished);
      harness.sandbox.tokenFaults = tokenFaults;
      const endpoint = ['--token-url', harness.sandbox.tokenUrl, '--client-id', 'abc'];
      const credentials = { ...env, EXPUNGE_TOKEN: undefined, EXPUNGE_CLIENT_SECRET: canaries.secret };
      const running = harness.start(['worker', '--log-level', 'debug', ...endpoint], credentials);
      const detached = harness.start(
        ['run', list(harness), '--resource', 'annotations', '--yes', '--detach', ...endpoint],
        credentials,
      );
      await detached.ended;
      await until('it was asked', () => harness.sandbox.seen.length > 0);
      if (!running.isOver) running.signal('SIGTERM');
      await running.ended;
      expect(await findCanaries(harness, redis, [running, detached])).toEqual([]);
    },
  );

  test('where it was an argument, which the run keeps and shows as the command to go on with', async ({
    expect,
    onTestFinished,
  }) => {
    const { harness, redis, env } = await openCanaryScene(onTestFinished);
    const command = ['--token-command', `echo ${canaries.token}`];
    const proxy = ['--proxy', `http://ana:${canaries.secret}@127.0.0.1:9`];
    const args = [...command, ...proxy, '--resource', 'annotations', '--yes'];
    const halted = harness.start(['run', list(harness), ...args, '--json'], {
      ...env,
      EXPUNGE_UNREACHABLE_TIMEOUT_MS: '0',
    });
    await halted.ended;
    const status = harness.start(['status', runIn(halted)], env);
    await status.ended;
    expect(halted.stderr).toContain('Resume with the same command: ');
    expect(halted.stderr).toContain("--token-command '***' --proxy 'http://***@127.0.0.1:9'");
    expect(await findCanaries(harness, redis, [halted, status])).toEqual([]);
  });

  test('where receivers of results and events throw back what they were sent', async ({ expect, onTestFinished }) => {
    const { harness, redis, env } = await openCanaryScene(onTestFinished);
    const base = await serve(answers['a refusal']!, onTestFinished);
    const receivers = {
      EXPUNGE_RESULTS: `${base}/results?sig=${canaries.secret}`,
      EXPUNGE_RESULTS_HEADERS: `Authorization: Bearer ${canaries.secret}`,
      EXPUNGE_NOTIFY: `${base}/${canaries.secret}`,
      EXPUNGE_NOTIFY_SECRET: `whsec_${Buffer.from(`${canaries.secret}-${canaries.secret}`).toString('base64')}`,
    };
    const worker = harness.start(['worker', '--log-level', 'debug'], { ...env, ...receivers });
    const args = [list(harness), '--resource', 'annotations', '--yes', '--json', '--detach', '--expect-absent'];
    const detached = harness.start(['run', ...args], env);
    await detached.ended;
    await until('an event was refused', () => worker.stderr.includes('an event was not posted'));
    await until('the results were refused', () => worker.stderr.includes('the results of a run were not delivered'));
    const shown = harness.start(['config', 'show'], { ...env, ...receivers });
    const status = harness.start(['status', runIn(detached)], env);
    await Promise.all([shown.ended, status.ended]);
    expect(status.stdout).toContain('results: not delivered yet: PUT');
    worker.signal('SIGTERM');
    await worker.ended;
    expect(await findCanaries(harness, redis, [worker, detached, shown, status])).toEqual([]);
    expect(`${worker.stderr}${shown.stdout}`).not.toContain('whsec_');
  });

  test('when Redis refuses its password, or is killed in the middle', async ({ expect, onTestFinished }) => {
    const own = await openOwnRedis(onTestFinished, canaries.password);
    const { harness, redis, env } = await openCanaryScene(onTestFinished, own);
    const wrong = { ...env, REDIS_URL: redis.url.replace('4713', '4713-wrong') };
    const refused = harness.start(['runs'], wrong);
    expect(await refused.ended).toMatchObject({ code: 6 });
    const worker = harness.spawn(['worker', '--log-level', 'debug'], { ...env, EXPUNGE_TOKEN: canaries.token });
    await until('the worker listens', () => worker.stderr.includes('"ready"'));
    if (process.platform === 'linux') expect(argumentsOf(worker)).not.toContain('canary');
    const stored = await everythingIn(redis.connect());
    process.kill(redis.pid, 'SIGKILL');
    await until('the worker has noticed', () => worker.stderr.includes('got an error from Redis'));
    worker.signal('SIGTERM');
    await worker.ended;
    const said = [refused, worker].map(({ stdout, stderr }) => stdout + stderr).join('\n');
    expect(known.filter((canary) => (said + stored).includes(canary))).toEqual([]);
  });

  test('when the login comes from files, and a Sentinel set loses its primary', async ({ expect, onTestFinished }) => {
    const { password, sentinel: sentinelPassword } = canaries;
    const set = await openSentinelSet(onTestFinished, { password, sentinelPassword });
    const folder = set.sentinels[0]!.folder;
    const files = {
      EXPUNGE_REDIS_PASSWORD_FILE: writeSecret(folder, 'password', password),
      EXPUNGE_SENTINEL_PASSWORD_FILE: writeSecret(folder, 'sentinel', sentinelPassword),
    };
    const url = set.url.replace(/\/\/[^/]*@/, '//');
    const harness = await openHarness(onTestFinished, { token: canaries.token }, { url, env: files });
    const shown = await Promise.all(
      [['config', 'show'], ['check'], ['runs']].map((args) => {
        const running = harness.start(args);
        return running.ended.then(() => running);
      }),
    );
    const wrong = harness.start(['runs'], { EXPUNGE_REDIS_PASSWORD_FILE: files.EXPUNGE_SENTINEL_PASSWORD_FILE });
    const worker = await harness.worker(['--log-level', 'debug']);
    (await set.primary()).signal('SIGKILL');
    set.sentinels[1]!.signal('SIGKILL');
    await until('the worker has noticed', () => worker.stderr.includes('got an error from Redis'));
    worker.signal('SIGTERM');
    await Promise.all([worker.ended, wrong.ended]);
    const said = [...shown, wrong, worker].map(({ stdout, stderr }) => stdout + stderr).join('\n');
    expect(known.filter((canary) => said.includes(canary))).toEqual([]);
    expect(worker.stderr.split('\n').filter((line) => line !== '' && !line.startsWith('{'))).toEqual([]);
  });
});

function writeSecret(folder: string, name: string, secret: string): string {
  const path = join(folder, name);
  writeFileSync(path, `${secret}\n`, { mode: 0o600 });
  return path;
}
