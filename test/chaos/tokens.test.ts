import { describe, test } from 'vitest';
import { findBroken } from '../support/checker.ts';
import { until } from '../support/processes.ts';
import { annotations, makeIds, openScene, type Scene } from '../support/scene.ts';

const ids = makeIds('t', 600);
const objects = annotations(ids);
const client = { id: 'abc', secret: 'canary-secret-4711' };

function run(scene: Scene, args: string[] = []) {
  const endpoint = ['--token-url', scene.sandbox.tokenUrl, '--client-id', client.id];
  const list = ['run', scene.list(ids), '--resource', 'annotations', '--yes', '--json'];
  return scene.expunge([...list, ...endpoint, ...args], {
    EXPUNGE_TOKEN: undefined,
    EXPUNGE_CLIENT_SECRET: client.secret,
  });
}

async function findTrouble(scene: Scene): Promise<string | null> {
  const { executed, answered204, exists } = scene.sandbox;
  const seen = scene.sandbox.seen.filter((request) => request !== 'POST /oauth/token');
  const sandbox = { seen, executed, answered204, exists };
  return findBroken({ ...scene, sandbox, run: await scene.run(), resource: 'annotations', ids, bystanders: [] });
}

describe.concurrent('a run with client credentials', () => {
  test('whose tokens live 2 s loses no id to that, and no attempt', async ({ expect, onTestFinished }) => {
    const scene = await openScene(onTestFinished, { objects, client, tokenLifeSeconds: 2 });
    const began = performance.now();
    const ended = run(scene, ['--rate', '100/s']);
    expect(await ended.ended).toMatchObject({ code: 0 });
    const summary = JSON.parse(ended.stdout.trimEnd().split('\n').at(-1)!);
    expect(summary).toMatchObject({ rows: 600, deleted: 600, attempts: 600, exit: 0 });
    expect(scene.sandbox.counts.tokens).toBeGreaterThan(2);
    expect(scene.sandbox.counts.tokens).toBeLessThan(2 + (performance.now() - began) / 1_400);
    expect(await findTrouble(scene)).toBeNull();
  });

  test('whose token is revoked in the middle asks for one more, once, and uses no attempt', async ({
    expect,
    onTestFinished,
  }) => {
    const scene = await openScene(onTestFinished, { objects, client, latencyMs: 20 });
    const ended = run(scene, ['--rate', '150/s']);
    await until('a part is deleted', () => scene.sandbox.counts.executed > ids.length / 2, 60_000);
    scene.sandbox.revokeTokens();
    expect(await ended.ended).toMatchObject({ code: 0 });
    expect(JSON.parse(ended.stdout.trimEnd().split('\n').at(-1)!)).toMatchObject({ deleted: 600, attempts: 600 });
    expect(scene.sandbox.counts.tokens).toBe(2);
    expect(scene.sandbox.counts.byStatus.get(401)).toBeGreaterThan(0);
    expect(await findTrouble(scene)).toBeNull();
  });

  test('waits while the token endpoint is down, and fails no id', async ({ expect, onTestFinished }) => {
    const tokenFaults = { status: 503, first: 2 };
    const scene = await openScene(onTestFinished, { objects, client, tokenFaults });
    const ended = run(scene);
    expect(await ended.ended).toMatchObject({ code: 0 });
    expect(scene.sandbox.counts.byStatus.get(503)).toBe(2);
    expect(scene.sandbox.counts.byStatus.get(401)).toBeUndefined();
    expect(await findTrouble(scene)).toBeNull();
  });

  test('ends with exit 5 when they are refused in the middle, and the same command goes on', async ({
    expect,
    onTestFinished,
  }) => {
    const scene = await openScene(onTestFinished, { objects, client });
    const first = run(scene, ['--rate', '150/s']);
    await until('a part is deleted', () => scene.sandbox.counts.executed > 100, 60_000);
    scene.sandbox.tokenFaults = { status: 401, error: 'invalid_client' };
    scene.sandbox.revokeTokens();
    expect(await first.ended).toMatchObject({ code: 5 });
    expect(first.stderr).toContain('401 invalid_client');
    scene.sandbox.tokenFaults = {};
    expect(await run(scene).ended).toMatchObject({ code: 0 });
    expect(await findTrouble(scene)).toBeNull();
  });

  test('that are refused at first sends nothing: exit 5, and no secret anywhere', async ({
    expect,
    onTestFinished,
  }) => {
    const scene = await openScene(onTestFinished, { objects, client: { ...client, secret: 'another' } });
    const ended = run(scene);
    expect(await ended.ended).toMatchObject({ code: 5 });
    expect(scene.sandbox.seen).toEqual(['POST /oauth/token']);
    expect(ended.stderr).toContain('401 invalid_client');
    expect(ended.stdout + ended.stderr).not.toContain('canary');
  });
});

describe.concurrent('two commands of one client', () => {
  test('on a server that keeps one live token per client: at least one is told so, exit 5', async ({
    expect,
    onTestFinished,
  }) => {
    const scene = await openScene(onTestFinished, { objects, client, oneLiveToken: true, latencyMs: 10 });
    const half = [ids.slice(0, 300), ids.slice(300)];
    const endpoint = ['--token-url', scene.sandbox.tokenUrl, '--client-id', client.id];
    const env = { EXPUNGE_TOKEN: undefined, EXPUNGE_CLIENT_SECRET: client.secret };
    const both = half.map((part, i) => {
      const list = scene.file(`half-${i}.txt`, `${part.join('\n')}\n`);
      return scene.expunge(['run', list, '--resource', 'annotations', '--yes', '--rate', '40/s', ...endpoint], env);
    });
    const ends = await Promise.all(both.map(({ ended }) => ended));
    const told = both.filter(({ stderr }) => stderr.includes('only one live token per client'));
    expect(told.length).toBeGreaterThan(0);
    for (const [i, { code }] of ends.entries()) expect(code).toBe(told.includes(both[i]!) ? 5 : 0);
    expect(scene.sandbox.counts.tokens).toBeLessThan(30);
  });
});
