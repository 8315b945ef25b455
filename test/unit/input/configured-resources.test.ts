import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { readResources } from '../../../src/config/read-resources.ts';
import { KindColumn, meantResource } from '../../../src/input/kind-column.ts';
import { NearMisses } from '../../../src/input/near-misses.ts';
import { isNamedLike } from '../../../src/input/rivals.ts';
import { defineResources } from '../../../src/model/resource.ts';

beforeAll(() =>
  defineResources(
    readResources({
      dashboards: { path: '/v1/dashboards/{id}' },
      'alert-rules': { path: '/v1/rules/{id}' },
    }),
  ),
);
afterAll(() => defineResources({}));

describe('a list of a configured resource', () => {
  test.each([
    ['dashboard_id', 'dashboards'],
    ['Dashboards-UUID', 'dashboards'],
    ['alert_rule_id', 'alert-rules'],
    ['alertRuleIds', 'alert-rules'],
    ['Alert Rule ID', 'alert-rules'],
  ])('has a column named like it: %s', (column, resource) => {
    expect(isNamedLike(column, resource)).toBe(true);
    expect(isNamedLike(column, null)).toBe(true);
  });

  test.each(['rule_id', 'id', 'alert_id', 'dashboards', 'uuid'])('can have other columns: %s', (column) => {
    expect(isNamedLike(column, null)).toBe(false);
  });

  test.each([
    ['Dashboard', 'dashboards'],
    ['alert_rule', 'alert-rules'],
    [' Alert-Rules', 'alert-rules'],
  ])('means a resource by %j', (text, resource) => {
    expect(meantResource(text)).toBe(resource);
  });

  test.each(['', ' ', 'rule', 'dash', 'dashboards'])('means no other resource by %j', (text) => {
    expect(meantResource(text)).toBeNull();
  });

  test('is refused for a row of another resource, however that is written, and not for an empty cell', () => {
    const column = new KindColumn('x.csv', 'annotations');
    expect(() => column.check('resource', '', 2)).not.toThrow();
    expect(() => column.check('resource', 'alert_rule', 3)).toThrow('says "alert_rule", but --resource is annotations');
  });

  test.each(['dashboard:1201', 'urn:alert-rule:1201', 'alert_rules = 1201'])(
    'has a protected id with a label of its own: %s',
    (id) => {
      const misses = new NearMisses();
      misses.protect(id);
      misses.compare('1201');
      expect(misses.find(false)).toContain('is written "1201" in the list');
    },
  );
});
