import { describe, expect, it } from 'vitest';
import { idPath } from '../../../src/model/check-id.ts';
import {
  bearerForm,
  describeSuccess,
  perResource,
  resources,
  resourcesText,
  sumIds,
} from '../../../src/model/resource.ts';
import { checkList } from '../../../src/operations/plan-list.ts';
import { createPaths } from '../../../src/sandbox/answer.ts';
import { madeId } from '../../../src/sandbox/objects.ts';
import { idsText } from '../../../src/terminal/plan-text.ts';

const oneOfEach = perResource(() => 1);
const expectCount = (ids: typeof oneOfEach, number: number) =>
  checkList(
    {
      config: {
        expectProtected: undefined,
        expectCount: `${number}`,
        maxDeletes: undefined,
        allowEmpty: false,
        expectUnprotected: false,
      },
      options: {},
    },
    { rows: sumIds(ids), ids, files: [], nearMiss: null, protected: 0 },
  );

describe.each(resources)('%s', (resource) => {
  it('count towards --expect-count and in the plan', () => {
    const ids = { ...perResource(() => 0), [resource]: 12 };
    expect(sumIds(ids)).toBe(12);
    expect(() => expectCount(ids, 11)).toThrow('the list holds 12 ids');
    expect(idsText(ids)).toBe(`12 ${resource}`);
  });

  it('have a path that the sandbox reads back', () => {
    const paths = createPaths('/api');
    const path = `/api${idPath(resource, 'a/b')}`;
    expect(paths.resourceOf(path)).toBe(resource);
    expect(paths.idIn(path, resource)).toBe('a/b');
  });
});

describe('all resources together', () => {
  it('are summed', () => {
    expect(sumIds(oneOfEach)).toBe(resources.length);
    expect(() => expectCount(oneOfEach, resources.length - 1)).toThrow('--expect-count is');
    expect(() => expectCount(oneOfEach, resources.length)).not.toThrow();
  });

  it('are listed for people, each of them', () => {
    for (const resource of resources) expect(resourcesText('or')).toContain(resource);
    expect(resourcesText('and')).toMatch(/^\w+(, \w+)* and \w+$/);
    expect(idsText(oneOfEach)).toMatch(/^1 \w+(, 1 \w+)* and 1 \w+$/);
  });

  it('have made ids that differ from those of every other', () => {
    expect(new Set(resources.map((resource) => madeId(resource, 1))).size).toBe(resources.length);
  });
});

describe('a success other than 204', () => {
  const sentences = (...success: number[]) =>
    describeSuccess({ dashboards: { path: '/v1/dashboards/{id}', success, absent: [404], ...bearerForm } });

  it.each([
    [[204], []],
    [[200], ['200 says deleted for dashboards, as the configuration file defines']],
    [[202], ['202 says accepted for dashboards, as the configuration file defines: a deleted object may still exist']],
    [
      [200, 202, 204],
      [
        '200 or 202 or 204 says deleted for dashboards, as the configuration file defines; 202 means accepted, so the object may still exist',
      ],
    ],
  ])('is explained wherever deleted ids are shown: %j', (success, expected) => {
    expect(sentences(...success)).toEqual(expected);
  });
});
