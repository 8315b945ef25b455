import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
} from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'vitest';
import type { Sandbox } from '../../../src/sandbox/server.ts';
import { type RefreshTokenFile, refreshGrant, refreshTokenFile } from '../../../src/token/oauth-token.ts';
import { RefreshingToken } from '../../../src/token/refreshing-token.ts';
import type { OAuthClient } from '../../../src/token/token-request.ts';
import { until } from '../../support/processes.ts';
import { clientSecret, openTokenHarness } from '../../support/token-harness.ts';

const contentOf = (path: string) => readFileSync(path, 'utf8');

/** The same token as the settings make it, with another file. */
function openWith(sandbox: Sandbox, file: RefreshTokenFile): RefreshingToken {
  const client: OAuthClient = {
    tokenUrl: sandbox.tokenUrl,
    clientId: 'abc',
    auth: 'basic',
    scope: undefined,
    audience: undefined,
    route: { ca: null, proxy: null },
    clientSecret: async () => clientSecret,
  };
  const options = { clock: () => performance.now(), random: () => 0.5 };
  return new RefreshingToken(refreshGrant(client, file), options);
}

/** Mounts `from` at `to` until the test is over; false, with a line that says so, where this user may not. */
function bindMount(atEnd: (task: () => void) => void, from: string, to: string, options: string[] = []): boolean {
  try {
    execFileSync('mount', ['--bind', from, to], { stdio: 'ignore' });
    atEnd(() => void execFileSync('umount', ['--lazy', to], { stdio: 'ignore' }));
    if (options.length > 0) execFileSync('mount', ['-o', ['remount', 'bind', ...options].join(), to]);
    return true;
  } catch {
    console.log('skipped: mount --bind is for root, on Linux');
    return false;
  }
}

const inode = (path: string) => statSync(path).ino;

describe.concurrent('a refresh token', () => {
  test('gets tokens and is replaced in its file each time', async ({ expect, onTestFinished }) => {
    const { sandbox, file, folder, open, useApi } = await openTokenHarness(onTestFinished, { tokenLifeSeconds: 2 });
    const path = file('refresh', `${sandbox.refreshToken}\n`);
    const token = open({ refreshTokenFile: path });
    const seen: boolean[] = [];
    token.onChange(() => token.authorization() && seen.push(contentOf(path) === `${sandbox.refreshToken}\n`));
    const isTaken = async () => (await useApi(token.authorization())) === 404; // it lives for two seconds
    await token.start();
    await until('the first token is taken', isTaken);
    await until('it was used three times', () => token.refreshes >= 2);
    expect(seen.slice(0, 3)).toEqual([true, true, true]);
    await until('a later token is taken', isTaken);
    expect([statSync(path).mode & 0o777, readdirSync(folder)]).toEqual([0o600, ['refresh']]);
  });

  test('is on the disk before the access token that came with it is used', async ({ expect, onTestFinished }) => {
    const { sandbox, file } = await openTokenHarness(onTestFinished);
    const real = refreshTokenFile(file('refresh', sandbox.refreshToken));
    let release = () => {};
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    const token = openWith(sandbox, {
      ...real,
      store: async (refreshToken) => held.then(() => real.store(refreshToken)),
    });
    onTestFinished(() => token.close());
    const started = token.start();
    await until('a token is issued', () => sandbox.counts.tokens === 1);
    expect(token.authorization()).toBeNull();
    release();
    await started;
    expect([token.authorization() === null, contentOf(real.path)]).toEqual([false, `${sandbox.refreshToken}\n`]);
  });

  test('survives a crash between its storing and the use of the access token', async ({ expect, onTestFinished }) => {
    const { sandbox, file, open } = await openTokenHarness(onTestFinished);
    const real = refreshTokenFile(file('refresh', sandbox.refreshToken));
    const crashed = openWith(sandbox, {
      ...real,
      store: (refreshToken) => real.store(refreshToken).then(() => new Promise(() => {})),
    });
    void crashed.start();
    await until('it is stored', () => contentOf(real.path) === `${sandbox.refreshToken}\n`);
    expect([sandbox.counts.tokens, crashed.authorization()]).toEqual([1, null]);
    const next = open({ refreshTokenFile: real.path });
    await next.start();
    expect(next.authorization()).toMatch(/^Bearer /);
  });

  test('that the disk does not take is not lost: nothing is sent until it is stored', async ({
    expect,
    onTestFinished,
  }) => {
    const { sandbox, file, folder, open } = await openTokenHarness(onTestFinished);
    mkdirSync(join(folder, 'secrets'));
    const path = file('secrets/refresh', sandbox.refreshToken);
    sandbox.tokenFaults = { latencyMs: 100 };
    const token = open({ refreshTokenFile: path });
    const started = token.start();
    await until('it is asked for', () => sandbox.seen.length === 1);
    renameSync(join(folder, 'secrets'), join(folder, 'away'));
    await started;
    expect([token.authorization(), sandbox.counts.tokens]).toEqual([null, 1]);
    expect(token.waiting).toMatch(/^cannot store the new refresh token in \S+refresh \(not found\)/);
    renameSync(join(folder, 'away'), join(folder, 'secrets'));
    await until('there is a token', () => token.authorization());
    expect(contentOf(path)).toBe(`${sandbox.refreshToken}\n`);
    rmSync(join(folder, 'secrets'), { recursive: true });
  });

  test('behind a link is replaced where it is', async ({ expect, onTestFinished }) => {
    const { sandbox, file, folder, open } = await openTokenHarness(onTestFinished);
    const path = file('refresh', sandbox.refreshToken);
    symlinkSync(path, join(folder, 'link'));
    await open({ refreshTokenFile: join(folder, 'link') }).start();
    expect(contentOf(path)).toBe(`${sandbox.refreshToken}\n`);
  });

  test('in a bind-mounted single file is stored there, and is the one the next command uses', async ({
    expect,
    skip,
    onTestFinished,
  }) => {
    const { sandbox, file, folder, open } = await openTokenHarness(onTestFinished, { tokenLifeSeconds: 1 });
    const host = file('on-the-host', `${sandbox.refreshToken}\n`);
    mkdirSync(join(folder, 'secrets'));
    const path = file('secrets/refresh', '');
    if (!bindMount(onTestFinished, host, path)) return skip();
    symlinkSync(path, join(folder, 'link'));
    const before = inode(host);
    const token = open({ refreshTokenFile: join(folder, 'link') });
    await token.start();
    await until('it was used twice', () => token.refreshes >= 1);
    await token.close();
    expect([contentOf(host), inode(host)]).toEqual([`${sandbox.refreshToken}\n`, before]);
    expect(readdirSync(join(folder, 'secrets'))).toEqual(['refresh']);
    await open({ refreshTokenFile: path }).start();
  });

  test('in a writable file of a read-only folder is stored there', async ({ expect, skip, onTestFinished }) => {
    const { sandbox, file, folder, open } = await openTokenHarness(onTestFinished);
    const host = file('on-the-host', sandbox.refreshToken);
    mkdirSync(join(folder, 'secrets'));
    const path = file('secrets/refresh', '');
    if (!bindMount(onTestFinished, join(folder, 'secrets'), join(folder, 'secrets'), ['ro'])) return skip();
    bindMount(onTestFinished, host, path);
    await open({ refreshTokenFile: path }).start();
    expect(contentOf(host)).toBe(`${sandbox.refreshToken}\n`);
  });

  test('behind a link into a place that takes no writes is not spent', async ({ expect, skip, onTestFinished }) => {
    const { sandbox, file, folder, open } = await openTokenHarness(onTestFinished);
    mkdirSync(join(folder, 'secrets'));
    file('secrets/refresh', sandbox.refreshToken);
    if (!bindMount(onTestFinished, join(folder, 'secrets'), join(folder, 'secrets'), ['ro'])) return skip();
    symlinkSync(join(folder, 'secrets', 'refresh'), join(folder, 'link'));
    const start = async () => open({ refreshTokenFile: join(folder, 'link') }).start();
    const failure = await start().catch((error) => error);
    expect([failure.code, sandbox.counts.tokens, sandbox.seen.length]).toEqual(['CREDENTIALS', 0, 0]);
    expect(failure.message).toMatch(/link.*read-only/);
  });

  test('is not spent where the next one could not be stored', async ({ expect, onTestFinished }) => {
    const { sandbox, file } = await openTokenHarness(onTestFinished);
    const real = refreshTokenFile(file('refresh', sandbox.refreshToken));
    let isFull = true;
    const full = async (store: () => Promise<void>) => {
      if (isFull) throw Object.assign(new Error('ENOSPC: no space left on device, write'), { code: 'ENOSPC' });
      await store();
    };
    const token = openWith(sandbox, {
      ...real,
      checkWritable: () => full(real.checkWritable),
      store: (refreshToken) => full(() => real.store(refreshToken)),
    });
    onTestFinished(() => token.close());
    await expect(token.start()).rejects.toMatchObject({
      code: 'CREDENTIALS',
      message: expect.stringMatching(/^cannot store a refresh token in \S+refresh \(no space left on the disk\)/),
    });
    expect([sandbox.counts.tokens, contentOf(real.path)]).toEqual([0, sandbox.refreshToken]);
    isFull = false;
    await token.start();
    expect([sandbox.counts.tokens, contentOf(real.path)]).toEqual([1, `${sandbox.refreshToken}\n`]);
  });

  test('that could not be stored is stored before another one is asked for', async ({ expect, onTestFinished }) => {
    const { sandbox, file } = await openTokenHarness(onTestFinished);
    const real = refreshTokenFile(file('refresh', sandbox.refreshToken));
    let refusals = 0;
    const store = (refreshToken: string) => {
      if (++refusals <= 2) return Promise.reject(Object.assign(new Error('EIO'), { code: 'EIO' }));
      return real.store(refreshToken);
    };
    const token = openWith(sandbox, { ...real, store });
    onTestFinished(() => token.close());
    await token.start();
    expect([token.authorization(), sandbox.counts.tokens]).toEqual([null, 1]);
    await until('it tried again in vain', () => refusals === 2);
    expect(sandbox.counts.tokens).toBe(1);
    await until('there is a token', () => token.authorization());
    expect(contentOf(real.path)).toBe(`${sandbox.refreshToken}\n`);
  });

  test('keeps the owner and the rights of its file', async ({ expect, onTestFinished }) => {
    const { sandbox, file, open } = await openTokenHarness(onTestFinished);
    const path = file('refresh', sandbox.refreshToken);
    if (process.getuid?.() === 0) chownSync(path, 1, 1);
    chmodSync(path, 0o640);
    const facts = () => (({ uid, gid, mode }) => [uid, gid, mode & 0o777])(statSync(path));
    const before = facts();
    await open({ refreshTokenFile: path }).start();
    expect([contentOf(path), facts()]).toEqual([`${sandbox.refreshToken}\n`, before]);
  });

  test('that is not rotated stays as it is', async ({ expect, onTestFinished }) => {
    const { sandbox, file, open } = await openTokenHarness(onTestFinished, {
      tokenFaults: { answer: { refresh_token: undefined } },
    });
    const path = file('refresh', sandbox.refreshToken);
    const before = contentOf(path);
    const token = open({ refreshTokenFile: path });
    await token.start();
    expect([contentOf(path), token.authorization() === null]).toEqual([before, false]);
  });

  test('that is stored even where the access token is of no use', async ({ expect, onTestFinished }) => {
    const { sandbox, file, open } = await openTokenHarness(onTestFinished, {
      tokenFaults: { answer: { token_type: 'mac' } },
    });
    const path = file('refresh', sandbox.refreshToken);
    await expect(open({ refreshTokenFile: path }).start()).rejects.toThrow('another type than Bearer');
    expect(contentOf(path)).toBe(`${sandbox.refreshToken}\n`);
  });

  test('that is no longer good is refused for good', async ({ expect, onTestFinished }) => {
    const { file, open } = await openTokenHarness(onTestFinished);
    await expect(open({ refreshTokenFile: file('refresh', 'old') }).start()).rejects.toMatchObject({
      code: 'CREDENTIALS',
      message:
        'the token endpoint refused to give a token: 400 invalid_grant; the grant that it was requested with, such as a refresh token, is no longer valid',
    });
  });

  test('that another process has put there meanwhile is used before anybody gives up', async ({
    expect,
    onTestFinished,
  }) => {
    const { sandbox, file, open } = await openTokenHarness(onTestFinished, { tokenFaults: { latencyMs: 200 } });
    const path = file('refresh', 'old');
    const token = open({ refreshTokenFile: path });
    const started = token.start();
    await until('it is asked', () => sandbox.seen.length === 1);
    file('refresh', sandbox.refreshToken);
    await started;
    expect(token.waiting).toMatch(/^the refresh token was refused, but \S+refresh holds another one now; trying/);
    await until('there is a token', () => token.authorization());
  });

  test('is stored before the token is closed', async ({ expect, onTestFinished }) => {
    const { sandbox, file, open } = await openTokenHarness(onTestFinished, { tokenFaults: { latencyMs: 300 } });
    const path = file('refresh', sandbox.refreshToken);
    const token = open({ refreshTokenFile: path });
    void token.start();
    await until('it is asked', () => sandbox.seen.length === 1);
    await token.close();
    expect([sandbox.counts.tokens, contentOf(path)]).toEqual([1, `${sandbox.refreshToken}\n`]);
  });
});
