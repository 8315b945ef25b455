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
  test('is explained, and a misspelt one is not', async ({ onTestFinished }) => {
    const objects = [{ resource: 'dashboards', id: 'd-1' }];
    const harness = await openHarness(onTestFinished, { objects });
    const defined = { EXPUNGE_CONFIG: harness.file('dashboards.json', JSON.stringify({ resources })) };
    const list = harness.list(['d-1']);
    const run = await harness.run([list, '--resource', 'dashboards', '--yes'], { env: defined });
    expect(run.code, run.stderr).toBe(0);
    const explain = (...args: string[]) => harness.expunge(['explain', ...args]);
    const found = await explain('dashboards', 'd-1');
    expect(found.code, found.stderr).toBe(0);
    expect(found.stdout).toContain('The API confirmed the delete with 200.');
    const none = await explain('dashboards', 'd-2');
    expect([none.code, none.stderr]).toEqual([2, expect.stringContaining('resource (here: annotations and views),')]);
    const misspelt = await explain('annotation', 'd-1');
    expect([misspelt.code, misspelt.stderr]).toEqual([2, expect.stringContaining('is not one of annotations, views')]);
    expect(['view', 'vews', 'Dashboards', 'd 1'].map(isSearchable)).toEqual([false, false, false, false]);
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
