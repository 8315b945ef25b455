import { describe, expect, test } from 'vitest';
import { dryRunEnd } from '../../../src/commands/run.ts';

describe('dry run', () => {
  test('says how to delete the ids that were found, and nothing of the kind where there are none', () => {
    expect(dryRunEnd({ annotations: 0, views: 2 })).toContain('\n  Delete them: the same command without --dry-run');
    expect(dryRunEnd({ annotations: 0, views: 2 }, true)).toBe('Dry run: nothing was sent.');
    expect(dryRunEnd({ annotations: 0, views: 0 })).toBe(
      'Dry run: nothing was sent, and the list holds no id to delete.',
    );
  });
});
