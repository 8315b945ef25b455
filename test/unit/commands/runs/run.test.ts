import { describe, expect, test } from 'vitest';
import { dryRunEnd } from '../../../../src/commands/runs/run.ts';
import { perResource } from '../../../../src/model/resource.ts';

const none = perResource(() => 0);

describe('dry run', () => {
  test('says how to delete the ids that were found, and nothing of the kind where there are none', () => {
    expect(dryRunEnd({ ...none, views: 2 })).toContain('\n  Delete them: the same command without --dry-run');
    expect(dryRunEnd({ ...none, views: 2 }, true)).toBe('Dry run: nothing was sent.');
    expect(dryRunEnd(none)).toBe('Dry run: nothing was sent, and the list holds no id to delete.');
  });
});
