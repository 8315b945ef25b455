import { generateKeyPairSync } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { summaryIn } from '../../support/command.ts';
import { openHarness } from '../../support/harness.ts';
import { configOf, know, knowDuringTests } from '../../support/resources.ts';

const resources = {
  dashboards: { path: '/v1/dashboards/{id}' },
  reports: { path: '/v1/reports/{id}', success: [200], absent: [404], auth: { header: 'x-api-key' } },
};
knowDuringTests(resources);

/** How the end of a certificate shows a definition. */
const full = {
  dashboards: {
    path: '/v1/dashboards/{id}',
    success: [204],
    absent: [404, 410],
    auth: { header: 'authorization', scheme: 'Bearer' },
    headers: {},
  },
  reports: {
    path: '/v1/reports/{id}',
    success: [200],
    absent: [404],
    auth: { header: 'x-api-key', scheme: '' },
    headers: {},
  },
};

type Listed = [resource: string, id: string, exists: boolean];

/** The signed certificate of a run of these objects, in the order of the list. */
async function certify(listed: Listed[]) {
  know(resources);
  const objects = listed.filter(([, , exists]) => exists).map(([resource, id]) => ({ resource, id }));
  const harness = await openHarness(onTestFinished, { objects });
  Object.assign(harness.env, configOf(harness, resources));
  harness.file('list.csv', `kind,id\n${listed.map(([resource, id]) => `${resource},${id}\n`).join('')}`);
  const ran = await harness.run(['list.csv', '--resource-column', 'kind', '--column', 'id', '--yes', '--json']);
  const { privateKey, publicKey } = generateKeyPairSync('ed25519');
  harness.file('key.pem', privateKey.export({ type: 'pkcs8', format: 'pem' }) as string);
  harness.file('public.pem', publicKey.export({ type: 'spki', format: 'pem' }) as string);
  const report = ['report', summaryIn(ran).run, '--certificate', '--sign-key', 'key.pem', '--output', 'proof.ndjson'];
  const made = await harness.expunge(report);
  // Whoever verifies it has neither Redis nor the definitions.
  const elsewhere = { REDIS_URL: 'redis://127.0.0.1:1', EXPUNGE_CONFIG: harness.file('none.json', '{}') };
  const verify = () =>
    harness.expunge(['certificate', 'verify', 'proof.ndjson', '--public-key', 'public.pem'], { env: elsewhere });
  const path = join(harness.folder, 'proof.ndjson');
  const lines = readFileSync(path, 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));
  return { harness, made, verify, path, rows: lines.slice(1, -1), end: lines.at(-1) };
}

describe('the certificate of a run of configured resources', () => {
  test('names the definition by which its ids count as deleted, and is whole where nobody knows the resource', async () => {
    const { harness, made, verify, rows, end } = await certify([
      ['reports', 'r-1', true],
      ['reports', 'r-2', false],
      ['reports', 'r-3', true],
    ]);
    expect(made.code, made.stderr).toBe(0);
    expect(rows.map(({ resource, id, outcome, status }) => [resource, id, outcome, status])).toEqual([
      ['reports', 'r-1', 'deleted', 200],
      ['reports', 'r-2', 'absent', 404],
      ['reports', 'r-3', 'deleted', 200],
    ]);
    expect(end).toMatchObject({ rows: 3, counts: { deleted: 2, absent: 1 }, resources: { reports: full.reports } });
    expect(Object.keys(end.resources)).toEqual(['reports']);
    expect(await verify()).toMatchObject({ code: 0 });
    expect(harness.sandbox.seen).toHaveLength(3);
  });

  test('of a mixed list has the rows of all in the order of the list, and only the definitions that are configured', async () => {
    const { made, verify, rows, end } = await certify([
      ['annotations', 'x-1', true],
      ['reports', 'x-1', true],
      ['dashboards', 'x-2', true],
      ['annotations', 'x-2', false],
      ['dashboards', 'x-1', false],
      ['reports', 'x-1', true],
    ]);
    expect(made.code, made.stderr).toBe(0);
    expect(rows.map(({ line, resource, id, outcome, status }) => [line, resource, id, outcome, status])).toEqual([
      [2, 'annotations', 'x-1', 'deleted', 204],
      [3, 'reports', 'x-1', 'deleted', 200],
      [4, 'dashboards', 'x-2', 'deleted', 204],
      [5, 'annotations', 'x-2', 'absent', 404],
      [6, 'dashboards', 'x-1', 'absent', 404],
      [7, 'reports', 'x-1', 'duplicate', null],
    ]);
    expect(end.resources).toEqual(full);
    expect(await verify()).toMatchObject({ code: 0 });
  });

  test('of annotations alone names no definition, whatever else is configured', async () => {
    const { end } = await certify([['annotations', 'a-1', true]]);
    expect(end).not.toHaveProperty('resources');
  });

  test('reveals another definition: its line is named', async () => {
    const { verify, path } = await certify([['reports', 'r-1', true]]);
    writeFileSync(path, readFileSync(path, 'utf8').replace('"success":[200]', '"success":[204]'));
    expect(await verify()).toMatchObject({ code: 1, stderr: 'proof.ndjson:3: it was changed\n' });
  });
});
