import { randomUUID } from 'node:crypto';
import { type RunPlan, writeRun } from '../../src/ledger/create-run.ts';
import { openLedger } from '../../src/ledger/ledger.ts';
import { type Run, readRun } from '../../src/ledger/run.ts';
import { noRules } from '../../src/ledger/run-rules.ts';
import { createLogger } from '../../src/logger.ts';
import { chunkSize } from '../../src/model/row.ts';
import { type Pulse, steadyPulse } from '../../src/pulse.ts';
import { startDetachedRun } from '../../src/queue/enqueuer.ts';
import { sharedQueueName } from '../../src/queue/queues.ts';
import type { RedisClient } from '../../src/redis/client.ts';
import { openQueueConnection } from '../../src/redis/connect.ts';
import type { Sandbox, SandboxOptions } from '../../src/sandbox/server.ts';
import { fixedToken } from '../../src/token/fixed-token.ts';
import { Parts } from '../../src/worker/parts.ts';
import { Recoverer } from '../../src/worker/recoverer.ts';
import { openService, type Service, type ServiceOptions } from '../../src/worker/service.ts';
import { workWatch } from '../../src/worker/work-watch.ts';
import { openHarness } from './harness.ts';
import { testRedisAddress } from './redis.ts';

/** Workers of one target inside this process, on a sandbox of their own: cheap, and without a command line between. */
export type LocalWorkers = {
  sandbox: Sandbox;
  redis: RedisClient;
  fp: string;
  service: Service; // of the first worker
  /** Starts another worker of the same target. */
  add(options?: Partial<ServiceOptions>, pulse?: Pulse): Promise<{ service: Service; drain(): Promise<void> }>;
  /** Leaves a new run to them; returns its id. */
  submit(ids: readonly string[], plan?: Partial<RunPlan> & { resource?: 'annotations' | 'views' }): Promise<string>;
  run(id: string): Promise<Run>;
};

const recoverEveryMs = 200;

export async function openLocalWorkers(
  atEnd: (task: () => Promise<void>) => void,
  sandboxOptions: SandboxOptions,
  first: Partial<ServiceOptions> = {},
  firstPulse = steadyPulse(),
): Promise<LocalWorkers> {
  const harness = await openHarness(null, sandboxOptions);
  const { sandbox, redis, target } = harness;
  const ledger = openLedger(redis);
  const log = createLogger({ level: 'silent', format: 'json', stderr: process.stderr });
  const started: Parts[] = [];
  const add: LocalWorkers['add'] = async (options = {}, pulse = steadyPulse()) => {
    const service = openService({
      ledger,
      target,
      log,
      queueName: sharedQueueName,
      queueConnection: openQueueConnection(testRedisAddress()),
      token: fixedToken(sandbox.token, 'test'),
      connection: { requestTimeoutMs: 10_000, ca: null, proxy: null },
      maxConcurrency: 32,
      retryDelaysMs: [5_000, 30_000, 120_000, 600_000, 1_800_000],
      unreachableTimeoutMs: 60_000,
      stopFile: null,
      ...options,
    });
    const parts = new Parts([...service.parts, ...workWatch(redis, target.fp, log)], log, pulse);
    started.push(parts);
    await parts.start(new AbortController().signal);
    return { service, drain: () => parts.drain() };
  };
  const submit: LocalWorkers['submit'] = async (ids, { resource = 'annotations', ...more } = {}) => {
    const id = `test-${randomUUID()}`;
    const plan = { ...planFor(ids, target, id), ...more };
    await writeRun(redis, id, plan, chunksOf(ids, resource), Date.now(), () => {});
    const run = (await readRun(redis, id))!;
    await startDetachedRun(ledger, service.enqueuer, run, { who: 'test', reason: '' });
    return id;
  };
  atEnd(async () => {
    clearInterval(tending);
    await Promise.all(started.map((parts) => parts.drain()));
    await harness.close();
  });
  const { service } = await add(first, firstPulse);
  const recoverer = new Recoverer({ ledger, enqueuer: service.enqueuer, fp: target.fp, log });
  const tending = setInterval(() => void recoverer.recover().catch(() => {}), recoverEveryMs);
  return { sandbox, redis, fp: target.fp, service, add, submit, run: async (id) => (await readRun(redis, id))! };
}

function planFor(ids: readonly string[], target: RunPlan['target'], id: string): RunPlan {
  return {
    target,
    list: id,
    sha256: id,
    files: ['list'],
    layout: '',
    rows: ids.length,
    ids: ids.length,
    protectedRead: null,
    blocks: 0,
    chunks: Math.ceil(ids.length / chunkSize),
    settled: { rejected: 0, duplicate: 0, protected: 0 },
    ...noRules,
    canary: '',
    definitions: '',
    note: '',
    retryOf: '',
    keepMs: 60_000,
    detached: true,
    who: 'test',
    command: '',
  };
}

function chunksOf(ids: readonly string[], resource: 'annotations' | 'views') {
  return Array.from({ length: Math.ceil(ids.length / chunkSize) }, (_, n) => {
    const part = ids.slice(n * chunkSize, (n + 1) * chunkSize);
    return { n, resource, ids: part, positions: part.map((_, i) => ({ file: 0, line: n * chunkSize + i + 1 })) };
  });
}
