import { expect, onTestFinished, test } from 'vitest';
import { annotations, makeIds, openHarness } from '../support/harness.ts';

test('tokens that live 2 s cost a run of 30 s no id and no attempt', async () => {
  const ids = makeIds('t', 6_000);
  const client = { id: 'abc', secret: 'canary-secret-4711' };
  const harness = await openHarness(onTestFinished, { objects: annotations(ids), client, tokenLifeSeconds: 2 });
  const endpoint = ['--token-url', harness.sandbox.tokenUrl, '--client-id', client.id];
  const credentials = { EXPUNGE_TOKEN: undefined, EXPUNGE_CLIENT_SECRET: client.secret };
  const run = ['run', harness.list(ids), '--resource', 'annotations', '--yes', '--rate', '200/s', ...endpoint];
  const running = harness.expunge(run, credentials);
  expect(await running.ended, running.stderr).toMatchObject({ code: 0 });
  const { counts, attempts } = await harness.run();
  const refused = harness.sandbox.counts.byStatus.get(401) ?? 0;
  console.log(`tokens of 2 s: ${ids.length} ids, ${harness.sandbox.counts.tokens} tokens, ${refused} × 401`);
  expect({ deleted: counts.deleted, attempts }).toEqual({ deleted: ids.length, attempts: ids.length });
  expect(harness.sandbox.counts.tokens).toBeGreaterThan(14);
});
