import { expect, test } from 'vitest';
import { z } from 'zod';
import { queryFields } from '../../../src/api/setting-fields.ts';
import { readResources } from '../../../src/config/read-resources.ts';
import { defineResources } from '../../../src/model/resource.ts';

test('the description of the API names the resources that the server knows', ({ onTestFinished }) => {
  onTestFinished(() => defineResources({}));
  const { resource } = queryFields(['resource']);
  const names = () => z.toJSONSchema(resource).enum;
  expect(names()).toEqual(['annotations', 'views']);
  defineResources(readResources({ dashboards: { path: '/v1/dashboards/{id}' } }));
  expect(names()).toEqual(['annotations', 'views', 'dashboards']);
  expect(['dashboards', 'jobs'].map((name) => resource.safeParse(name).success)).toEqual([true, false]);
});
