import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { openHarness } from '../../support/harness.ts';
import { forgetTarget } from '../../support/redis-keys.ts';

it('the quickstart shows a whole run, asks the sandbox what really happened, and exits 0', async () => {
  const harness = await openHarness(null, { account: '' });
  // What is set up for somebody's own API is not meant for this.
  const env = { EXPUNGE_BASE_URL: 'https://api.example.com', EXPUNGE_LIMIT: '3', EXPUNGE_TOKEN: 'geheim' };
  const { code, stdout, stderr } = await harness.expunge(['quickstart'], { env });
  const url = /--base-url (\S+)/.exec(stdout)?.[1] ?? '';
  const run = /Run (\S+) completed: 1,980 ids/.exec(stdout)?.[1] ?? '';
  try {
    expect([code, stderr]).toEqual([0, '']);
    expect(stdout).toContain('2,000 rows → 1,980 annotations to delete · 12 duplicates · 8 rejected');
    expect(stdout).toMatch(/rejected +8 /);
    expect(stdout).toContain('✓ Asked the sandbox: none of the 1,980 ids exists any more');
    expect(stdout).toContain('✓ By itself the command ends with exit code 3: 8 rows held no usable id.');
    expect(stdout).not.toContain('geheim');
    expect(harness.outcomes(run)).toHaveLength(2_000);
    expect(readFileSync(join(harness.stateDir, 'quickstart', 'annotations.csv'), 'utf8').split('\n')).toHaveLength(
      2_002,
    );
  } finally {
    if (url) await forgetTarget(url);
    await harness.close();
  }
});
