import { describe, expect, onTestFinished, test } from 'vitest';
import { NearMisses } from '../../../src/input/near-misses.ts';
import { bearerForm, defineResources } from '../../../src/model/resource.ts';

function found(protectedIds: string[], listIds: string[], isOneLength = false): string | null {
  const misses = new NearMisses();
  for (const id of protectedIds) misses.protect(id);
  for (const id of listIds) misses.compare(id);
  return misses.find(isOneLength);
}

const uuid = '8c9e6679-7425-40de-944b-e07fc1f90ae7';

describe('a protected id that is written another way than in the list', () => {
  test.each([
    ['(1201)', '1201'],
    ['[1201]', '1201'],
    ['="1201"', '1201'],
    ["b'1201'", "b'1201"],
    ['id:1201', '1201'],
    ['annotation:1201', '1201'],
    ['ObjectId("64b0c0ffee64b0c0ffee64b0")', '64b0c0ffee64b0c0ffee64b0'],
    ['+1201', '1201'],
    ['1201', '00001201'],
    ['00001201', '1201'],
    [uuid.toUpperCase(), uuid],
    [uuid.replaceAll('-', ''), uuid],
    [`{${uuid}}`, uuid],
    ['\u201c1201\u201d', '1201'],
    ['cafe\u0301-1', 'caf\u00e9-1'],
    ['123456789012345680', '123456789012345678'],
    ['12345678901234568', '12345678901234567'],
    ['1234567890123450', '1234567890123456'],
  ])('is found: %j for %j', (guarded, id) => {
    expect(found([guarded, 'x'], ['y', id, 'x'])).toContain(`is written "${id}" in the list`);
  });

  test.each([
    ['1-23', '12-3'],
    ['aB3k', 'Ab3k'],
    ['view-12', 'annotation-12'],
    ['view-12', '12'],
    ['12', '120'],
    ['1.0', '10'],
    ['()', '[]'],
  ])('is not seen in %j for %j, which are two ids', (guarded, id) => {
    expect(found([guarded], [id])).toBeNull();
  });

  test('is found behind the word for a resource of the configuration file', () => {
    onTestFinished(() => defineResources({}));
    expect(found(['dashboard:1201'], ['1201'])).toBeNull();
    defineResources({ dashboards: { path: '/v1/dashboards/{id}', success: [204], absent: [404], ...bearerForm } });
    for (const label of ['dashboard:', 'Dashboards = ', 'urn:dashboard:'])
      expect(found([`${label}1201`], ['1201'])).toContain('is written "1201" in the list');
  });

  test('is found where only its beginning is left, in a list of ids of one length', () => {
    const guarded = [uuid.slice(0, 13), 'x'];
    expect(found(guarded, [uuid], true)).toContain(`is written "${uuid}" in the list`);
    expect(found(guarded, [uuid])).toBeNull();
    expect(found(guarded, [uuid, uuid.slice(0, 13)], true)).toBeNull();
  });

  test('is not seen in a number beside the one that it would be rounded to, if the list holds both', () => {
    const ids = ['123456789012345678', '123456789012345680'];
    for (const list of [ids, ids.toReversed()]) expect(found(['123456789012345680'], list)).toBeNull();
  });

  test('is not seen where the list holds the same id too, as it is protected', () => {
    expect(found(['1201', '(1201)'], ['1201'])).toBeNull();
  });
});
