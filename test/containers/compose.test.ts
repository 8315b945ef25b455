import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Run } from '../../src/ledger/run.ts';
import { docker, engineComposes } from '../support/engine.ts';
import { until } from '../support/processes.ts';
import { promised } from '../support/size.ts';
import { annotationIds, composed, openStack, type Stack } from '../support/stack.ts';

const objects = 20_000;
/** Every tenth of these never existed. */
/** An engine refuses to freeze a container while one of its processes begins, such as its health check. */
const freeze = (container: string) =>
  until('the engine freezes it', () =>
    docker(['pause', container]).then(
      () => true,
      () => false,
    ),
  );

const listOf = (from: number, to: number) =>
  annotationIds(from, to).map((id, n) => (n % 10 === 3 ? id.replace('a-', 'never-') : id));

describe.skipIf(!engineComposes('node:24-bookworm-slim', 'redis:8-alpine'))(
  'docker compose',
  { timeout: 300_000 },
  () => {
    let stack: Stack;
    beforeAll(async () => {
      const sandbox = ['--latency-ms', '10', '--faults', 'reset-executed=0.005'];
      stack = await openStack({ objects, sandbox });
      await stack.compose(['up', '--detach', '--scale', 'worker=3']);
    }, 300_000);
    afterAll(() => stack?.close());

    const isCompleted = ({ state }: Run) => state === 'completed';
    const isHalfway = ({ settled, rows }: Run) => settled > rows / 4;

    test('deletes a sample by one command, which any of its workers does', async () => {
      const ids = annotationIds(1, 500);
      const run = await stack.submit(ids);
      const { counts } = await stack.runIs(run, 'completed', isCompleted);
      expect(counts.deleted + counts.gone_unconfirmed).toBe(500);
      expect(await stack.broken(run, ids)).toBeNull();
      const probes = await stack.compose(['port', '--index', '2', 'worker', '9464']);
      await until('the second worker is ready', async () => (await fetch(`http://${probes}/readyz`)).ok);
    });

    test('starts nothing without a target, and leaves alone what runs', async () => {
      const states = () => stack.compose(['ps', '--format', '{{.ID}} {{.State}}']);
      const before = await states();
      for (const missing of ['EXPUNGE_BASE_URL', 'EXPUNGE_TOKEN_FILE']) {
        const up = stack.compose(['up', '--detach', '--scale', 'worker=3'], '', { [missing]: '' });
        await expect(up).rejects.toThrow(`required variable ${missing} is missing a value: say`);
      }
      expect(await states()).toBe(before);
    });

    test('ends a run right though a worker is killed, one is frozen, and Redis starts again', async () => {
      const [killed, frozen, left] = [1, 2, 3].map((n) => stack.container('worker', n)) as [string, string, string];
      const ids = listOf(2_001, 8_000);
      const run = await stack.submit(ids, ['--rate', '500/s']);
      await stack.runIs(run, 'halfway', isHalfway);
      await Promise.all([docker(['kill', killed]), freeze(frozen)]);
      await docker(['restart', stack.container('redis')]);
      await stack.runIs(run, 'completed', isCompleted);
      await docker(['unpause', frozen]); // and finds that others did its work
      await stack.compose(['up', '--detach', '--no-recreate', '--scale', 'worker=3']); // starts the killed one
      expect(await stack.broken(run, ids)).toBeNull();
      for (const worker of [frozen, left]) expect(await stack.inspect(worker, '{{.RestartCount}}')).toBe('0');
      const health = () => stack.inspect(left, '{{.State.Health.Status}}');
      await until('the engine finds it healthy', async () => (await health()) === 'healthy');
    });

    test('drains within its grace and leaves the run to the workers that come after', async () => {
      const workers = [1, 2, 3].map((n) => stack.container('worker', n));
      const ids = listOf(10_001, 13_000);
      const run = await stack.submit(ids, ['--rate', '500/s']);
      await stack.runIs(run, 'halfway', isHalfway);
      const from = performance.now();
      await stack.compose(['stop', 'worker']);
      expect(performance.now() - from).toBeLessThan(promised(15_000));
      for (const worker of workers) expect(await stack.inspect(worker, '{{.State.ExitCode}}')).toBe('0');
      const { settled, rows, state } = await stack.runIs(run, 'there', () => true);
      expect([settled < rows, state]).toEqual([true, 'running']);
      await stack.compose(['up', '--detach', '--scale', 'worker=1']);
      await stack.runIs(run, 'completed', isCompleted);
      expect(await stack.broken(run, ids)).toBeNull();
    });
  },
);

describe.skipIf(!engineComposes())('the rehearsal', () => {
  test('is that of the same workers, with an API of its own whatever is set around it', async () => {
    const real = {
      EXPUNGE_BASE_URL: 'https://api.example.com',
      EXPUNGE_TOKEN_FILE: '/real/token',
      EXPUNGE_ACCOUNT: 'a',
    };
    const [live, rehearsal] = await Promise.all(
      ['docker-compose.yml', 'docker-compose.rehearsal.yml'].map((file) => composed(file, real)),
    );
    const { environment, ...worker } = rehearsal.services.worker;
    const { environment: liveEnvironment, ...liveWorker } = live.services.worker;
    expect(worker).toEqual(liveWorker);
    expect(rehearsal.services.redis).toEqual(live.services.redis);
    expect(environment).toEqual({
      ...liveEnvironment,
      EXPUNGE_BASE_URL: 'http://sandbox:8080',
      EXPUNGE_ALLOW_HTTP: 'sandbox',
      EXPUNGE_ACCOUNT: undefined,
      EXPUNGE_RATE: undefined,
      EXPUNGE_MAX_CONCURRENCY: undefined,
      EXPUNGE_LOG_LEVEL: undefined,
      EXPUNGE_USER: undefined,
    });
    expect(rehearsal.secrets.token.file).toMatch(/src\/sandbox\/token$/);
    expect(rehearsal.name).not.toBe(live.name);
    for (const service of Object.values<Service>({ ...live.services, ...rehearsal.services })) {
      expect(service).toMatchObject({ mem_limit: expect.any(String), logging: { options: { 'max-size': '10m' } } });
    }
  });
});

type Service = { mem_limit?: string; logging?: unknown };
