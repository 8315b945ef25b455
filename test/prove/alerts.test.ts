import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Redis } from 'ioredis';
import { expect, onTestFinished, test } from 'vitest';
import { readAlertRules } from '../../src/help/topics.ts';
import type { FaultKind } from '../../src/sandbox/fault-kinds.ts';
import { openHarness } from '../support/harness.ts';
import { annotations, makeIds } from '../support/ids.ts';
import { openOwnRedis } from '../support/own-redis.ts';
import { startProgram, until } from '../support/processes.ts';
import { freePort } from '../support/redis-process.ts';

// A Prometheus of the Debian package "prometheus" looks every two seconds at the workers of two targets, one of which gets into trouble again and
// again. What `promtool` plays in test/integration/help is seen here with real series: how they begin, go stale and end.

const hasPrometheus = (() => {
  try {
    execFileSync('prometheus', ['--version'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
})();

const ids = makeIds('p', 20_000);
const perSecond = 20; // slow enough that neither run ends
const refused = makeIds('h', 5); // whatever else is answered
const quietMs = 8_000; // an alert would have fired

/** The rules in seconds: nothing waits for more than two, and no window is longer than ten. */
function quickRules(): string {
  return readAlertRules()
    .replace(/for: \d+[mh]/g, 'for: 2s')
    .replace(/\[1[05]m\]/g, '[10s]');
}

/** A target with a run that goes on, on a Redis of its own, and a worker that Prometheus can ask. */
async function openTarget(name: string) {
  let fault: FaultKind | null = null;
  const own = await openOwnRedis(onTestFinished);
  const faults = {
    script: (_: unknown, id: string) => (refused.includes(id) ? 'status-422' : fault),
    retryAfterSeconds: 600,
  } as const;
  const harness = await openHarness(onTestFinished, { account: name, objects: annotations(ids), faults }, own);
  const stopFile = join(harness.folder, 'stop');
  const port = await freePort();
  const worker = await harness.spawnWorker(['--http', `127.0.0.1:${port}`, '--stop-file', stopFile]);
  const submit = async (some: readonly string[], args: string[] = []) => {
    const list = harness.file(`${some.length}.txt`, `${some.join('\n')}\n`);
    const line = [list, '--resource', 'annotations', '--detach', '--yes', ...args];
    expect(await harness.run(line)).toMatchObject({ code: 0 });
  };
  await submit(ids, ['--rate', `${perSecond}/s`]);
  const action = async (line: string[]) => expect(await harness.expunge(line)).toMatchObject({ code: 0 });
  return {
    harness,
    worker,
    own,
    stopFile,
    port,
    submit,
    action,
    answer: (kind: FaultKind | null) => {
      fault = kind;
    },
  };
}

type Stage = Awaited<ReturnType<typeof openTarget>>;

async function openPrometheus(targets: readonly Stage[]) {
  const folder = mkdtempSync(join(tmpdir(), 'expunge-prometheus-'));
  const jobs = targets.map(({ port }) => `'127.0.0.1:${port}'`).join(', ');
  writeFileSync(join(folder, 'rules.yml'), quickRules());
  writeFileSync(
    join(folder, 'prometheus.yml'),
    `global: {scrape_interval: 2s, scrape_timeout: 2s, evaluation_interval: 1s}
rule_files: [rules.yml]
scrape_configs: [{job_name: expunge, static_configs: [{targets: [${jobs}]}]}]
`,
  );
  const port = await freePort();
  const args = [`--config.file=${folder}/prometheus.yml`, `--storage.tsdb.path=${folder}/data`];
  const { PATH } = process.env;
  const running = startProgram('prometheus', [...args, `--web.listen-address=127.0.0.1:${port}`], { PATH });
  onTestFinished(async () => {
    running.signal('SIGKILL');
    await running.ended;
    rmSync(folder, { recursive: true, force: true });
  });
  const ask = async (path: string) => {
    const answer = await fetch(`http://127.0.0.1:${port}/api/v1/${path}`).catch(() => null);
    // biome-ignore lint/suspicious/noExplicitAny: answers of every shape
    return answer?.ok ? ((await answer.json()) as { data: any }).data : null;
  };
  /** `ExpungeHeld a stop`: what fires, for whom, and its reason. */
  const firing = async (): Promise<string[]> => {
    const alerts: { state: string; labels: Record<string, string> }[] = (await ask('alerts'))?.alerts ?? [];
    const named = alerts.filter(({ state }) => state === 'firing').map(({ labels }) => labels);
    return named.map(({ alertname, account, reason = '' }) => `${alertname} ${account} ${reason}`.trim()).toSorted();
  };
  return { ask, firing };
}

type Trouble = { alert: string | null; make(stage: Stage): Promise<unknown>; mend?(stage: Stage): Promise<unknown> };

/** Each is made at target a, and mended before the next. */
const troubles: Record<string, Trouble> = {
  'is stopped': {
    alert: 'ExpungeHeld a stop',
    make: ({ action }) => action(['stop-all', '--reason', 'they call us']),
    mend: ({ action }) => action(['start-all']),
  },
  'has a stop file': {
    alert: 'ExpungeHeld a stop_file',
    make: async ({ stopFile }) => writeFileSync(stopFile, 'they call us'),
    mend: async ({ stopFile }) => rmSync(stopFile),
  },
  'has used up its limit': {
    alert: 'ExpungeLimitUsedUp a',
    make: ({ action }) => action(['target', 'limit', '5/day']),
    mend: ({ action }) => action(['target', 'limit', 'none']),
  },
  'asks for a wait': {
    alert: 'ExpungeHeld a retry_after',
    make: async ({ answer }) => answer('status-429-seconds'),
    mend: async ({ answer, action }) => {
      answer(null);
      await action(['target', 'release']);
    },
  },
  'answers 503 to everything': {
    alert: 'ExpungeHeld a outage',
    make: async ({ answer }) => answer('status-503'),
    mend: async ({ answer, action }) => {
      answer(null);
      await action(['target', 'release']);
    },
  },
  'has a paused run': {
    alert: null,
    make: async ({ harness, action }) => action(['pause', (await harness.onlyRun()).id]),
    mend: async ({ harness, action }) => action(['resume', (await harness.onlyRun()).id]),
  },
  'has a Redis that rejects writes': {
    alert: 'ExpungeRedisRejectsWrites a',
    make: ({ harness }) => (harness.redis as Redis).config('SET', 'min-replicas-to-write', 1),
    mend: ({ harness }) => (harness.redis as Redis).config('SET', 'min-replicas-to-write', 0),
  },
  'has a Redis that does not answer': {
    alert: 'ExpungeRedisAway a',
    make: async ({ own }) => process.kill(own.pid, 'SIGSTOP'),
    mend: async ({ own }) => process.kill(own.pid, 'SIGCONT'),
  },
  'has a run that halts': {
    alert: 'ExpungeRunHalted a',
    make: ({ submit }) => submit(refused, ['--on-status', '422=halt']),
    mend: async ({ harness, action }) => {
      const halted = (await harness.runs()).find(({ state }) => state === 'halted');
      await action(['cancel', halted!.id, '--yes']);
    },
  },
  'has no worker': {
    alert: 'ExpungeNoWorker a',
    make: async ({ worker }) => worker.signal('SIGKILL'),
  },
};

test.skipIf(!hasPrometheus)(
  'of two targets the one in trouble has the alert of that, and none else fires',
  async () => {
    const [a, b] = await Promise.all([openTarget('a'), openTarget('b')]);
    const { ask, firing } = await openPrometheus([a, b]);
    await until('both are scraped', async () => (await ask('query?query=expunge_target_info'))?.result.length === 2);
    await until('both delete', () => a.harness.arrivals.length > 40 && b.harness.arrivals.length > 40);
    for (const [what, { alert, make, mend }] of Object.entries(troubles)) {
      const seen = new Set<string>();
      const look = async () => {
        const now = await firing();
        for (const one of now) seen.add(one);
        return now;
      };
      await make(a);
      const quietUntil = performance.now() + quietMs;
      const isSeen = async () =>
        (await look()).includes(alert ?? '') || (alert === null && performance.now() > quietUntil);
      await until(`an alert fires when a ${what}`, isSeen, 40_000);
      await mend?.(a);
      if (mend)
        await until(`no alert fires once that is over: a ${what}`, async () => (await look()).length === 0, 40_000);
      expect([...seen], `a ${what}`).toEqual(alert === null ? [] : [alert]);
    }
  },
);
