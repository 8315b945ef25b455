import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { withoutOwnSecrets } from '../../src/child-process.ts';

test('a command gets no variable that holds a secret of ours, and all others', () => {
  const documented = readFileSync('src/help/settings.md', 'utf8').matchAll(
    /EXPUNGE_[A-Z_]*(?:TOKEN|SECRET|HEADERS)\b/g,
  );
  const secrets = [...new Set(['REDIS_URL', ...Array.from(documented, ([name]) => name)])];
  expect(secrets).toEqual(expect.arrayContaining(['EXPUNGE_TOKEN', 'EXPUNGE_SERVER_TOKEN', 'EXPUNGE_NOTIFY_SECRET']));
  const env = Object.fromEntries([...secrets, 'PATH', 'PGPASSWORD', 'EXPUNGE_BASE_URL'].map((name) => [name, 'x']));
  expect(withoutOwnSecrets(env)).toEqual({ PATH: 'x', PGPASSWORD: 'x', EXPUNGE_BASE_URL: 'x' });
});
