import { expect, test } from 'vitest';
import { readResources } from '../../../src/config/read-resources.ts';
import { defineResources } from '../../../src/model/resource.ts';
import { minute, openScheduleHarness, start } from '../../support/schedule-harness.ts';

test('a schedule sends no ids of a resource that was defined after it was added', async ({ onTestFinished }) => {
  const harness = await openScheduleHarness(onTestFinished);
  const settings = { resourceColumn: 'resource', format: 'csv', maxDeletes: '9', expectRejected: 'true' };
  await harness.add({ settings });
  harness.list(['resource,id', 'views,v-1', 'views,v-2', 'dashboards,d-1']);
  onTestFinished(() => defineResources({}));
  defineResources(readResources({ dashboards: { path: '/v1/dashboards/{id}' } }));
  await harness.at(start + minute);
  const reason = 'the list has ids of dashboards, which schedule nightly does not define; nothing was sent';
  expect([await harness.runs(), await harness.history()]).toMatchObject([[], [{ outcome: 'failed', reason }]]);
  defineResources({});
  await harness.at(start + 2 * minute);
  expect(await harness.runs()).toMatchObject([{ rows: 3, ids: 2 }]);
});
