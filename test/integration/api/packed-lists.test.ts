import { readdirSync } from 'node:fs';
import { gzipSync, zstdCompressSync } from 'node:zlib';
import { describe, expect, onTestFinished, test } from 'vitest';
import { noteTarget } from '../../../src/ledger/known-targets.ts';
import { openApi } from '../../support/api.ts';
import { sized } from '../../support/size.ts';

async function openWithTarget() {
  const api = await openApi(onTestFinished);
  const { fp } = api.harness.target;
  await noteTarget(api.redis, api.harness.target, Date.now());
  const plan = (raw: RequestInit['body']) =>
    api.call('operate', `/plans?target=${fp}&resource=views`, {
      method: 'POST',
      raw,
      headers: { 'content-type': 'text/csv' },
    });
  const left = () => ['uploads', 'spool', 'rejects'].flatMap((folder) => filesIn(`${api.harness.stateDir}/${folder}`));
  return { ...api, plan, left };
}

function filesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

/** 12 MB in 12 kB. */
const bomb = Buffer.alloc(12e6, 'id\ng-000001\n');

describe('a packed list', () => {
  test.each(sized(['gzip'], ['gzip', 'zstd']))(
    'that unpacks to far more than it is (%s) is refused with the limit, and leaves nothing',
    async (packing) => {
      const { plan, left } = await openWithTarget();
      const packed = packing === 'gzip' ? gzipSync(bomb) : zstdCompressSync(bomb);
      const { status, body } = await plan(packed as unknown as RequestInit['body']);
      expect([status, body.code]).toEqual([422, 'usage']);
      expect(body.detail).toMatch(
        /^list\.csv: unpacks to more than 10\.0 MB, .* packed list of .* may have; nothing was sent$/,
      );
      expect(body.next).toContain(`${packing} -dc`);
      expect(left()).toEqual([]);
    },
  );

  test('that unpacks to what lists do is read', async () => {
    const { plan } = await openWithTarget();
    const { status, body } = await plan(gzipSync('id\ng-000001\n') as unknown as RequestInit['body']);
    expect([status, body.confirm]).toEqual([201, 1]);
  });
});
