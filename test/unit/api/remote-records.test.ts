import { expect, test } from 'vitest';
import type { ApiClient } from '../../../src/api/client.ts';
import { remoteRecords } from '../../../src/api/remote-records.ts';
import { toTypeAnywhere } from '../../../src/model/to-type.ts';

test('the server chooses the runs with a label, so that a list of few takes no request for each page of all', async () => {
  const asked: unknown[] = [];
  const api = {
    url: 'http://localhost',
    async json({ query }: { query: unknown }) {
      asked.push(query);
      return { items: [], next: null };
    },
  } as unknown as ApiClient;
  await remoteRecords(api).list({ label: 'ticket=OPS-77', sort: 'created', limit: 50 }, toTypeAnywhere);
  expect(asked).toEqual([expect.objectContaining({ label: 'ticket=OPS-77', limit: '51' })]);
});
