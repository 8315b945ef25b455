import { expect, onTestFinished, test } from 'vitest';
import { annotations, makeIds, openScene } from '../support/scene.ts';

test('tokens that live 2 s cost a run of 30 s no id and no attempt', async () => {
  const ids = makeIds('t', 6_000);
  const client = { id: 'abc', secret: 'canary-secret-4711' };
  const scene = await openScene(onTestFinished, { objects: annotations(ids), client, tokenLifeSeconds: 2 });
  const endpoint = ['--token-url', scene.sandbox.tokenUrl, '--client-id', client.id];
  const credentials = { EXPUNGE_TOKEN: undefined, EXPUNGE_CLIENT_SECRET: client.secret };
  const run = ['run', scene.list(ids), '--resource', 'annotations', '--yes', '--rate', '200/s', ...endpoint];
  const running = scene.expunge(run, credentials);
  expect(await running.ended, running.stderr).toMatchObject({ code: 0 });
  const { counts, attempts } = await scene.run();
  const refused = scene.sandbox.counts.byStatus.get(401) ?? 0;
  console.log(`tokens of 2 s: ${ids.length} ids, ${scene.sandbox.counts.tokens} tokens, ${refused} × 401`);
  expect({ deleted: counts.deleted, attempts }).toEqual({ deleted: ids.length, attempts: ids.length });
  expect(scene.sandbox.counts.tokens).toBeGreaterThan(14);
});
