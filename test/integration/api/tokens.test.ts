import { describe, expect, onTestFinished, test } from 'vitest';
import { addToken, revokeToken } from '../../../src/api/token-store.ts';
import { openApi } from '../../support/api.ts';

describe('making and revoking tokens', () => {
  test('leaves who did it and when, over HTTP and by the command, without the token', async () => {
    const { call, harness, redis } = await openApi(onTestFinished);
    const made = await call('admin', '/tokens', { method: 'POST', body: { name: 'eve', role: 'admin' } });
    expect((await call('admin', '/tokens/eve', { method: 'DELETE' })).status).toBe(200);
    expect((await call('admin', '/tokens/eve', { method: 'DELETE' })).status).toBe(404);
    const byHand = { EXPUNGE_USER: 'ana' };
    await harness.expunge(['token', 'add', 'bob', '--role', 'read'], { env: byHand });
    await harness.expunge(['token', 'revoke', 'bob'], { env: byHand });
    const { items, audit } = (await call('admin', '/tokens')).body;
    expect(items).toMatchObject([{ name: 'test-admin' }]);
    const at = expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/);
    const expected = [
      { at, action: 'add', who: 'test', name: 'test-admin', role: 'admin' },
      { at, action: 'add', who: 'test-admin', name: 'eve', role: 'admin' },
      { at, action: 'revoke', who: 'test-admin', name: 'eve' },
      { at, action: 'add', who: 'ana', name: 'bob', role: 'read' },
      { at, action: 'revoke', who: 'ana', name: 'bob' },
    ];
    expect(audit).toMatchObject(expected);
    const listed = await harness.expunge(['token', 'list', '--json']);
    const lines = listed.stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    expect(lines).toMatchObject([{ type: 'token' }, ...expected.map((entry) => ({ type: 'audit', ...entry }))]);
    expect((await harness.expunge(['token', 'list'])).stdout).toMatch(/revoke eve +test-admin\n/);
    expect(JSON.stringify([audit, await redis.lrange('expunge:{expunge:api:tokens}:audit', 0, -1)])).not.toContain(
      made.body.token,
    );
  });

  test('is kept for the last hundred times', async () => {
    const { call, redis, token } = await openApi(onTestFinished);
    await token('admin');
    const again = { name: 'again', role: 'read', reach: null, at: 0, who: 'test', expiresAt: 0 } as const;
    for (let n = 0; n < 51; n++) {
      await addToken(redis, again);
      await revokeToken(redis, 'again', 'test', 0);
    }
    const { audit } = (await call('admin', '/tokens')).body;
    expect(audit).toHaveLength(100);
    expect(audit.at(-1)).toMatchObject({ action: 'revoke', name: 'again' });
  });
});
