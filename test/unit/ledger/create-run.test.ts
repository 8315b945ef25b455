import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { createSpoolFolder, type Spool, spoolRows } from '../../../src/input/spool.ts';
import { planRun, type RunPlan, rungsLeft } from '../../../src/ledger/create-run.ts';
import type { RunSettings } from '../../../src/ledger/run-rules.ts';
import type { Row } from '../../../src/model/row.ts';
import { hashList, targetOf } from '../../../src/model/target.ts';
import { always } from '../../../src/model/time-window.ts';

let stateDir = '';
beforeEach(() => {
  stateDir = mkdtempSync(join(tmpdir(), 'expunge-'));
});
afterEach(() => rmSync(stateDir, { recursive: true }));

/** A spool of so many views, one that is listed twice, one that is no id, and one that is protected. */
async function spoolOf(views: number): Promise<Spool> {
  const row = (id: string, i: number, reject: Row['reject'] = null): Row => {
    return { file: 0, line: i + 2, resource: 'views', id, reject };
  };
  const ids = Array.from({ length: views }, (_, i) => row(`v-${i}`, i));
  async function* rows() {
    yield [...ids, row('v-0', views), row('', views + 1, 'empty_id'), row('kept', views + 2)];
  }
  async function* guarded() {
    yield ['kept', 'another'];
  }
  const protectedIds = guarded();
  return spoolRows(rows(), await createSpoolFolder(stateDir), { files: ['a.csv'], protectedIds, limit: null });
}

const target = targetOf('https://api.example', 'crm');
const origin: Pick<RunPlan, 'note' | 'retryOf' | 'detached' | 'who' | 'command'> = {
  note: 'old views',
  retryOf: '',
  detached: true,
  who: 'ana',
  command: 'expunge run a.csv',
};
const options = { startAt: 8, stopAt: 7, maxDuration: 9 };
const plain: RunSettings = {
  rate: undefined,
  window: always,
  grace: 0,
  canary: undefined,
  maxDeletes: undefined,
  maxFailures: '',
  onStatus: '',
  label: '',
  expectAbsent: false,
  expect: '',
  keep: 1_000,
};

describe('the plan of a run', () => {
  test('has what was read, and what was asked for', async () => {
    const spool = await spoolOf(1_001);
    const settings: RunSettings = {
      rate: [{ count: 40, perMs: 1_000 }],
      window: 'mon 01:00-02:00',
      grace: 6,
      canary: [10],
      maxDeletes: 900,
      maxFailures: '5%',
      onStatus: '409=retry',
      label: 'team=ops',
      expectAbsent: true,
      expect: '403',
      keep: 5_000,
    };
    expect(planRun(settings, target, spool, { ...origin, options })).toEqual({
      target,
      list: hashList(target, spool.sha256),
      sha256: spool.sha256,
      files: ['a.csv'],
      layout: `${spool.layout} 10`,
      rows: 1_004,
      ids: 1_001,
      chunks: 3,
      blocks: 1,
      settled: { rejected: 1, duplicate: 1, protected: 1 },
      protectedRead: 2,
      rate: [{ count: 40, perMs: 1_000 }],
      window: 'mon 01:00-02:00',
      graceMs: 6,
      startAt: 8,
      canary: '10:1',
      definitions: '',
      canaryOf: '10',
      maxDeletes: 900,
      maxFailures: '5%',
      onStatus: '409=retry',
      labels: 'team=ops',
      expectAbsent: true,
      expect: '403',
      keepMs: 5_000,
      stopAt: 7,
      maxActiveMs: 9,
      ...origin,
    });
  });

  test('has nothing where nothing was asked for', async () => {
    const spool = { ...(await spoolOf(3)), protectedList: null };
    expect(planRun(plain, target, spool, { ...origin, retryOf: 'another', options: {} })).toMatchObject({
      list: hashList(target, spool.sha256, 'another'),
      layout: spool.layout,
      retryOf: 'another',
      chunks: 1,
      protectedRead: null,
      rate: null,
      window: '',
      canary: '',
      canaryOf: '',
      maxDeletes: null,
      maxFailures: '',
    });
  });

  test.for([
    [[1, 10, 100], 2_000, '1:1 10:2 100:3', 3 + 4],
    [[600, 700], 2_000, '600:2 700:3', 3 + 3],
    [[10, 1_000], 500, '10:1', 2],
    [[10], 10, '10:1', 1],
    [[10, 20], 5, '5:1', 1],
  ] as const)(
    'has the rungs of a canary that end before its list does: %j of %i ids',
    async ([rungs, ids, canary, chunks]) => {
      const plan = planRun({ ...plain, canary: [...rungs] }, target, await spoolOf(ids), { ...origin, options });
      expect([plan.canary, plan.chunks, plan.canaryOf]).toEqual([canary, chunks, rungs.join()]);
      expect(rungsLeft(plan)).toEqual(canary.split(' ').map((rung) => Number(rung.split(':')[0])));
    },
  );
});

test('a run without a canary has no rungs left', () => {
  expect(rungsLeft({ canary: '' })).toEqual([]);
});
