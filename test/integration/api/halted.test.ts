import { beforeAll, expect, onTestFinished, test } from 'vitest';
import type { HaltExample } from '../../../src/ledger/halt-examples.ts';
import { readEvents } from '../../../src/ledger/outbox.ts';
import { publishChanges } from '../../../src/worker/event-sources.ts';
import { type Api, openApi } from '../../support/api.ts';
import { summaryIn } from '../../support/command.ts';
import { atEndOfTests, openHarness } from '../../support/harness.ts';
import { annotations, makeIds } from '../../support/ids.ts';
import { loadScene } from '../../support/scenes.ts';

// What an operator needs to decide is where the operator decides: the ids behind a halt, what was answered, and how to see all of them.

let api: Api;
const atEnd = atEndOfTests();
beforeAll(async () => {
  api = await openApi(atEnd);
});

test.each(['maxFailures', 'canary'] as const)(
  'a halt shows failing ids with their answers in every place: %s',
  async (name) => {
    const { harness, redis, call } = api;
    const run = await loadScene(redis, name);
    const status = await harness.expunge(['status', run.id]);
    const { examples } = summaryIn(await harness.expunge(['status', run.id, '--json'])) as unknown as {
      examples: HaltExample[];
    };
    expect(examples[0]).toEqual({
      id: 'g-000000',
      outcome: 'failed',
      code: 'http_400',
      excerpt: expect.stringMatching(/./),
    });
    expect(examples).toHaveLength(5);
    expect(status.stdout).toContain(`  for example:\n    g-000000: failed, http_400 "${examples[0]!.excerpt}"\n`);
    expect(status.stdout).toMatch(new RegExp(`  all of them: \\S.* report ${run.id} --only failed\\n`));
    expect((await call('read', `/runs/${run.id}`)).body).toMatchObject({ examples, behind_halt: 'failed' });
    await publishChanges(redis, run, { changes: run.changes, published: 0 });
    const halted = (await readEvents(redis, run.fp, 0, 10)).find(({ event }) => event.type === 'run.halted');
    expect(halted?.event.data).toMatchObject({ examples });
    expect(halted?.event.text).toContain('g-000000: failed, http_400');
    const all = await harness.expunge(['report', run.id, '--only', 'failed', '--format', 'ndjson']);
    expect(all.stdout).toContain('"g-000000"');

    await harness.expunge(['cancel', run.id, '--yes']);
    expect((await call('read', `/runs/${run.id}`)).body, 'a run that is not halted').toMatchObject({
      examples: [],
      behind_halt: null,
    });
  },
);

test.each([
  [
    'a guard, which names ids',
    ['--max-failures', '1', '--expect', '422'],
    /For example:\n {4}h-0+\d: failed, http_422 "[\s\S]* {2}See all of them: \S.* report \S+ --only failed\n/,
  ],
  [
    'a status, which names the id that stays open',
    ['--on-status', '422=halt'],
    /the API answered 422.*: h-0+\d+.*, answered "/,
  ],
])('the end of a run is told that was halted by %s', async (_, args, words) => {
  const ids = makeIds('h', 10);
  const harness = await openHarness(onTestFinished, { objects: annotations(ids), faults: { 'status-422': 1 } });
  const ended = await harness.run([harness.list(ids), '--resource', 'annotations', '--yes', ...args]);
  expect([ended.code, ended.stderr]).toEqual([4, expect.stringMatching(words)]);
});
