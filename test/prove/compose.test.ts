import { describe, expect, onTestFinished, test } from 'vitest';
import { isFinalized } from '../../src/ledger/run.ts';
import { docker, engineComposes } from '../support/engine.ts';
import { until } from '../support/processes.ts';
import { annotationIds, openStack, type Stack, type StackOptions } from '../support/stack.ts';

async function open(options: StackOptions): Promise<Stack> {
  const stack = await openStack(options);
  onTestFinished(() => stack.close());
  return stack;
}

/** What happens to the containers, over and over: each takes its time and leaves everything running. */
const blows: readonly ((stack: Stack) => Promise<unknown>)[] = [
  (stack) => killAndRestart(stack, stack.container('worker', 1)),
  (stack) => freeze(stack.container('worker', 2), 13_000), // longer than its lock on a chunk lives
  (stack) => docker(['restart', stack.container('redis')]),
  (stack) => freeze(stack.container('worker', 3), 3_000),
  (stack) => killAndRestart(stack, stack.container('redis')),
  (stack) => docker(['restart', stack.container('worker', 2)]),
];

describe.skipIf(!engineComposes('node:24-bookworm-slim', 'redis:8-alpine'))('docker compose at its full size', () => {
  test('80,000 ids, and containers that are killed, frozen and restarted in turn: no id lost, nothing false', async () => {
    const faults = 'status-503-executed=0.002,status-500=0.002,reset-executed=0.003,hang-executed=0.0005';
    const objects = 90_000;
    const stack = await open({ objects, sandbox: ['--latency-ms', '10', '--faults', faults] });
    await stack.compose(['up', '--detach', '--scale', 'worker=3']);
    const ids = annotationIds(1, 80_000).map((id, n) => (n % 10 === 3 ? id.replace('a-', 'never-') : id));
    const run = await stack.submit(ids, ['--rate', '800/s']);
    let struck = 0;
    while (!isFinalized((await stack.runIs(run, 'there', () => true)).state)) {
      await blows[struck++ % blows.length]!(stack);
      await stack.settles(run, 1_000);
    }
    const { counts } = await stack.runIs(run, 'completed', ({ state }) => state === 'completed');
    console.log(`${struck} blows: ${JSON.stringify(counts)}`);
    expect(await stack.broken(run, ids)).toBeNull();
    expect(struck).toBeGreaterThanOrEqual(blows.length);
  });

  test('stops within its grace while the API answers nothing', async () => {
    const stack = await open({ objects: 1_000, sandbox: ['--faults', 'hang=1'] });
    await stack.compose(['up', '--detach']);
    await stack.submit(annotationIds(1, 500));
    await until('requests hang', async () => (await stack.journal()).requests.length > 0);
    const from = performance.now();
    await stack.compose(['stop', 'worker']);
    console.log(`stopped after ${((performance.now() - from) / 1_000).toFixed(1)} s`);
    expect(performance.now() - from).toBeLessThan(15_000);
    expect(await stack.inspect(stack.container('worker'), '{{.State.ExitCode}}')).toBe('0');
  });
});

async function killAndRestart(stack: Stack, container: string): Promise<void> {
  await docker(['kill', container]);
  await docker(['start', container]);
  if (container === stack.container('redis'))
    await stack.compose(['up', '--detach', '--no-recreate', '--wait', 'redis']);
}

async function freeze(container: string, ms: number): Promise<void> {
  await docker(['pause', container]);
  const from = performance.now();
  await until(`${ms} ms have passed`, () => performance.now() - from >= ms, ms + 10_000);
  await docker(['unpause', container]);
}
