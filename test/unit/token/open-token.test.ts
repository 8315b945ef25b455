import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { readTarget } from '../../../src/config/check-target.ts';
import { loadConfig } from '../../../src/config/read-config.ts';
import type { Config } from '../../../src/config/settings.ts';
import { ExpungeError } from '../../../src/errors.ts';
import { openToken, startToken, tokenSource } from '../../../src/token/open-token.ts';
import type { Token } from '../../../src/token/token.ts';

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'expunge-token-'));
  writeFileSync(join(folder, 'secret'), 'geheim\n');
  writeFileSync(join(folder, 'empty'), '\n');
});
afterAll(() => rmSync(folder, { recursive: true }));

type Flags = Partial<Record<keyof Config, string>>;

function configOf(flags: Flags): Config {
  return loadConfig({ flags, env: {}, configFile: undefined }).config;
}

function open(flags: Flags, env: NodeJS.ProcessEnv = {}) {
  return openToken(configOf(flags), { env, ca: null, clock: () => 0, random: () => 0.5 });
}

const url = { tokenUrl: 'https://auth.example.com/token?tenant=1', clientId: 'abc' };
const secret = { EXPUNGE_CLIENT_SECRET: 'geheim' };

describe('the token comes', () => {
  it.each([
    [{}, 'EXPUNGE_TOKEN'],
    [url, 'https://auth.example.com/token (client abc)'],
    [{ tokenCommand: '/usr/bin/vault read x' }, 'the command /usr/bin/vault'],
  ])('from %j', (flags, source) => {
    const env = { ...secret, EXPUNGE_TOKEN: 'abc' };
    expect([open(flags, env).source, tokenSource(configOf(flags), env)]).toEqual([source, source]);
  });

  it('from nowhere where nothing is set, and from a file that is not there yet, for a plan', () => {
    expect(tokenSource(configOf({}), {})).toBeNull();
    expect(tokenSource(configOf({ tokenFile: 'no-such-file' }), {})).toBe(
      'the file no-such-file, which is not there yet',
    );
  });

  it('with the word Bearer before it, as people copy it', () => {
    expect(open({}, { EXPUNGE_TOKEN: 'Bearer abc' }).authorization()).toBe('Bearer abc');
  });

  it('from a file rather than from EXPUNGE_TOKEN', () => {
    const token = open({ tokenFile: join(folder, 'secret') }, { EXPUNGE_TOKEN: 'abc' });
    expect([token.authorization(), token.source]).toEqual(['Bearer geheim', `the file ${join(folder, 'secret')}`]);
  });
});

describe('whoever waits for a token', () => {
  afterEach(() => vi.useRealTimers());

  it('is told after two seconds, and what for', async () => {
    vi.useFakeTimers();
    const told: string[] = [];
    const start = (ms: number) => () => new Promise<void>((resolve) => setTimeout(resolve, ms));
    const token = { waiting: 'getting a token from the command vault' } as Token;
    const both = [1_900, 9_000].map((ms) =>
      startToken({ ...token, start: start(ms) }, (waiting) => told.push(`${ms}: ${waiting}`)),
    );
    await vi.advanceTimersByTimeAsync(9_000);
    await Promise.all(both);
    expect(told).toEqual(['9000: getting a token from the command vault']);
  });
});

describe('settings for the token are refused', () => {
  it.each<[string, Flags, NodeJS.ProcessEnv, string, RegExp]>([
    ['without any', {}, {}, 'CREDENTIALS', /expected an access token in EXPUNGE_TOKEN/],
    [
      'with no token in the variable',
      {},
      { EXPUNGE_TOKEN: 'ge heim' },
      'CREDENTIALS',
      /got text that holds white space/,
    ],
    ['two ways', { ...url, tokenCommand: 'x' }, secret, 'USAGE', /one place .* --token-command and --token-url/],
    ['a client id alone', { clientId: 'abc' }, {}, 'USAGE', /--client-id needs --token-url/],
    ['a scope alone', { scope: 'x' }, {}, 'USAGE', /EXPUNGE_SCOPE needs --token-url/],
    ['an audience alone', { tokenAudience: 'x' }, {}, 'USAGE', /EXPUNGE_TOKEN_AUDIENCE needs --token-url/],
    ['a refresh token alone', { refreshTokenFile: 'x' }, {}, 'USAGE', /EXPUNGE_REFRESH_TOKEN_FILE needs --token-url/],
    ['no client id', { tokenUrl: url.tokenUrl }, secret, 'USAGE', /--token-url needs --client-id/],
    ['no secret', url, {}, 'CREDENTIALS', /expected a client secret in EXPUNGE_CLIENT_SECRET, or its file/],
    [
      'http',
      { ...url, tokenUrl: 'http://auth.example.com/t' },
      secret,
      'USAGE',
      /over http an attacker in the network/,
    ],
    [
      'no secret file',
      { ...url, clientSecretFile: '/no/where' },
      {},
      'CREDENTIALS',
      /EXPUNGE_CLIENT_SECRET_FILE \/no\/where: /,
    ],
    [
      'no refresh file',
      { ...url, refreshTokenFile: '/no/where' },
      {},
      'CREDENTIALS',
      /EXPUNGE_REFRESH_TOKEN_FILE \/no\/where/,
    ],
  ])('%s', (_, flags, env, code, words) => {
    const failure = failureOf(() => open(flags, env));
    expect([failure.code, failure.message]).toEqual([code, expect.stringMatching(words)]);
    expect(failure.message + failure.next).not.toContain('heim');
  });

  it('an empty secret file', () => {
    const failure = failureOf(() => open({ ...url, clientSecretFile: join(folder, 'empty') }));
    expect([failure.code, failure.message]).toEqual(['CREDENTIALS', expect.stringMatching(/empty: it is empty$/)]);
  });

  it.each(['auth.example.com', 'ftp://a/b', 'https://ana:geheim@a/b', 'https://a/b#c'])(
    'the token URL %s',
    (tokenUrl) => {
      const failure = failureOf(() => configOf({ tokenUrl }));
      expect([failure.code, failure.message.includes('geheim')]).toEqual(['USAGE', false]);
    },
  );
});

describe('http is allowed', () => {
  it.each(['http://localhost:1/t', 'http://127.0.0.1/t', 'http://[::1]:9/t'])('to this machine: %s', (tokenUrl) => {
    expect(open({ ...url, tokenUrl }, secret).source).toContain(tokenUrl.replace(':1/', ':1/'));
  });

  it('to a host that is named', () => {
    const flags = { ...url, tokenUrl: 'http://auth.example.com/t', allowHttp: 'auth.example.com' };
    expect(open(flags, secret).source).toBe('http://auth.example.com/t (client abc)');
  });
});

describe('the account of a target', () => {
  it.each([
    [{}, ''],
    [{ clientId: 'abc' }, 'abc'],
    [{ clientId: 'abc', account: 'acme' }, 'acme'],
  ])('of %j is "%s"', (flags, account) => {
    expect(readTarget(configOf({ baseUrl: 'https://api.example.com', ...flags }), {}).account).toBe(account);
  });
});

function failureOf(body: () => unknown): ExpungeError {
  try {
    body();
  } catch (error) {
    if (error instanceof ExpungeError) return error;
    throw error;
  }
  throw new Error('expected it to be refused');
}
