import { describe, expect, onTestFinished, test } from 'vitest';
import { addToken } from '../../../src/api/token-store.ts';
import { parseInfo } from '../../../src/redis/boot-check.ts';
import { type Api, openApi } from '../../support/api.ts';
import { liveRun } from '../../support/live-run.ts';
import { writeManyRuns } from '../../support/many-runs.ts';
import { until } from '../../support/processes.ts';
import { sized } from '../../support/size.ts';

type Seen = { id: string; event: string; data: string };

/** Follows a stream; `events` grows. */
async function follow({ url, token }: Api, path: string, headers: Record<string, string> = {}) {
  const stop = new AbortController();
  const authorization = headers.authorization ?? `Bearer ${await token('read')}`;
  const answer = await fetch(`${url}/api/v1${path}`, {
    headers: { ...headers, authorization },
    signal: stop.signal,
  });
  const events: Seen[] = [];
  const reading = (async () => {
    let text = '';
    for await (const chunk of answer.body!.pipeThrough(new TextDecoderStream())) {
      text += chunk;
      const parts = text.split('\n\n');
      text = parts.pop()!;
      for (const part of parts) {
        const field = (name: string) => new RegExp(`^${name}: (.*)$`, 'm').exec(part)?.[1] ?? '';
        events.push({ id: field('id'), event: field('event'), data: field('data') });
      }
    }
  })().catch(() => {}); // it was stopped
  const close = async () => {
    stop.abort();
    await reading;
  };
  onTestFinished(close);
  return { status: answer.status, headers: answer.headers, events, close };
}

/** So many viewers of everything, ten for each of as many tokens as it takes. */
async function followAsMany(api: Api, count: number) {
  const callers = Array.from({ length: Math.ceil(count / 10) }, (_, n) => ({
    name: `viewer-${n}`,
    role: 'read' as const,
    reach: null,
  }));
  const tokens = await Promise.all(
    callers.map((caller) => addToken(api.redis, { ...caller, at: 0, who: 'test', expiresAt: 0 })),
  );
  const places = Array.from({ length: count }, (_, n) => tokens[Math.floor(n / 10)]!);
  return Promise.all(places.map((token) => follow(api, '/events', { authorization: `Bearer ${token}` })));
}

/** How often the registry of runs was read so far. */
async function reads({ redis }: Api): Promise<number> {
  const stats = String(await redis.info('commandstats'));
  return Number(/cmdstat_zrevrange:calls=(\d+)/.exec(stats)?.[1] ?? 0);
}

describe('the stream of everything', () => {
  /** @invariant roles-and-targets */
  test('costs Redis the same for fifty viewers as for one', async () => {
    const api = await openApi(onTestFinished);
    const viewers = await followAsMany(api, 50);
    await until('all have seen three', () => viewers.every(({ events }) => events.length >= 3));
    const [before, seen] = [await reads(api), viewers[0]!.events.length];
    await until('all have seen three more', () => viewers.every(({ events }) => events.length >= seen + 3));
    const editions = Math.max(...viewers.map(({ events }) => events.length)) - seen;
    expect((await reads(api)) - before).toBeLessThanOrEqual(editions + 2);
    const texts = viewers.map(({ events }) => events.at(seen)!.data);
    expect(new Set(texts).size).toBeLessThanOrEqual(2);
  });

  test('shows a run as it changes, and goes on after a drop with what is new', async () => {
    const api = await openApi(onTestFinished);
    const run = await liveRun(api.harness, 'l-000001');
    const first = await follow(api, '/events');
    expect(first.headers.get('content-type')).toBe('text/event-stream');
    const snapshot = await until('a snapshot came', () => first.events[0]);
    expect(snapshot.event).toBe('snapshot');
    expect(JSON.parse(snapshot.data).runs.active).toMatchObject([{ run, state: 'running', fp: api.harness.target.fp }]);
    await first.close();
    await api.call('operate', `/runs/${run}/pause`, { method: 'POST', body: { reason: 'look' } });
    const again = await follow(api, '/events', { 'last-event-id': first.events.at(-1)!.id });
    const next = await until('another one came', () => again.events[0]);
    expect(Number(next.id)).toBeGreaterThan(Number(first.events.at(-1)!.id));
    await until('it is paused', () => JSON.parse(again.events.at(-1)!.data).runs.active[0].state === 'paused');
  });

  test('of a run shows what it does in words, with its history, and there is none of no run', async () => {
    const api = await openApi(onTestFinished);
    const run = await liveRun(api.harness, 'l-000002');
    const { events } = await follow(api, `/runs/${run}/events`);
    const seen = await until('it is shown', () => events[0]);
    const { run: shown, history } = JSON.parse(seen.data);
    expect(seen.event).toBe('run');
    expect(shown).toMatchObject({
      run,
      sentence: expect.stringContaining('No worker'),
      pending: 1,
      seconds_left: null,
    });
    expect(history).toMatchObject({ points: expect.any(Array), events: expect.any(Array) });
    expect((await follow(api, '/runs/none/events')).status).toBe(404);
  });

  test('leaves room for probes and requests when there are as many as there may be', async () => {
    const api = await openApi(onTestFinished, { args: ['worker', '--http', '0'] });
    const viewers = await followAsMany(api, 110);
    const statuses = viewers.map(({ status }) => status);
    expect([statuses.filter((status) => status === 200).length, new Set(statuses)]).toEqual([100, new Set([200, 503])]);
    for (const probe of ['//healthz', '//readyz', '//metrics']) expect((await api.call(null, probe)).status).toBe(200);
    expect((await api.call('read', '/overview')).status).toBe(200);
    await Promise.all(viewers.map(({ close }) => close()));
    await until('there is room again', async () => {
      const { status, close } = await follow(api, '/events');
      await close();
      return status === 200;
    });
  });
});

describe('one caller', () => {
  test('has ten streams at most, with its sessions, and leaves the others to others', async () => {
    const api = await openApi(onTestFinished);
    const form = new URLSearchParams({ token: await api.token('read') });
    const login = await api.call(null, '//login', { method: 'POST', raw: form });
    const cookie = login.headers.get('set-cookie')!.split(';')[0]!;
    const byCookie = () => fetch(`${api.url}/api/v1/events`, { headers: { cookie } });
    const viewers = await Promise.all(Array.from({ length: 12 }, () => follow(api, '/events')));
    const statuses = viewers.map(({ status }) => status);
    expect([200, 429].map((status) => statuses.filter((one) => one === status).length)).toEqual([10, 2]);
    const refused = await byCookie();
    expect([refused.status, Number(refused.headers.get('retry-after'))]).toEqual([429, 2]);
    const authorization = `Bearer ${await api.token('admin')}`;
    expect((await follow(api, '/events', { authorization })).status).toBe(200);
    await Promise.all(viewers.map(({ close }) => close()));
    await until('there is room again', async () => {
      const { status, close } = await follow(api, '/events');
      await close();
      return status === 200;
    });
  });
});

/** How many commands Redis has carried out. */
async function commandsOf({ redis }: Api): Promise<number> {
  return Number(parseInfo(await redis.info('stats')).total_commands_processed);
}

const ended = sized(2_000, 10_000);

describe('thousands of ended runs', () => {
  test('are listed in pages, each run once, and each page reads only its own runs', async () => {
    const api = await openApi(onTestFinished);
    await writeManyRuns(api.redis, ended);
    await api.call('read', '/runs?limit=1');
    const seen: string[] = [];
    const commands: number[] = [];
    for (let cursor = ''; ; ) {
      const before = await commandsOf(api);
      const { body, status, text } = await api.call('read', `/runs?limit=500${cursor}`);
      commands.push((await commandsOf(api)) - before);
      expect(status, text).toBe(200);
      seen.push(...body.items.map(({ run }: { run: string }) => run));
      if (body.next === null) break;
      cursor = `&cursor=${body.next}`;
    }
    expect([seen.length, new Set(seen).size]).toEqual([ended, ended]);
    expect(seen).toEqual([...seen].sort().reverse());
    const narrow = await api.call('read', '/runs?q=list-1711.csv');
    expect(narrow.body.items).toMatchObject([{ files: ['list-1711.csv'] }]);
    const halted = await api.call('read', '/runs?state=halted,paused&limit=10');
    expect(halted.body.items.map(({ state }: { state: string }) => state)).not.toContain('completed');
    expect(Math.max(...commands)).toBeLessThan(1_000); // one a run, a few more of each that is running, and a few of others
  });

  test('cost the overview nothing once they are known to have ended', async () => {
    const api = await openApi(onTestFinished);
    await writeManyRuns(api.redis, ended);
    for (const id of await api.redis.zrevrange('expunge:runs', 0, -1))
      void api.redis.hset(`expunge:{${id}}:run`, 'state', 'completed', 'tallied', 1);
    const viewer = await follow(api, '/events');
    await until('three came', () => viewer.events.length >= 3);
    expect(JSON.parse(viewer.events.at(-1)!.data).runs).toMatchObject({ active: [], ended });
    const calls = async () =>
      Number(/cmdstat_hmget:calls=(\d+)/.exec(String(await api.redis.info('commandstats')))?.[1]);
    const [before, shown] = [await calls(), viewer.events.length];
    await until('three more came', () => viewer.events.length >= shown + 3);
    expect((await calls()) - before).toBeLessThan(200);
  });
});
