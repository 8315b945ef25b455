import { once } from 'node:events';
import { type AddressInfo, connect, createServer } from 'node:net';
import { pipeline } from 'node:stream/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, onTestFinished, test } from 'vitest';
import { noteTarget } from '../../../src/ledger/known-targets.ts';
import { openApi } from '../../support/api.ts';
import { makeIds } from '../../support/ids.ts';
import { until } from '../../support/processes.ts';

const chunks = 100;
const slowMs = 50;

/** A way to the Redis on this socket, slow for what a search reads; `reads` counts the chunks that were asked for. */
async function openSlowWay(path: string) {
  const way = { url: '', reads: 0 };
  const server = createServer((client) => {
    const upstream = connect(path);
    async function* slowed() {
      for await (const bytes of client as AsyncIterable<Buffer>) {
        const read = bytes.toString('latin1').match(/:m:\d/g)?.length ?? 0;
        way.reads += read;
        if (read > 0) await sleep(slowMs);
        yield bytes;
      }
    }
    pipeline(slowed, upstream, client).catch(() => {}); // either end may leave
  });
  onTestFinished(() => void server.close());
  await once(server.listen(0, '127.0.0.1'), 'listening');
  way.url = `redis://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return way;
}

/** A dashboard whose searches take a while, and a run of some chunks that has not the id which they look for. */
async function openSearch() {
  const api = await openApi(onTestFinished);
  const { harness, redis } = api;
  await noteTarget(redis, harness.target, Date.now());
  const list = harness.list(makeIds('s', chunks * 500));
  const made = await harness.run([list, '--resource', 'views', '--detach', '--yes', '--rate', '1/h']);
  expect(made.code, made.stderr).toBe(0);
  const way = await openSlowWay((redis as unknown as { options: { path: string } }).options.path);
  const server = harness.start(['dashboard', '--port', '0'], { REDIS_URL: way.url });
  const url = await until('it listens', () => /http:\/\/[\d.]+:\d+/.exec(server.stdout + server.stderr)?.[0]);
  const headers = { authorization: `Bearer ${await api.token('read')}` };
  const path = `${url}/api/v1/explain/views/nowhere?target=${harness.target.fp}`;
  const search = async (signal: AbortSignal = AbortSignal.timeout(60_000)) => {
    const answer = await fetch(path, { headers, signal });
    return {
      status: answer.status,
      retryAfter: Number(answer.headers.get('retry-after')),
      body: (await answer.json()) as { code?: string },
    };
  };
  const clients = async () => Number(/connected_clients:(\d+)/.exec(await redis.info('clients'))![1]);
  return { search, way, clients };
}

describe('searches for an id', () => {
  test('are three at once, on the connection of the server; others are told when to come again', async () => {
    const { search, clients } = await openSearch();
    const before = await clients();
    const all = Array.from({ length: 8 }, () => search());
    const refused = await Promise.any(all.map(async (one) => ((await one).status === 503 ? one : Promise.reject())));
    expect(await clients()).toBe(before);
    expect(refused.body).toMatchObject({ code: 'unavailable', detail: 'there are 3 searches already' });
    expect(refused.retryAfter).toBeGreaterThan(0);
    const statuses = (await Promise.all(all)).map(({ status }) => status);
    expect(statuses.toSorted()).toEqual([404, 404, 404, 503, 503, 503, 503, 503]);
  });

  test('end once nobody waits for them, and make room for others', async () => {
    const { search, way } = await openSearch();
    const stop = new AbortController();
    const left = Array.from({ length: 3 }, () => search(stop.signal).catch(() => 'left'));
    await until('they read', () => way.reads > 0);
    stop.abort();
    expect(await Promise.all(left)).toEqual(['left', 'left', 'left']);
    const found = await until('there is room', async () => {
      const { status, body } = await search();
      return status === 503 ? null : { status, code: body.code };
    });
    expect(found).toEqual({ status: 404, code: 'not_found' });
    expect(way.reads).toBeLessThan(2 * chunks); // one of them to the end, and the begin of three
  });
});
