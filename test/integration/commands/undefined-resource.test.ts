import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { readResources } from '../../../src/config/read-resources.ts';
import { readSemantics, storeSemantics } from '../../../src/ledger/semantics.ts';
import { releaseTarget } from '../../../src/ledger/steer-target.ts';
import { readTargetState } from '../../../src/limiter/read-target.ts';
import { limiterKeys, openTargetCalls } from '../../../src/limiter/target-call.ts';
import { defineResources } from '../../../src/model/resource.ts';
import { isSearchable } from '../../../src/operations/search-runs.ts';
import { openHarness } from '../../support/harness.ts';
import { quietCall } from '../../support/target-call.ts';

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

  test('has a limiter that is shown, and released', async ({ onTestFinished }) => {
    const { redis, target } = await openHarness(onTestFinished);
    defineResources({});
    const { call } = openTargetCalls(redis, limiterKeys(target.fp, 'dashboards'));
    await call(quietCall({ wants: false, hold: { ms: 60_000, why: 'the server asked for it' } }));
    const holds = async () => (await readTargetState(redis, target.fp)).map(({ scope, hold }) => [scope, hold?.kind]);
    expect(await holds()).toEqual([['dashboards', 'retry_after']]);
    expect(await releaseTarget(redis, target.fp, { who: 'ana', reason: '', at: 7 })).toBe(true);
    expect(await holds()).toEqual([['dashboards', undefined]]);
  });

  test('has an answer to ids that do not exist, which is shown', async ({ onTestFinished }) => {
    const { redis, target } = await openHarness(onTestFinished);
    defineResources({});
    const known = { resource: 'dashboards', answers: 'accepted', status: 200, at: 7, who: 'ana' } as const;
    await storeSemantics(redis, target.fp, known);
    expect(await readSemantics(redis, target.fp)).toEqual([known]);
  });
});
