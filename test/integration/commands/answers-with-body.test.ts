import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, onTestFinished, test } from 'vitest';
import { type Api, openApi } from '../../support/api.ts';
import { type Framing, openBodyServer } from '../../support/body-server.ts';
import { summaryIn } from '../../support/command.ts';
import { atEndOfTests } from '../../support/harness.ts';
import { textOf } from '../../support/html.ts';
import { makeIds } from '../../support/ids.ts';

const ids = makeIds('b', 40);
const rows = { rows: ids.length, deleted: ids.length, pending: 0 };

let api: Api;
const atEnd = atEndOfTests();
beforeAll(async () => {
  api = await openApi(atEnd);
});

/** All that shows the run, each with what it says. */
async function sayingsOf(run: string, stderr: string): Promise<Record<string, string>> {
  const { call, harness } = api;
  const page = join(harness.folder, 'page.html');
  await harness.expunge(['report', run, '--format', 'html', '--output', page]);
  return {
    ending: stderr,
    status: (await harness.expunge(['status', run])).stdout,
    page: textOf(readFileSync(page, 'utf8')),
    api: (await call('read', `/runs/${run}`)).body.warnings.join('\n'),
  };
}

/** The ids of a list deleted in the foreground, and what tells of it. */
async function deleteAt(framing: Framing) {
  const { harness } = api;
  const server = await openBodyServer(onTestFinished, framing);
  const args = [harness.list(ids), '--resource', 'annotations', '--yes', '--json'];
  const done = await harness.run(args, { env: { EXPUNGE_BASE_URL: server.url } });
  const summary = summaryIn(done);
  const status = await harness.expunge(['status', summary.run, '--json']);
  return {
    server,
    code: done.code,
    summary,
    summaries: [summary, summaryIn(status), (await api.call('read', `/runs/${summary.run}`)).body],
    sayings: await sayingsOf(summary.run, done.stderr),
  };
}

test.for(['length', 'chunked', 'samePacket', 'samePacketAnswer'] as const)(
  'a run whose 204s come with a body deletes its ids, and all that shows it says so: %s',
  async (framing) => {
    const { server, code, summaries, sayings } = await deleteAt(framing);
    expect(code).toBe(0);
    for (const summary of summaries) expect(summary).toMatchObject({ ...rows, answers_with_body: ids.length });
    expect([server.requests.length, server.deleted.size]).toEqual([ids.length, ids.length]);
    const sentence = '40 answers were 204 with a body, which HTTP does not allow: is it the API that answers?';
    for (const saying of Object.values(sayings)) expect(saying).toContain(sentence);
  },
);

test('a run whose bodies come in a later packet takes no id for absent or failed, and says that they come', async () => {
  const { server, code, summary, sayings } = await deleteAt('laterPacket');
  expect(code).toBe(0);
  // A late body leaves the request in doubt that it meets: then the id is asked for again, and found gone.
  expect(summary).toMatchObject({ pending: 0, absent: 0, failed: 0, unknown: 0 });
  expect(Number(summary.deleted) + Number(summary.gone_unconfirmed)).toBe(ids.length);
  expect(server.deleted.size).toBe(ids.length);
  expect(summary.answers_with_body).toBeGreaterThan(0);
  for (const saying of Object.values(sayings)) expect(saying).toMatch(/\d+ answers? (was|were) 204 with a body/);
});

test.for(['proper', 'lengthZero'] as const)(
  'a run whose 204s have no body says nothing of bodies: %s',
  async (framing) => {
    const { code, summaries, sayings } = await deleteAt(framing);
    expect(code).toBe(0);
    for (const summary of summaries) expect(summary).toMatchObject({ ...rows, answers_with_body: 0 });
    for (const saying of Object.values(sayings)) expect(saying).not.toContain('with a body');
  },
);

test('one id whose body comes after its run has ended is enough to be told', async () => {
  const server = await openBodyServer(onTestFinished, 'laterPacket');
  const args = [api.harness.list(['b-1']), '--resource', 'annotations', '--yes', '--json'];
  const done = await api.harness.run(args, { env: { EXPUNGE_BASE_URL: server.url } });
  expect(summaryIn(done)).toMatchObject({ deleted: 1, answers_with_body: 1, exit: 0 });
  expect(done.stderr).toContain('1 answer was 204 with a body, which HTTP does not allow: is it the API that answers?');
});
