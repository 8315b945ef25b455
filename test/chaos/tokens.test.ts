import { describe, test } from 'vitest';
import { findBrokenIn } from '../support/checker.ts';
import { type Harness, openHarness } from '../support/harness.ts';
import { annotations, makeIds } from '../support/ids.ts';
import { until } from '../support/processes.ts';
import { isFull } from '../support/size.ts';

const ids = makeIds('t', 500);
const objects = annotations(ids);
const client = { id: 'abc', secret: 'canary-secret-4711' };

function run(harness: Harness, args: string[] = [], list = ids) {
  const endpoint = ['--token-url', harness.sandbox.tokenUrl, '--client-id', client.id];
  const command = ['run', harness.list(list), '--resource', 'annotations', '--yes', '--json'];
  return harness.start([...command, ...endpoint, ...args], {
    EXPUNGE_TOKEN: undefined,
    EXPUNGE_CLIENT_SECRET: client.secret,
  });
}

if (isFull)
  test('tokens that live 2 s cost a run of 30 s no id and no attempt', async ({ expect, onTestFinished }) => {
    const many = makeIds('t', 6_000);
    const harness = await openHarness(onTestFinished, { objects: annotations(many), client, tokenLifeSeconds: 2 });
    expect(await run(harness, ['--rate', '200/s'], many).ended).toMatchObject({ code: 0 });
    const { counts, attempts } = await harness.onlyRun();
    const refused = harness.sandbox.counts.byStatus.get(401) ?? 0;
    console.log(`tokens of 2 s: ${many.length} ids, ${harness.sandbox.counts.tokens} tokens, ${refused} × 401`);
    expect({ deleted: counts.deleted, attempts }).toEqual({ deleted: many.length, attempts: many.length });
    expect(harness.sandbox.counts.tokens).toBeGreaterThan(14);
  });

describe.concurrent('a run with client credentials', () => {
  test('whose tokens live 2 s loses no id to that, and no attempt', async ({ expect, onTestFinished }) => {
    const harness = await openHarness(onTestFinished, { objects, client, tokenLifeSeconds: 2 });
    const ended = run(harness, ['--rate', '100/s']);
    expect(await ended.ended).toMatchObject({ code: 0 });
    const summary = JSON.parse(ended.stdout.trimEnd().split('\n').at(-1)!);
    expect(summary).toMatchObject({ rows: 500, deleted: 500, attempts: 500, exit: 0 });
    expect(harness.sandbox.counts.tokens).toBeGreaterThan(2);
    expect(await findBrokenIn(harness, ids)).toBeNull();
  });

  test('whose token is revoked in the middle asks for one more, once, and uses no attempt', async ({
    expect,
    onTestFinished,
  }) => {
    const harness = await openHarness(onTestFinished, { objects, client, latencyMs: 20 });
    const ended = run(harness, ['--rate', '150/s']);
    await until('a part is deleted', () => harness.sandbox.counts.executed > ids.length / 2);
    harness.sandbox.revokeTokens();
    expect(await ended.ended).toMatchObject({ code: 0 });
    expect(JSON.parse(ended.stdout.trimEnd().split('\n').at(-1)!)).toMatchObject({ deleted: 500, attempts: 500 });
    expect(harness.sandbox.counts.tokens).toBe(2);
    expect(harness.sandbox.counts.byStatus.get(401)).toBeGreaterThan(0);
    expect(await findBrokenIn(harness, ids)).toBeNull();
  });

  test('waits while the token endpoint is down, and fails no id', async ({ expect, onTestFinished }) => {
    const tokenFaults = { status: 503, first: 2 };
    const harness = await openHarness(onTestFinished, { objects, client, tokenFaults });
    const ended = run(harness);
    expect(await ended.ended).toMatchObject({ code: 0 });
    expect(harness.sandbox.counts.byStatus.get(503)).toBe(2);
    expect(harness.sandbox.counts.byStatus.get(401)).toBeUndefined();
    expect(await findBrokenIn(harness, ids)).toBeNull();
  });

  test('ends with exit 5 when they are refused in the middle, and the same command goes on', async ({
    expect,
    onTestFinished,
  }) => {
    const harness = await openHarness(onTestFinished, { objects, client });
    const first = run(harness, ['--rate', '150/s']);
    await until('a part is deleted', () => harness.sandbox.counts.executed > 100);
    harness.sandbox.tokenFaults = { status: 401, error: 'invalid_client' };
    harness.sandbox.revokeTokens();
    expect(await first.ended).toMatchObject({ code: 5 });
    expect(first.stderr).toContain('401 invalid_client');
    harness.sandbox.tokenFaults = {};
    expect(await run(harness).ended).toMatchObject({ code: 0 });
    expect(await findBrokenIn(harness, ids)).toBeNull();
  });

  test('that are refused at first sends nothing: exit 5, and no secret anywhere', async ({
    expect,
    onTestFinished,
  }) => {
    const harness = await openHarness(onTestFinished, { objects, client: { ...client, secret: 'another' } });
    const ended = run(harness);
    expect(await ended.ended).toMatchObject({ code: 5 });
    expect(harness.sandbox.seen).toEqual(['POST /oauth/token']);
    expect(ended.stderr).toContain('401 invalid_client');
    expect(ended.stdout + ended.stderr).not.toContain('canary');
  });
});

describe.concurrent('two commands of one client', () => {
  test('on a server that keeps one live token per client: at least one is told so, exit 5', async ({
    expect,
    onTestFinished,
  }) => {
    const harness = await openHarness(onTestFinished, { objects, client, oneLiveToken: true, latencyMs: 10 });
    const half = [ids.slice(0, 250), ids.slice(250)];
    const endpoint = ['--token-url', harness.sandbox.tokenUrl, '--client-id', client.id];
    const env = { EXPUNGE_TOKEN: undefined, EXPUNGE_CLIENT_SECRET: client.secret };
    const both = half.map((part, i) => {
      const list = harness.file(`half-${i}.txt`, `${part.join('\n')}\n`);
      return harness.start(['run', list, '--resource', 'annotations', '--yes', '--rate', '40/s', ...endpoint], env);
    });
    const ends = await Promise.all(both.map(({ ended }) => ended));
    const told = both.filter(({ stderr }) => stderr.includes('only one live token per client'));
    expect(told.length).toBeGreaterThan(0);
    for (const [i, { code }] of ends.entries()) expect(code).toBe(told.includes(both[i]!) ? 5 : 0);
    expect(harness.sandbox.counts.tokens).toBeLessThan(30);
  });
});
