import { expect, it } from 'vitest';
import { refuseOtherVersion } from '../../../src/operations/session.ts';

it('refuses an action for a run of another version with the command that stops its target', () => {
  const run = { id: 'r1', schema: 1, baseUrl: 'https://api.example.com', account: 'acme' };
  expect(() => refuseOtherVersion(run)).toThrow(
    expect.objectContaining({
      code: 'USAGE',
      next: expect.stringContaining('expunge stop-all --base-url https://api.example.com --account acme'),
    }),
  );
});
