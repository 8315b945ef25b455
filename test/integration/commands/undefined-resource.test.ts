import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { readResources } from '../../../src/config/read-resources.ts';
import { readSemantics, storeSemantics } from '../../../src/ledger/semantics.ts';
import { defineResources } from '../../../src/model/resource.ts';
import { isSearchable } from '../../../src/operations/search-runs.ts';
import { openHarness } from '../../support/harness.ts';

// What a machine without the configuration file shows of resources that are defined elsewhere.

const resources = { dashboards: { path: '/v1/dashboards/{id}', success: [200] } };

beforeAll(() => defineResources(readResources(resources)));
afterAll(() => defineResources({}));

describe('a resource that is not defined here', () => {
  test('is searched for, and a misspelt one is not', () => {
    defineResources({});
    expect(isSearchable('dashboards')).toBe(true);
    expect(['view', 'vews', 'annotation', 'd 1'].map(isSearchable)).toEqual([false, false, false, false]);
  });

  test('has an answer to ids that do not exist, which is shown', async ({ onTestFinished }) => {
    const { redis, target } = await openHarness(onTestFinished);
    defineResources({});
    const known = { resource: 'dashboards', answers: 'accepted', status: 200, at: 7, who: 'ana' } as const;
    await storeSemantics(redis, target.fp, known);
    expect(await readSemantics(redis, target.fp)).toEqual([known]);
  });
});
