import { afterEach, describe, expect, onTestFinished, test } from 'vitest';
import { type Definition, defineResources } from '../../../src/model/resource.ts';
import type { FaultKind } from '../../../src/sandbox/fault-kinds.ts';
import { openDeleteServer } from '../../support/delete-server.ts';
import { type AtEnd, openHarness } from '../../support/harness.ts';
import { annotations, makeIds } from '../../support/ids.ts';
import { forgetTarget } from '../../support/redis-keys.ts';

afterEach(() => defineResources({}));

const ids = makeIds('n', 60);
const struck = ids.filter((_, n) => n % 20 === 3);
const once = { annotations: { repeat: 'never' } };

/** A list of built-in objects, of which some are deleted with an answer that does not say so, and how often each was asked for. */
async function openStruck(atEnd: AtEnd, kind: FaultKind, resources: object) {
  const requests = new Map<string, number>();
  const script = (_: string, id: string, nth: number) => {
    requests.set(id, (requests.get(id) ?? 0) + 1);
    return struck.includes(id) && nth === 1 ? kind : null;
  };
  const harness = await openHarness(atEnd, { objects: annotations(ids), faults: { script } });
  const config = harness.file('c.json', JSON.stringify({ resources }));
  const env = { EXPUNGE_CONFIG: config, EXPUNGE_REQUEST_TIMEOUT_MS: '1000' };
  const expunge = (...args: string[]) => harness.expunge(args, { env });
  const list = harness.list(ids);
  const run = () => expunge('run', list, '--resource', 'annotations', '--yes');
  const twice = () => [...requests.values()].filter((count) => count > 1).length;
  return { harness, expunge, run, requests, twice };
}

describe('a DELETE that is never repeated', () => {
  const unclear = ['status-503-executed', 'status-408-executed', 'reset-executed', 'hang-executed'] as const;

  test.for(unclear)('leaves its id unknown at once, and nothing sends it again: %s', async (kind) => {
    const { harness, expunge, run, requests, twice } = await openStruck(onTestFinished, kind, once);
    const { code, stderr } = await run();
    const { id, counts } = await harness.onlyRun();
    expect([code, counts.unknown, counts.deleted], stderr).toEqual([3, struck.length, ids.length - struck.length]);
    expect([requests.size, twice()]).toEqual([ids.length, 0]);
    expect(stderr).toContain('no DELETE of annotations is repeated once it may have been executed');
    expect(stderr).not.toContain('Retry the others');

    const retry = await expunge('retry', id, '--yes');
    expect([retry.code, retry.stderr]).toEqual([
      0,
      expect.stringContaining('that may have been executed are left out'),
    ]);
    const verify = await expunge('verify', id, '--sample', '60', '--yes');
    expect([verify.code, verify.stderr]).toEqual([
      4,
      expect.stringContaining('a DELETE of annotations is never repeated'),
    ]);
    expect(twice()).toBe(0);
  });

  test.for(unclear)('is repeated if nothing forbids it: %s', async (kind) => {
    const { harness, run, twice } = await openStruck(onTestFinished, kind, {});
    await run();
    expect(twice()).toBe(struck.length);
    expect((await harness.onlyRun()).counts.gone_unconfirmed).toBe(struck.length);
  });

  test('is sent again after a refusal that cannot have executed it', async () => {
    const { harness, run, twice } = await openStruck(onTestFinished, 'status-429-seconds', once);
    expect((await run()).code).toBe(0);
    expect([twice(), (await harness.onlyRun()).counts.deleted]).toEqual([struck.length, ids.length]);
  });
});

/** An API whose first DELETE deactivates a user and whose second deletes for good. Some answers are lost. */
async function openUsers(atEnd: AtEnd, definition: Partial<Definition>) {
  const state = new Map<string, 'deactivated' | 'purged'>();
  const lost = ids.slice(0, 3);
  const server = await openDeleteServer(atEnd, (path) => {
    const id = decodeURIComponent(path.split('/').at(-1)!);
    const before = state.get(id);
    if (before === 'purged') return 404;
    state.set(id, before === undefined ? 'deactivated' : 'purged');
    return before === undefined && lost.includes(id) ? 503 : 204;
  });
  const harness = await openHarness(atEnd);
  atEnd(() => forgetTarget(server.url));
  const configure = (more: Partial<Definition>) =>
    harness.file('c.json', JSON.stringify({ resources: { users: { path: '/api/v1/users/{id}', ...more } } }));
  const env = { EXPUNGE_BASE_URL: server.url, EXPUNGE_CONFIG: configure(definition) };
  const expunge = (...args: string[]) => harness.expunge(args, { env });
  await expunge('run', harness.list(ids), '--resource', 'users', '--yes');
  const { id, counts } = await harness.onlyRun();
  const purged = () => [...state.values()].filter((now) => now === 'purged').length;
  return { id, counts, configure, purged, verify: () => expunge('verify', id, '--sample', '20', '--yes') };
}

describe('an API whose second DELETE does more than the first', () => {
  test('purges nobody if its definition says never', async () => {
    const { counts, purged, verify } = await openUsers(onTestFinished, { repeat: 'never' });
    expect([counts.deleted, counts.unknown]).toEqual([57, 3]);
    expect([(await verify()).code, purged()]).toEqual([4, 0]);
  });

  test('purges users by a retry if nothing is said, but not by verify', async () => {
    const { counts, purged, verify } = await openUsers(onTestFinished, {});
    expect([counts.deleted, purged()]).toEqual([60, 3]);
    const { code, stderr } = await verify();
    expect([code, stderr]).toEqual([4, expect.stringContaining('"repeat": "harmless"')]);
    expect(purged()).toBe(3);
  });

  test('is asked by verify once somebody says that this is harmless', async () => {
    const { configure, purged, verify } = await openUsers(onTestFinished, {});
    configure({ repeat: 'harmless' }); // the same way to delete: the run is still that of this definition
    expect((await verify()).code).toBe(3);
    expect(purged()).toBeGreaterThan(3);
  });
});
