import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { request } from 'undici';
import { type Sandbox, type SandboxOptions, startSandbox } from '../../src/sandbox/server.ts';
import { openToken, type TokenDeps, type TokenSettings } from '../../src/token/open-token.ts';
import type { Token } from '../../src/token/token.ts';

/** A sandbox with its token endpoint, a folder, and the tokens that a test opens there. Everything goes when the test is over. */
export type TokenHarness = {
  sandbox: Sandbox;
  folder: string;
  file(name: string, content: string): string;
  /** A token by client credentials unless told otherwise. */
  open(settings?: Partial<TokenSettings>, deps?: Partial<TokenDeps>): Token;
  /** Asks the API for something that does not exist, with what the token gives: 404 or 401. */
  useApi(authorization: string | null): Promise<number>;
};

export const clientSecret = 'canary-client-secret-4711';

export async function openTokenHarness(
  atEnd: (task: () => Promise<void>) => void,
  options: SandboxOptions = {},
): Promise<TokenHarness> {
  const sandbox = await startSandbox({ record: true, client: { id: 'abc', secret: clientSecret }, ...options });
  const folder = mkdtempSync(join(tmpdir(), 'expunge-token-'));
  const tokens: Token[] = [];
  atEnd(async () => {
    await Promise.all(tokens.map((token) => token.close()));
    await sandbox.close();
    rmSync(folder, { recursive: true, force: true });
  });
  return {
    sandbox,
    folder,
    file: (name, content) => {
      writeFileSync(join(folder, name), content, { mode: 0o600 });
      return join(folder, name);
    },
    open: (settings = {}, deps = {}) => {
      const env = { PATH: process.env.PATH, EXPUNGE_CLIENT_SECRET: clientSecret };
      const tokenDeps = { env, ca: null, clock: () => performance.now(), random: Math.random, ...deps };
      const token = openToken({ ...plain, tokenUrl: sandbox.tokenUrl, clientId: 'abc', ...settings }, tokenDeps);
      tokens.push(token);
      return token;
    },
    useApi: async (authorization) => {
      const headers = { authorization: authorization ?? '' };
      const { statusCode, body } = await request(`${sandbox.url}/v2/views/none`, { method: 'DELETE', headers });
      await body.dump();
      return statusCode;
    },
  };
}

const plain: TokenSettings = {
  tokenFile: undefined,
  tokenCommand: undefined,
  tokenUrl: undefined,
  clientId: undefined,
  clientSecretFile: undefined,
  refreshTokenFile: undefined,
  scope: undefined,
  tokenAudience: undefined,
  tokenAuth: 'basic',
  allowHttp: undefined,
  proxy: undefined,
};
