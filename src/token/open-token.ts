import { existsSync } from 'node:fs';
import { refusePlainHttp } from '../config/check-target.ts';
import type { Config } from '../config/settings.ts';
import { ExpungeError, readNamedFile } from '../errors.ts';
import { fixedToken, readSecret, tokenFile } from './fixed-token.ts';
import { clientCredentials, oauthSource, refreshGrant, refreshTokenFile } from './oauth-token.ts';
import { RefreshingToken } from './refreshing-token.ts';
import type { Issuer, Token } from './token.ts';
import { commandSource, tokenCommand } from './token-command.ts';
import type { OAuthClient } from './token-request.ts';

const tokenFlags = { tokenFile: '--token-file', tokenCommand: '--token-command', tokenUrl: '--token-url' } as const;
const urlOnly = {
  clientId: '--client-id',
  refreshTokenFile: 'EXPUNGE_REFRESH_TOKEN_FILE',
  clientSecretFile: 'EXPUNGE_CLIENT_SECRET_FILE',
  scope: 'EXPUNGE_SCOPE',
  tokenAudience: 'EXPUNGE_TOKEN_AUDIENCE',
} as const;

export type TokenSettings = Pick<
  Config,
  keyof typeof tokenFlags | keyof typeof urlOnly | 'tokenAuth' | 'allowHttp' | 'proxy'
>;

export type TokenDeps = {
  env: NodeJS.ProcessEnv;
  ca: string | null;
  /** Monotonic ms. */
  clock: () => number;
  /** Returns a number from 0 to 1. */
  random: () => number;
};

/**
 * Opens the token from `--token-file`, `--token-command` or `--token-url`, or otherwise from EXPUNGE_TOKEN. Sends and runs nothing yet. Throws USAGE
 * for settings that contradict each other, and CREDENTIALS for a secret that is missing or invalid.
 */
export function openToken(settings: TokenSettings, deps: TokenDeps): Token {
  checkTokenFlags(settings);
  const { env, clock } = deps;
  if (settings.tokenFile !== undefined) return tokenFile(settings.tokenFile, clock);
  if (settings.tokenCommand !== undefined) {
    return new RefreshingToken(tokenCommand(settings.tokenCommand, env, secretsIn(env)), deps);
  }
  if (settings.tokenUrl !== undefined) return new RefreshingToken(oauthIssuer(settings, deps), deps);
  if (env.EXPUNGE_TOKEN) return fixedToken(env.EXPUNGE_TOKEN, 'EXPUNGE_TOKEN', clock);
  throw new ExpungeError('CREDENTIALS', 'expected an access token in EXPUNGE_TOKEN or in --token-file, got none', {
    next: 'write the token to a file that only you can read and name it: --token-file FILE',
  });
}

/** The source of the token, for a plan, which needs no token; null if there is no source. */
export function tokenSource(
  { tokenFile, tokenCommand, tokenUrl, clientId = '' }: TokenSettings,
  env: NodeJS.ProcessEnv,
): string | null {
  if (tokenFile !== undefined)
    return existsSync(tokenFile) ? `the file ${tokenFile}` : `the file ${tokenFile}, which is not there yet`;
  if (tokenCommand !== undefined) return commandSource(tokenCommand);
  if (tokenUrl !== undefined) return oauthSource({ tokenUrl, clientId });
  return env.EXPUNGE_TOKEN ? 'EXPUNGE_TOKEN' : null;
}

const slowMs = 2_000;

/** Gets the first token, like its `start`. Calls `report` with the reason if that takes more than 2 s. */
export async function startToken(token: Token, report: (waiting: string) => void): Promise<void> {
  const timer = setTimeout(() => report(token.waiting), slowMs);
  try {
    await token.start();
  } finally {
    clearTimeout(timer);
  }
}

function checkTokenFlags(settings: TokenSettings): void {
  const given = Object.entries(tokenFlags).filter(([name]) => settings[name as keyof typeof tokenFlags] !== undefined);
  if (given.length > 1) {
    throw new ExpungeError(
      'USAGE',
      `expected one place the token comes from, got ${given.map(([, flag]) => flag).join(' and ')}`,
    );
  }
  if (settings.tokenUrl !== undefined) return;
  const alone = Object.entries(urlOnly).find(([name]) => settings[name as keyof typeof urlOnly] !== undefined);
  if (alone) throw new ExpungeError('USAGE', `${alone[1]} needs --token-url, the token endpoint it is for`);
}

function oauthIssuer(settings: TokenSettings, { env, ca }: TokenDeps): Issuer {
  const {
    clientId,
    allowHttp,
    scope,
    tokenAudience: audience,
    tokenAuth: auth = 'basic',
    proxy,
    refreshTokenFile: path,
  } = settings;
  const tokenUrl = settings.tokenUrl!;
  refusePlainHttp('--token-url', tokenUrl, allowHttp);
  if (clientId === undefined)
    throw new ExpungeError('USAGE', '--token-url needs --client-id, the client that requests tokens');
  const clientSecret = openSecret(settings, env);
  const client: OAuthClient = {
    tokenUrl,
    clientId,
    auth,
    scope,
    audience,
    route: { ca, proxy: proxy ?? null },
    clientSecret,
  };
  if (path === undefined) return clientCredentials(client);
  readNamedFile('EXPUNGE_REFRESH_TOKEN_FILE', path, 'CREDENTIALS');
  return refreshGrant(client, refreshTokenFile(path));
}

function openSecret(
  { clientSecretFile: path, refreshTokenFile }: TokenSettings,
  env: NodeJS.ProcessEnv,
): OAuthClient['clientSecret'] {
  if (path !== undefined) {
    if (readNamedFile('EXPUNGE_CLIENT_SECRET_FILE', path, 'CREDENTIALS') === '')
      throw new ExpungeError('CREDENTIALS', `EXPUNGE_CLIENT_SECRET_FILE ${path}: it is empty`);
    return () => readSecret(path);
  }
  const secret = env.EXPUNGE_CLIENT_SECRET || null;
  if (secret === null && refreshTokenFile === undefined) {
    throw new ExpungeError(
      'CREDENTIALS',
      'expected a client secret in EXPUNGE_CLIENT_SECRET, or its file in EXPUNGE_CLIENT_SECRET_FILE, got none',
    );
  }
  return async () => secret;
}

/** Secrets that a token command might print. */
function secretsIn({ EXPUNGE_TOKEN, EXPUNGE_CLIENT_SECRET }: NodeJS.ProcessEnv): string[] {
  return [EXPUNGE_TOKEN, EXPUNGE_CLIENT_SECRET].filter((secret) => secret !== undefined && secret !== '') as string[];
}
