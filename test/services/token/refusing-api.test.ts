import { describe, test } from 'vitest';
import type { RunState } from '../../../src/ledger/run.ts';
import { type AtEnd, type Harness, openHarness } from '../../support/harness.ts';
import { makeIds } from '../../support/ids.ts';
import { type RefusingApi, refusalText, startRefusingApi } from '../../support/refusing-api.ts';

const ids = makeIds('t', 300);

type Kind = 'a fixed token' | 'a token file' | 'a token command' | 'client credentials';
const kinds: Kind[] = ['a fixed token', 'a token file', 'a token command', 'client credentials'];

function sourceOf(kind: Kind, harness: Harness, api: RefusingApi): { args: string[]; env: NodeJS.ProcessEnv } {
  const noToken = { EXPUNGE_TOKEN: undefined };
  switch (kind) {
    case 'a fixed token':
      return { args: [], env: { EXPUNGE_TOKEN: 'given' } };
    case 'a token file':
      return { args: ['--token-file', harness.file('token', 'given')], env: noToken };
    case 'a token command':
      return { args: ['--token-command', 'echo given'], env: noToken };
    case 'client credentials':
      return {
        args: ['--token-url', api.tokenUrl, '--client-id', 'abc'],
        env: { EXPUNGE_TOKEN: undefined, EXPUNGE_CLIENT_SECRET: 'canary-secret-4711' },
      };
  }
}

async function runAt(atEnd: AtEnd, kind: Kind, refusing: Parameters<typeof startRefusingApi>[1], more: string[] = []) {
  const api = await startRefusingApi(atEnd, refusing);
  const harness = await openHarness(atEnd);
  const { args, env } = sourceOf(kind, harness, api);
  const list = harness.list(ids);
  const command = ['run', list, '--resource', 'annotations', '--yes', '--json', ...more, ...args];
  const running = harness.spawn(command, { ...env, EXPUNGE_BASE_URL: api.url });
  const { code } = await running.ended;
  return { api, code, stderr: running.stderr, summary: JSON.parse(running.stdout.trimEnd().split('\n').at(-1)!) };
}

/** The same list, left to several processes of a worker, until its run is in this state. */
async function workAt(atEnd: AtEnd, kind: Kind, refusing: Parameters<typeof startRefusingApi>[1], state: RunState) {
  const api = await startRefusingApi(atEnd, refusing);
  const harness = await openHarness(atEnd);
  const { args, env } = sourceOf(kind, harness, api);
  const withApi = { ...env, EXPUNGE_BASE_URL: api.url };
  const worker = harness.spawn(['worker', '--workers', '3', ...args], withApi);
  const submitted = await harness.run([harness.list(ids), '--resource', 'annotations', '--yes', '--detach', ...args], {
    env: withApi,
  });
  if (submitted.code !== 0) throw new Error(submitted.stderr);
  const run = await harness.runIs(state, (now) => now.state === state, 60_000);
  return { api, run, stderr: worker.stderr };
}

const allDone = { rows: ids.length, deleted: ids.length, attempts: ids.length, exit: 0 };

describe.concurrent('an API that learns late of a token', () => {
  for (const kind of kinds)
    test.for([100, 1_000, 5_000])(`loses no id and no attempt: ${kind}, %i ms`, async (lateMs, context) => {
      const { api, summary, stderr } = await runAt(context.onTestFinished, kind, { lateMs });
      context.expect(summary, stderr).toMatchObject(allDone);
      context
        .expect([api.executed.size, api.refused > 0 || lateMs === 100, api.refused < 50])
        .toEqual([ids.length, true, true]);
      context.expect(api.tokens).toBeLessThanOrEqual(1);
    });
});

describe.concurrent('an API of which one node refuses every token', () => {
  for (const kind of kinds)
    test.for([2, 3, 5])(`loses no id and no attempt: ${kind}, one node of %i`, async (nodes, context) => {
      const { api, summary, stderr } = await runAt(context.onTestFinished, kind, { nodes });
      context.expect(summary, stderr).toMatchObject(allDone);
      context.expect([api.executed.size, api.refused > 10]).toEqual([ids.length, true]);
    });

  test.for([0, 1_000])('and which learns of tokens after %i ms, while they are replaced', async (lateMs, context) => {
    const refusing = { nodes: 2, lateMs, lifeSeconds: 10 };
    const rate = ['--rate', '25/s']; // longer than a token lives
    const { api, summary, stderr } = await runAt(context.onTestFinished, 'client credentials', refusing, rate);
    context.expect(summary, stderr).toMatchObject(allDone);
    context.expect(api.tokens).toBeGreaterThan(1);
  });

  test('loses none of a run that several processes delete either', async (context) => {
    const refusing = { nodes: 2, lateMs: 1_000 };
    const { run, stderr } = await workAt(context.onTestFinished, 'client credentials', refusing, 'completed');
    context.expect(run, stderr).toMatchObject({ counts: { deleted: ids.length }, attempts: ids.length });
  });
});

describe.concurrent('a token that is dead', () => {
  for (const kind of kinds)
    test(`halts the run within 10 s and 50 requests, in the words of the API: ${kind}`, async (context) => {
      const { api, code, stderr, summary } = await runAt(context.onTestFinished, kind, { isDead: true });
      context.expect([code, summary.deleted, api.executed.size], stderr).toEqual([5, 0, 0]);
      context.expect(stderr).toContain(refusalText);
      context.expect(api.refusedAt.last - api.refusedAt.first).toBeLessThan(10_000);
      context.expect(api.refused).toBeLessThan(50);
    });

  test('halts the run that several processes delete as soon', async (context) => {
    const { api, run, stderr } = await workAt(context.onTestFinished, 'a fixed token', { isDead: true }, 'halted');
    context.expect([run.halt, api.executed.size], stderr).toEqual(['credentials', 0]);
    context.expect(api.refusedAt.last - api.refusedAt.first).toBeLessThan(10_000);
    context.expect(api.refused).toBeLessThan(50);
  });
});
