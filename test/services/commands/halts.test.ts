import { writeFileSync } from 'node:fs';
import { describe, test } from 'vitest';
import { startSandbox } from '../../../src/sandbox/server.ts';
import { findBrokenIn } from '../../support/checker.ts';
import { type Harness, openHarness } from '../../support/harness.ts';
import { annotations, makeIds } from '../../support/ids.ts';
import { until } from '../../support/processes.ts';

const ids = makeIds('l', 300);
const objects = annotations(ids);

function run(harness: Harness, args: string[] = [], env: NodeJS.ProcessEnv = {}) {
  return harness.start(['run', harness.list(ids), '--resource', 'annotations', '--yes', ...args], env);
}

describe.concurrent('a token that is refused', () => {
  const withTokenFile = async (harness: Harness) => {
    const token = await issueToken(harness);
    return harness.file('token', `${token}\n`);
  };
  const withoutVariable = { EXPUNGE_TOKEN: undefined, EXPUNGE_MAX_CONCURRENCY: '8' };

  test('costs nothing when its file holds a new one', async ({ expect, onTestFinished }) => {
    const harness = await openHarness(onTestFinished, { objects, latencyMs: 20 });
    const file = await withTokenFile(harness);
    const running = run(harness, ['--token-file', file], withoutVariable);
    await until('the run is in the middle', () => harness.arrivals.length > 100);
    writeFileSync(file, `${harness.sandbox.token}\n`);
    harness.sandbox.revokeTokens();
    expect(await running.ended).toMatchObject({ code: 0 });
    expect(harness.sandbox.counts.byStatus.get(401)).toBeGreaterThan(0);
    expect((await harness.onlyRun()).counts.deleted).toBe(ids.length);
    expect(await findBrokenIn(harness, ids)).toBeNull();
  });

  test('halts the run with exit 5, and the same command goes on once there is another', async ({
    expect,
    onTestFinished,
  }) => {
    const harness = await openHarness(onTestFinished, { objects, latencyMs: 20 });
    const file = await withTokenFile(harness);
    const running = run(harness, ['--token-file', file], withoutVariable);
    await until('the run is in the middle', () => harness.arrivals.length > 100);
    harness.sandbox.revokeTokens();
    expect(await running.ended).toMatchObject({ code: 5 });
    expect(await harness.onlyRun()).toMatchObject({ state: 'halted', halt: 'credentials' });
    writeFileSync(file, `${harness.sandbox.token}\n`);
    expect(await run(harness, ['--token-file', file], withoutVariable).ended).toMatchObject({ code: 0 });
    expect((await harness.onlyRun()).counts.deleted).toBe(ids.length);
    expect(await findBrokenIn(harness, ids)).toBeNull();
  });
});

describe.concurrent('a run that must not go on', () => {
  test.for(['status-302', 'html-200'] as const)(
    'is halted with exit 4 by the third %s',
    async (fault, { expect, onTestFinished }) => {
      const harness = await openHarness(onTestFinished, { objects, latencyMs: 5, faults: { [fault]: 1 } });
      expect(await run(harness, [], { EXPUNGE_MAX_CONCURRENCY: '4' }).ended).toMatchObject({ code: 4 });
      expect(await harness.onlyRun()).toMatchObject({ state: 'halted', halt: 'unexpected_answers', by: 'guard' });
      expect(harness.arrivals.length).toBeLessThanOrEqual(100);
      harness.sandbox.faults = {};
      const { code } = await run(harness).ended;
      const { counts } = await harness.onlyRun();
      expect([code, counts.deleted]).toEqual([3, ids.length - counts.failed - counts.unknown]);
      expect(await findBrokenIn(harness, ids)).toBeNull();
    },
  );

  test('is halted with exit 6 when nobody answers, and goes on when somebody does', async ({
    expect,
    onTestFinished,
  }) => {
    const harness = await openHarness(onTestFinished, { objects });
    await harness.sandbox.close();
    const soon = { EXPUNGE_UNREACHABLE_TIMEOUT_MS: '500' };
    expect(await run(harness, [], soon).ended).toMatchObject({ code: 6 });
    expect(await harness.onlyRun()).toMatchObject({ state: 'halted', halt: 'target_unreachable', attempts: 0 });
    const back = await startSandbox({ objects, port: Number(new URL(harness.sandbox.url).port) });
    onTestFinished(() => back.close());
    expect(await run(harness, [], soon).ended).toMatchObject({ code: 0 });
    expect(back.counts).toMatchObject({ requests: ids.length, executed: ids.length });
  });

  test('ends with exit 6 where the host has no address', async ({ expect, onTestFinished }) => {
    const harness = await openHarness(onTestFinished, { objects });
    const env = { EXPUNGE_BASE_URL: 'https://no-such-host.invalid', EXPUNGE_MAX_CONCURRENCY: '4' };
    const running = run(harness, [], env);
    expect(await running.ended, running.stderr).toMatchObject({ code: 6 });
  });
});

async function issueToken({ sandbox }: Harness): Promise<string> {
  const { id, secret } = sandbox.client;
  const body = new URLSearchParams({ grant_type: 'client_credentials', client_id: id, client_secret: secret });
  const answer = await fetch(sandbox.tokenUrl, { method: 'POST', body });
  return ((await answer.json()) as { access_token: string }).access_token;
}
