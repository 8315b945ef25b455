import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { loadConfig } from '../../../src/config/read-config.ts';
import { readChunks } from '../../../src/input/chunk-ids.ts';
import { spoolRows } from '../../../src/input/spool.ts';
import { planRun, writeRun } from '../../../src/ledger/create-run.ts';
import type { Row } from '../../../src/model/row.ts';
import { targetOf } from '../../../src/model/target.ts';
import { sealPlan } from '../../../src/operations/sealed-plan.ts';
import type { RedisClient } from '../../../src/redis/client.ts';
import { keys } from '../../../src/redis/keys.ts';
import { openTestRedis } from '../../support/redis.ts';
import { forgetRun } from './lone-run.ts';

const id = '20260101-0000-bltn';
const folder = mkdtempSync(join(tmpdir(), 'expunge-'));
let redis: RedisClient;
beforeAll(async () => {
  redis = await openTestRedis();
  await forgetRun(redis, id);
});
afterAll(async () => {
  rmSync(folder, { recursive: true });
  await forgetRun(redis, id);
  redis.disconnect();
});

const target = targetOf('https://api.example.com', 'acme');
const now = Date.UTC(2026, 0, 1);

/** Annotations and views, one of them twice, one protected and one rejected. */
async function* batches(): AsyncGenerator<Row[]> {
  const kinds = ['annotations', 'views'] as const;
  yield Array.from(
    { length: 600 },
    (_, n): Row => ({
      file: 0,
      line: n + 2,
      resource: kinds[n % 2]!,
      id: n === 300 ? 'x-000100' : n === 301 ? 'a/b' : `x-${String(n).padStart(6, '0')}`,
      reject: n === 301 ? 'unsafe_character' : null,
    }),
  );
}

async function* guarded(): AsyncGenerator<string[]> {
  yield ['x-000007'];
}

/** The fields of a record that differ from one Redis process to another. */
const ofRedis = /^(server|process|acceptedAt|changedAt|history)/;

/**
 * The fixture was written before resources could be configured. Whoever has lists, plans and runs of annotations and views keeps finding them.
 */
test('lists, plans and runs of annotations and views are byte for byte as they always were', async () => {
  const spool = await spoolRows(batches(), folder, { files: ['old.csv'], protectedIds: guarded(), limit: null });
  const { config } = loadConfig({ flags: { resourceColumn: 'resource' }, env: {}, configFile: null });
  const origin = { planned_at: '2026-01-01T00:00:00.000Z', planned_by: 'ana', approve_by: null, reason: 'OPS-1' };
  const plan = sealPlan(origin, config, target, { spool, rejectsFile: null, openEnd: null, counts: null } as never);
  const made = planRun(config, target, spool, {
    options: {},
    note: 'OPS-1',
    retryOf: '',
    detached: true,
    who: 'ana',
    command: 'expunge run old.csv',
  });
  await writeRun(redis, id, made, readChunks(spool), now, () => {});
  const record = await redis.hgetall(keys.run(id));
  const stored = Object.entries(record).filter(([name]) => !ofRedis.test(name));
  const found = {
    spool: { ...spool, folder: '', resources: undefined },
    list: made.list,
    plan,
    keys: [keys.run(id), keys.manifest(id, 0), keys.list(made.list), keys.semantics(target.fp)],
    record: Object.fromEntries(stored.sort()),
    manifest: await Promise.all(
      [0, 1, 2].map(async (n) => (await redis.getBuffer(keys.manifest(id, n)))?.toString('hex')),
    ),
    ledger: (await redis.getBuffer(keys.ledger(id, 0)))?.toString('hex'),
  };
  const before = JSON.parse(readFileSync('test/fixtures/built-in-resources.json', 'utf8'));
  expect(JSON.parse(JSON.stringify(found))).toEqual(before);
});
