import { readFileSync } from 'node:fs';
import { expect, onTestFinished, test } from 'vitest';
import { addToken } from '../../src/api/token-store.ts';
import { type Api, openApi } from '../support/api.ts';
import { passed } from '../support/fleet.ts';
import { annotations, makeIds } from '../support/ids.ts';
import { until } from '../support/processes.ts';

// Linux only: it reads processor times from /proc, in hundredths of a second.

const viewers = 50;
const roundMs = 6_000;
const rounds = 8;

/** The processor time of a process so far, in seconds. */
function cpuSeconds(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]!.split(' ');
  return (Number(fields[11]) + Number(fields[12])) / 100;
}

/** So many look at everything until it is called; ten have one name, as many as one may have. */
async function look(api: Api, count: number): Promise<() => Promise<void>> {
  const stop = new AbortController();
  const names = Array.from({ length: Math.ceil(count / 10) }, (_, n) => ({ name: `v-${n}-${Date.now()}` }));
  const tokens = await Promise.all(
    names.map(({ name }) =>
      addToken(api.redis, { name, role: 'read', reach: null, at: Date.now(), who: 'test', expiresAt: 0 }),
    ),
  );
  const opened = Array.from({ length: count }, (_, n) => {
    const headers = { authorization: `Bearer ${tokens[Math.floor(n / 10)]}` };
    return fetch(`${api.url}/api/v1/events`, { headers, signal: stop.signal });
  });
  const answers = await Promise.all(opened);
  expect(answers.every(({ status }) => status === 200)).toBe(true);
  const streams = answers.map(({ body }) => body!.pipeTo(new WritableStream()).catch(() => {})); // it was stopped
  return async () => {
    stop.abort();
    await Promise.all(streams);
  };
}

/** Processor time of the worker and requests at the API, a second, in a round with so many viewers who are there from its begin. */
async function measure(api: Api, count: number): Promise<{ cpu: number; perSecond: number }> {
  const close = await look(api, count);
  const pid = api.server.pid;
  const from = { at: performance.now(), cpu: cpuSeconds(pid), sent: api.harness.arrivals.length };
  await passed(from.at, roundMs);
  const seconds = (performance.now() - from.at) / 1_000;
  const seen = { cpu: cpuSeconds(pid) - from.cpu, perSecond: (api.harness.arrivals.length - from.sent) / seconds };
  await close();
  return { cpu: seen.cpu / seconds, perSecond: seen.perSecond };
}

/** Both, round by round, each first in every other one: what drifts concerns both. */
async function compare(api: Api) {
  const alone: Awaited<ReturnType<typeof measure>>[] = [];
  const watched: typeof alone = [];
  for (let round = 0; round < rounds; round++) {
    if (round % 2 === 0) alone.push(await measure(api, 0));
    watched.push(await measure(api, viewers));
    if (round % 2 === 1) alone.push(await measure(api, 0));
  }
  return { alone, watched };
}

const median = (values: number[]) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]!;

test('fifty viewers cost an idle worker less than 2 percent of a core', async () => {
  const api = await openApi(onTestFinished, { args: ['worker', '--http', '0'] });
  const { alone, watched } = await compare(api);
  const costs = watched.map(({ cpu }, round) => cpu - alone[round]!.cpu);
  console.log(`of a core: ${costs.map((cost) => cost.toFixed(4))}`);
  expect(median(costs)).toBeLessThan(0.02);
});

test('fifty viewers slow a run that deletes at full speed by less than 5 percent', async () => {
  const ids = makeIds('v', 2_000_000);
  const api = await openApi(onTestFinished, {
    args: ['worker', '--http', '0'],
    objects: annotations(ids),
    record: false,
  });
  await api.harness.spawn(['run', api.harness.list(ids), '--resource', 'annotations', '--detach', '--yes']).ended;
  await until('it is at full speed', () => api.harness.arrivals.length > 50_000);
  const { alone, watched } = await compare(api);
  const ratios = watched.map(({ perSecond }, round) => perSecond / alone[round]!.perSecond);
  const rates = alone.map(({ perSecond }) => perSecond.toFixed(0));
  console.log(`${rates} requests a second alone; with viewers × ${ratios.map((ratio) => ratio.toFixed(3))}`);
  expect(median(ratios)).toBeGreaterThan(0.95);
});
