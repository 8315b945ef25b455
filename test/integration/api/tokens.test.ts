import { describe, expect, onTestFinished, test } from 'vitest';
import { addToken, readTokenAudit, revokeToken } from '../../../src/api/token-store.ts';
import { openHarness } from '../../support/harness.ts';
import { openOwnRedis } from '../../support/own-redis.ts';

const open = async () => openHarness(onTestFinished, {}, await openOwnRedis(onTestFinished));

describe('making and revoking tokens', () => {
  test('leaves who did it and when, without the token', async () => {
    const harness = await open();
    const by = (EXPUNGE_USER: string, ...args: string[]) =>
      harness.expunge(['token', ...args], { env: { EXPUNGE_USER } });
    const made = await by('eve', 'add', 'ci', '--role', 'operate');
    await by('ana', 'add', 'bob', '--role', 'read');
    expect((await by('ana', 'revoke', 'bob')).code).toBe(0);
    expect((await by('ana', 'revoke', 'bob')).code).toBe(2);
    const at = expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/);
    const expected = [
      { type: 'token', name: 'ci' },
      { type: 'audit', at, action: 'add', who: 'eve', name: 'ci', role: 'operate' },
      { type: 'audit', at, action: 'add', who: 'ana', name: 'bob', role: 'read' },
      { type: 'audit', at, action: 'revoke', who: 'ana', name: 'bob' },
    ];
    const listed = await by('ana', 'list', '--json');
    const lines = listed.stdout.trim().split('\n');
    expect(lines.map((line) => JSON.parse(line))).toMatchObject(expected);
    expect((await by('ana', 'list')).stdout).toMatch(/revoke bob +ana\n/);
    const stored = await harness.redis.lrange('expunge:{expunge:api:tokens}:audit', 0, -1);
    expect(JSON.stringify([listed.stdout, stored])).not.toContain(made.stdout.trim());
  });

  test('is kept for the last hundred times', async () => {
    const { redis } = await open();
    const again = { name: 'again', role: 'read', reach: null, at: 0, who: 'test', expiresAt: 0 } as const;
    for (let n = 0; n < 51; n++) {
      await addToken(redis, again);
      await revokeToken(redis, 'again', 'test', 0);
    }
    const audit = await readTokenAudit(redis);
    expect(audit).toHaveLength(100);
    expect(audit.at(-1)).toMatchObject({ action: 'revoke', name: 'again' });
  });
});
