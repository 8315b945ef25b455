import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { noteTarget } from '../../../src/ledger/known-targets.ts';
import { openApi, overServer } from '../../support/api.ts';
import { annotations, makeIds } from '../../support/ids.ts';

const labels = ['--label', 'ticket=OPS-77', '--label', 'team=ops'];
const facts = { team: 'ops', ticket: 'OPS-77' };

/** The run of a command that printed its summary last. */
function runIn({ stdout }: { stdout: string }): string {
  return JSON.parse(stdout.trimEnd().split('\n').at(-1)!).run;
}

test('labels of a run choose it in lists and are in all that is said of it', async () => {
  const api = await openApi(onTestFinished, { objects: annotations(makeIds('l', 4)), account: 'acme' });
  const { harness, redis, call } = api;
  await noteTarget(redis, harness.target, Date.now());
  harness.file('a.txt', 'l-0\nl-1\nnot-there\n');
  harness.file('b.txt', 'l-2\nl-3\n');
  const line = ['--resource', 'annotations', '--yes', '--expect-absent', '--json'];
  const labelled = await harness.run(['a.txt', ...line, ...labels]);
  expect(labelled.code, labelled.stderr).toBe(0);
  expect(await harness.run(['b.txt', ...line, '--label', 'ticket=OPS-7'])).toMatchObject({ code: 0 });
  const run = runIn(labelled);

  const env = await overServer(api, 'read');
  for (const options of [{}, { env }]) {
    const found = async (wanted: string) => {
      const { stdout } = await harness.expunge(['runs', '--label', wanted, '--json'], options);
      return stdout
        .split('\n')
        .filter(Boolean)
        .map((text) => JSON.parse(text));
    };
    expect(await found('ticket=OPS-77')).toMatchObject([{ run, labels: facts }]);
    expect(await found('ticket=OPS-77,team=ops')).toMatchObject([{ run }]);
    expect(await found('ticket=OPS-77,team=dev')).toEqual([]);
    expect((await harness.expunge(['status', run], options)).stdout).toContain('labels: team=ops, ticket=OPS-77');
  }
  const wrong = await harness.expunge(['runs', '--label', 'ticket']);
  expect(wrong).toMatchObject({ code: 2, stderr: expect.stringContaining('expected labels like ticket=OPS-77') });

  const listed = async (query: string) => (await call('read', `/runs?${query}`)).body.items;
  expect(await listed('label=ticket%3DOPS-77')).toMatchObject([{ run, labels: facts }]);
  expect(await listed('q=ops-77')).toMatchObject([{ run }]);
  expect(await listed('label=ticket%3DOPS-1')).toEqual([]);
  expect(await call('read', '/runs?label=x')).toMatchObject({ status: 400 });

  const page = await harness.expunge(['report', run, '--format', 'html']);
  expect(page.stdout).toContain('team=ops, ticket=OPS-77');
  await harness.expunge(['report', run, '--manifest', 'manifest.json']);
  expect(JSON.parse(readFileSync(join(harness.folder, 'manifest.json'), 'utf8'))).toMatchObject({ labels: facts });
});

test.each([
  ['keeps the labels of its run', [], 'team=ops,ticket=OPS-77'],
  ['has other labels if it gets them', ['--label', 'ticket=OPS-9'], 'ticket=OPS-9'],
])('a retry %s', async (_, more, labelsOfRetry) => {
  const { harness } = await openApi(onTestFinished, { objects: annotations([]), account: 'acme' });
  harness.file('a.txt', 'l-0\nl-1\n');
  const line = ['--resource', 'annotations', '--yes', '--expect-absent', '--json'];
  const run = runIn(await harness.run(['a.txt', ...line, ...labels]));
  const done = await harness.expunge(['retry', run, '--only', 'absent', '--yes', '--json', ...more]);
  expect(done.code, done.stderr).toBe(0);
  const retry = (await harness.runs()).find(({ id }) => id === runIn(done));
  expect(retry).toMatchObject({ labels: labelsOfRetry });
});
