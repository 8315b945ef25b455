import { afterEach, expect, test } from 'vitest';
import { defineResources } from '../../../src/model/resource.ts';
import { openHarness } from '../../support/harness.ts';

afterEach(() => defineResources({}));

const resources = { reports: { path: '/api/reports/{id}/', success: [200], absent: [404] } };

test('shows what is sent for the ids of each configured resource, and what their answers mean', async ({
  onTestFinished,
}) => {
  const harness = await openHarness(onTestFinished);
  const config = harness.file('c.json', JSON.stringify({ resources }));
  const check = await harness.expunge(['check', '--config', config]);
  expect(check.stdout).toContain(
    `ok     target  reports: DELETE ${harness.target.baseUrl}/api/reports/{id}/; 200 says deleted; 404 says absent\n`,
  );
  const ofReports = await harness.expunge(['check', '--verdicts', '--config', config, '--resource', 'reports']);
  expect(ofReports.stdout).toMatch(/^ {2}200 +deleted\n {2}204 +unknown\n {2}410 +failed\n/);
  const ofOthers = await harness.expunge(['check', '--verdicts', '--config', config]);
  expect(ofOthers.stdout).toMatch(/^ {2}204 +deleted\n/);
});
