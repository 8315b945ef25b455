import { rmSync } from 'node:fs';
import { describe, test } from 'vitest';
import type { SandboxOptions } from '../../../src/sandbox/server.ts';
import { families } from '../../../src/worker/http/metrics.ts';
import { type AtEnd, type Harness, openHarness } from '../../support/harness.ts';
import { annotations, makeIds } from '../../support/ids.ts';
import { openOwnRedis } from '../../support/own-redis.ts';
import { openProbes } from '../../support/probes.ts';
import { until } from '../../support/processes.ts';

const ids = makeIds('h', 300);
const objects = annotations(ids);
const http = ['--http', '0'];

async function submit(harness: Harness, env: NodeJS.ProcessEnv = {}): Promise<void> {
  const args = ['run', harness.list(ids), '--resource', 'annotations', '--yes', '--detach', '--expect-absent'];
  const { code } = await harness.start(args, env).ended;
  if (code !== 0) throw new Error('the run was not submitted');
}

/** Whether the labels of a series are those that the table names. */
function hasItsLabels(series: string): boolean {
  const [name = '', ...labels] = series.split(/[{,}]/).filter((part) => part !== '');
  const family = families.find(
    (family) => name.replace(/_(bucket|sum|count)$/, '') === family.name || name === family.name,
  );
  const wanted = name.endsWith('_bucket') ? ['le'] : (family?.labels ?? []);
  return labels.map((label) => label.split('=')[0]).join() === wanted.join();
}

async function openWorker(atEnd: AtEnd, options: SandboxOptions, env: NodeJS.ProcessEnv = {}) {
  const harness = await openHarness(atEnd, options);
  const worker = await harness.worker(http, env);
  return { harness, worker, probes: await openProbes(worker) };
}

describe.concurrent('worker --http', () => {
  test('counts what the ledger counts, in well-formed text without ids, runs or secrets', async ({
    expect,
    onTestFinished,
  }) => {
    const [token, password] = ['canary-token-8211', 'canary-password-8212'];
    const { url } = await openOwnRedis(onTestFinished, password);
    const script = (_: string, id: string, nth: number) => (nth === 1 && id < 'h-000020' ? 'status-503' : null);
    const sandbox = { token, objects: objects.slice(100), faults: { script } } as const;
    const env = { REDIS_URL: url };
    const { harness, probes } = await openWorker(onTestFinished, sandbox, env);
    expect(probes.url).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
    await submit(harness, env);
    const scrape = await until('the run is over', async () => {
      const seen = await probes.scrape();
      return seen.value('expunge_last_run_success_timestamp_seconds{schedule=""}') !== undefined && seen;
    });
    const settled = (outcome: string) =>
      scrape.value(`expunge_items_total{resource="annotations",outcome="${outcome}"}`);
    expect([settled('deleted'), settled('absent'), settled('gone_unconfirmed'), settled('failed')]).toEqual([
      200, 80, 20, 0,
    ]);
    expect(scrape.sum('expunge_requests_total')).toBe(harness.sandbox.counts.requests);
    expect(scrape.value('expunge_requests_total{resource="annotations",code="503"}')).toBe(20);
    expect(scrape.value('expunge_retries_total{reason="status"}')).toBe(20);
    expect(scrape.value('expunge_request_duration_seconds_count')).toBe(harness.sandbox.counts.requests);
    expect(scrape.value('expunge_items_pending')).toBe(0);
    expect(scrape.value('expunge_redis_up')).toBe(1);
    expect(scrape.value('process_resident_memory_bytes')).toBeGreaterThan(10_000_000);
    expect(scrape.faults).toEqual([]);
    expect(scrape.series.filter((series) => /^(expunge|bullmq)_/.test(series) && !hasItsLabels(series))).toEqual([]);
    const { text, contentType } = await probes.get('/metrics');
    expect(contentType).toBe('text/plain; version=0.0.4; charset=utf-8');
    expect(scrape.series.length).toBeLessThan(250);
    const said = [text, (await probes.get('/readyz')).text].join('\n');
    expect(said).not.toMatch(/canary-|h-0000|\b20\d{6}-\d{4}-[a-z0-9]{4}(?![-\w])/); // the id of a run; the account is a UUID
  });

  test('answers while Redis hangs: alive, not ready, and without what only Redis knows', async ({
    expect,
    onTestFinished,
  }) => {
    const { url, pid } = await openOwnRedis(onTestFinished);
    const { probes } = await openWorker(onTestFinished, {}, { REDIS_URL: url });
    await until('it is ready', async () => (await probes.readiness()).ready);
    process.kill(pid, 'SIGSTOP');
    await until('the last answers are forgotten', async () => (await probes.scrape()).value('expunge_redis_up') === 0);
    const [health, metrics, readiness] = await Promise.all(['/healthz', '/metrics', '/readyz'].map(probes.get));
    expect([health!.status, metrics!.status, readiness!.status]).toEqual([200, 200, 503]);
    expect(JSON.parse(readiness!.text).checks).toMatchObject({ process: { ok: true }, redis: { ok: false } });
    expect(metrics!.text).toMatch(/^expunge_redis_up 0$/m);
    expect(metrics!.text).not.toMatch(/^(expunge_runs|expunge_items_(pending|runnable))\b/m);
    process.kill(pid, 'SIGCONT');
    await until('it is ready again', async () => (await probes.readiness()).ready);
    await until('Redis is up', async () => (await probes.scrape()).value('expunge_redis_up') === 1);
  });

  test('is not ready where Redis takes no writes', async ({ expect, onTestFinished }) => {
    const own = await openOwnRedis(onTestFinished);
    const { probes } = await openWorker(onTestFinished, {}, { REDIS_URL: own.url });
    await own.connect().config('SET', 'maxmemory', '1');
    const { status, checks } = await until('it notices', async () => {
      const found = await probes.readiness();
      return !found.ready && found;
    });
    expect(status).toBe(503);
    await until(
      'it is told by a metric',
      async () => (await probes.scrape()).value('expunge_redis_accepts_writes') === 0,
    );
    expect(checks).toMatchObject({
      redis: { ok: true },
      ledger: { ok: false, words: 'rejects writes; the log says why' },
    });
  });

  test('is not ready while it drains, and answers until the end', async ({ expect, onTestFinished }) => {
    const { harness, worker, probes } = await openWorker(onTestFinished, { objects, latencyMs: 3_000 });
    await submit(harness);
    await until('requests are on the wire', async () => (await probes.scrape()).value('expunge_items_in_flight'));
    worker.signal('SIGTERM');
    const { status, checks } = await until('it drains', async () => {
      const found = await probes.readiness();
      return !found.ready && found;
    });
    expect(status).toBe(503);
    expect(checks.process).toMatchObject({ ok: false, words: 'draining' });
    expect((await probes.get('/healthz')).status).toBe(200);
    expect((await worker.ended).code).toBe(0);
  });

  test('is not ready before it has a token', async ({ expect, onTestFinished }) => {
    const harness = await openHarness(onTestFinished);
    const gate = harness.file('gate', '');
    const command = `while [ -e ${gate} ]; do sleep 0.1; done; echo late-token`;
    const worker = harness.start(['worker', ...http, '--token-command', command], { EXPUNGE_TOKEN: '' });
    const probes = await openProbes(worker);
    const { status, checks } = await probes.readiness();
    expect(status).toBe(503);
    expect(checks).toMatchObject({ process: { ok: false, words: 'starting' }, token: { ok: false } });
    expect((await probes.get('/healthz')).status).toBe(200);
    rmSync(gate);
    await until('it is ready', async () => (await probes.readiness()).ready);
  });

  test('is ready while the target wants it to wait, says so, and wants no more workers', async ({
    expect,
    onTestFinished,
  }) => {
    const faults = { 'status-429-seconds': 1, retryAfterSeconds: 60 };
    const { harness, probes } = await openWorker(onTestFinished, { objects, faults });
    await submit(harness);
    await until('it waits', async () => (await probes.scrape()).value('expunge_retry_after_seconds'));
    const scrape = await until('it has waited', async () => {
      const seen = await probes.scrape();
      return seen.value('expunge_throttle_wait_seconds_total') && seen;
    });
    const { ready, checks } = await probes.readiness();
    expect(ready).toBe(true);
    expect(checks.target).toMatchObject({
      ok: false,
      words: expect.stringMatching(/^nothing is sent \(\d+ s left\); the log says why$/),
    });
    expect(scrape.value('expunge_items_pending')).toBe(ids.length);
    expect(scrape.value('expunge_items_runnable')).toBe(0);
    expect(scrape.value('expunge_retries_total{reason="throttled"}')).toBeGreaterThan(0);
  });

  test('refuses an address that is taken, and one that is none, with exit code 2', async ({
    expect,
    onTestFinished,
  }) => {
    const harness = await openHarness(onTestFinished);
    const { host, port } = new URL(harness.sandbox.url);
    const taken = harness.start(['worker', '--http', port]);
    const none = harness.start(['worker', '--http', 'all:http']);
    expect((await taken.ended).code).toBe(2);
    expect(taken.stderr).toContain(`--http ${host}: something listens there already`);
    expect((await none.ended).code).toBe(2);
    expect(none.stderr).toContain('--http: expected a port like 9464 (this machine only)');
  });

  test('listens on all addresses only if it is told so, and not at all unless it is asked to', async ({
    expect,
    onTestFinished,
  }) => {
    const harness = await openHarness(onTestFinished);
    const [quiet, all] = await Promise.all([[], ['--http', '0.0.0.0:0']].map((args) => harness.worker(args)));
    expect(quiet!.stderr).not.toContain('"http"');
    expect(all!.stderr).toContain('"http":"http://0.0.0.0:');
  });
});
