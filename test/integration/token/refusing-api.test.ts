import { describe, test } from 'vitest';
import { type AtEnd, type Harness, openHarness } from '../../support/harness.ts';
import { makeIds } from '../../support/ids.ts';
import { type RefusingApi, refusalText, startRefusingApi } from '../../support/refusing-api.ts';

const ids = makeIds('t', 100);
const none = { EXPUNGE_TOKEN: undefined };

/** Where a token comes from: arguments, and variables. */
type Source = (harness: Harness, api: RefusingApi) => [args: string[], env: NodeJS.ProcessEnv];

const sources: Record<string, Source> = {
  'a fixed token': () => [[], { EXPUNGE_TOKEN: 'given' }],
  'a token file': (harness) => [['--token-file', harness.file('token', 'given')], none],
  'a token command': () => [['--token-command', 'echo given'], none],
  'client credentials': (_, api) => [
    ['--token-url', api.tokenUrl, '--client-id', 'abc'],
    { ...none, EXPUNGE_CLIENT_SECRET: 'canary-secret-4711' },
  ],
};

async function runAt(atEnd: AtEnd, source: Source, refusing: Parameters<typeof startRefusingApi>[1]) {
  const api = await startRefusingApi(atEnd, refusing);
  const harness = await openHarness(atEnd);
  const [args, env] = source(harness, api);
  const command = [harness.list(ids), '--resource', 'annotations', '--yes', '--json', ...args];
  const { code, stdout, stderr } = await harness.run(command, { env: { ...env, EXPUNGE_BASE_URL: api.url } });
  return { api, code, stderr, summary: JSON.parse(stdout.trimEnd().split('\n').at(-1)!) };
}

describe.concurrent('an API that refuses tokens', () => {
  test.for(Object.entries(sources))(
    'of which it learns late, and that one of its nodes does not know, costs no id and no attempt: %s',
    async ([, source], { expect, onTestFinished }) => {
      const { api, summary, stderr } = await runAt(onTestFinished, source, { lateMs: 500, nodes: 3 });
      const all = { rows: ids.length, deleted: ids.length, attempts: ids.length, exit: 0 };
      expect(summary, stderr).toMatchObject(all);
      expect([api.executed.size, api.refused > 0]).toEqual([ids.length, true]);
    },
  );

  test.for(['a fixed token', 'client credentials'])(
    'halts a run whose token is dead before 50 requests, in its own words: %s',
    async (name, { expect, onTestFinished }) => {
      const { api, code, stderr, summary } = await runAt(onTestFinished, sources[name]!, { isDead: true });
      expect([code, summary.deleted, api.executed.size], stderr).toEqual([5, 0, 0]);
      expect(stderr).toContain(refusalText);
      expect(api.refused).toBeLessThan(50);
    },
  );
});
