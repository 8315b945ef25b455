import { expect, onTestFinished, test } from 'vitest';
import type { HaltExample } from '../../../src/ledger/halt-examples.ts';
import { readEvents } from '../../../src/ledger/outbox.ts';
import { readRun } from '../../../src/ledger/run.ts';
import type { FaultKind } from '../../../src/sandbox/fault-kinds.ts';
import { publishChanges } from '../../../src/worker/event-sources.ts';
import { openApi } from '../../support/api.ts';
import { summaryIn } from '../../support/command.ts';
import { annotations, makeIds } from '../../support/ids.ts';

// What an operator needs to decide is where the operator decides: the ids behind a halt, what was answered, and how to see all of them.

const ids = makeIds('h', 40);
const locked = (fault: FaultKind) => (_: string, id: string) => (ids.indexOf(id) % 4 === 3 ? fault : null);

async function halt(args: string[], fault: FaultKind = 'status-422') {
  const api = await openApi(onTestFinished, { objects: annotations(ids), faults: { script: locked(fault) } });
  const { harness } = api;
  const ended = await harness.run([harness.list(ids), '--resource', 'annotations', '--yes', '--json', ...args]);
  expect(ended).toMatchObject({ code: 4 });
  return { ...api, ended, summary: summaryIn(ended) };
}

test.each([
  ['--max-failures', ['--max-failures', '1']],
  ['--canary', ['--canary', '20']],
])('a halt by %s shows failing ids with their answers in every place', async (_, args) => {
  const { harness, call, ended, summary } = await halt(args);
  const { run, examples } = summary as typeof summary & { examples: HaltExample[] };
  expect(examples[0]).toEqual({ id: ids[3], outcome: 'failed', code: 'http_422', excerpt: expect.stringMatching(/./) });
  expect(examples.length).toBeGreaterThan(1);
  expect(examples.length).toBeLessThanOrEqual(5);
  const line = `    ${ids[3]}: failed, http_422 "${examples[0]!.excerpt}"`;
  expect(ended.stderr).toContain(`  For example:\n${line}\n`);
  expect(ended.stderr).toMatch(new RegExp(`  See all of them: \\S.* report ${run} --only failed\\n`));
  const status = await harness.expunge(['status', run]);
  expect(status.stdout).toContain(`  for example:\n${line}\n`);
  expect(status.stdout).toMatch(new RegExp(`  all of them: \\S.* report ${run} --only failed\\n`));
  expect(JSON.parse((await harness.expunge(['status', run, '--json'])).stdout)).toMatchObject({ examples });
  expect((await call('read', `/runs/${run}`)).body).toMatchObject({ examples, behind_halt: 'failed' });
  const record = (await readRun(harness.redis, run))!;
  await publishChanges(harness.redis, record, { changes: record.changes, published: 0 });
  const halted = (await readEvents(harness.redis, record.fp, 0, 10)).find(({ event }) => event.type === 'run.halted');
  expect(halted?.event.data).toMatchObject({ examples });
  expect(halted?.event.text).toContain(`${ids[3]}: failed, http_422`);
  const all = await harness.expunge(['report', run, '--only', 'failed', '--format', 'ndjson']);
  expect(all.stdout).toContain(`"${ids[3]}"`);
});

test('a halt by a status that stops a run names the id and the answer, though the id stays open', async () => {
  const { ended, summary } = await halt(['--on-status', '422=halt']);
  expect(summary).toMatchObject({
    examples: [],
    reason: expect.stringMatching(/the API answered 422.*: h-0+\d+.*, answered "/),
  });
  expect(ended.stderr).toContain(summary.reason);
});

test('a run that is not halted shows none', async () => {
  const { harness, summary, call } = await halt(['--max-failures', '1']);
  await harness.expunge(['cancel', summary.run, '--yes']);
  expect((await call('read', `/runs/${summary.run}`)).body).toMatchObject({ examples: [], behind_halt: null });
});
