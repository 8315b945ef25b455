import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Harness, openHarness } from '../../support/harness.ts';

let harness: Harness;

beforeAll(async () => {
  harness = await openHarness(null, {
    account: '',
    client: { id: 'abc', secret: 'hidden-secret' },
    tokenLifeSeconds: 7_200,
  });
});

afterAll(() => harness.close());

const secret = { EXPUNGE_TOKEN: undefined, EXPUNGE_CLIENT_SECRET: 'hidden-secret' };

function check(args: string[], env: NodeJS.ProcessEnv = secret) {
  return harness.expunge(['check', '--base-url', harness.sandbox.url, ...args], { env });
}

const endpoint = () => ['--token-url', harness.sandbox.tokenUrl, '--client-id', 'abc'];

describe('expunge check', () => {
  it('gets a token for real and says how long it lives', async () => {
    const { code, stdout } = await check(endpoint());
    expect(stdout).toContain(`ok     token   from ${harness.sandbox.tokenUrl} (client abc), lives 2 h\n`);
    expect(code).toBe(0);
  });

  it('uses a refresh token and keeps the next one', async () => {
    const path = harness.file('refresh', harness.sandbox.refreshToken);
    for (const _ of ['first', 'again']) {
      const { stdout } = await check(endpoint(), { ...secret, EXPUNGE_REFRESH_TOKEN_FILE: path });
      expect(stdout).toMatch(/^ok {5}token/m);
    }
  });

  it('runs a token command', async () => {
    const { stdout } = await check(['--token-command', `echo '{"access_token":"hidden","expires_in":90}'`], {});
    expect(stdout).toMatch(/^ok {5}token {3}from the command echo, lives 1 min 30 s$/m);
    expect(stdout).not.toContain('hidden');
  });

  it('says what the token endpoint refuses: exit 5', async () => {
    const { code, stdout } = await check(endpoint(), { ...secret, EXPUNGE_CLIENT_SECRET: 'hidden-wrong' });
    expect(stdout).toMatch(/^fail {3}token {3}the token endpoint refused to give a token: 401 invalid_client; are/m);
    expect(stdout).not.toContain('hidden');
    expect(code).toBe(5);
  });

  it('says that the token endpoint cannot be reached: exit 6', async () => {
    const { code, stdout } = await check(['--token-url', 'http://127.0.0.1:9/token', '--client-id', 'abc']);
    expect(stdout).toMatch(/^fail {3}token {3}the token endpoint cannot be reached \(connection refused\)/m);
    expect(code).toBe(6);
  });
});

describe('expunge run --dry-run', () => {
  it('asks nobody for a token and shows where it would come from', async () => {
    harness.file('ids.txt', 'a-000001\n');
    const [before, marker] = [harness.sandbox.counts.requests, join(harness.folder, 'ran')];
    const run = (args: string[]) =>
      harness.run(['ids.txt', '--resource', 'views', '--dry-run', ...args], { env: secret });
    expect((await run(endpoint())).stdout).toContain(
      `as account abc, token from ${harness.sandbox.tokenUrl} (client abc)`,
    );
    expect((await run(['--token-command', `touch ${marker}`])).stdout).toContain('token from the command touch');
    expect([harness.sandbox.counts.requests, existsSync(marker)]).toEqual([before, false]);
  });
});

describe('expunge config show', () => {
  it('says where secrets come from and nothing else about them', async () => {
    const { stdout } = await harness.expunge(['config', 'show', ...endpoint()], { env: secret });
    expect(stdout).toMatch(/^token +set +from token endpoint$/m);
    expect(stdout).toMatch(/^client secret +set +from EXPUNGE_CLIENT_SECRET$/m);
    expect(stdout).not.toContain('hidden');
  });
});
