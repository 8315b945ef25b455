import { randomBytes } from 'node:crypto';
import { constants } from 'node:fs';
import { type FileHandle, open, readFile, realpath, rename, rm, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { messageOf, systemCode } from '../errors.ts';
import { describeFileError } from '../system-errors.ts';
import { readSecret, SecretMissing } from './fixed-token.ts';
import { lifeMsOf } from './refusals.ts';
import { type IssueResult, type Issuer, isBearerToken, refused, tokenFormat, unavailable } from './token.ts';
import {
  askTokenEndpoint,
  checkTokenAnswer,
  NoAnswer,
  type OAuthAnswer,
  type OAuthClient,
  readErrorAnswer,
} from './token-request.ts';

/** Tokens by client credentials (RFC 6749 §4.4). */
export function clientCredentials(client: OAuthClient): Issuer {
  return {
    source: oauthSource(client),
    issue: (closing) =>
      toIssueResult(async () => readToken(client, await askTokenEndpoint(client, 'client_credentials', {}, closing))),
  };
}

/** `https://auth.example.com/token (client abc)`: without the query of the URL, which may hold anything. */
export function oauthSource({ tokenUrl, clientId }: Pick<OAuthClient, 'tokenUrl' | 'clientId'>): string {
  const { origin, pathname } = new URL(tokenUrl);
  return `${origin}${pathname} (client ${clientId})`;
}

/** Makes an end of what goes wrong on the way. Bugs are thrown on. */
async function toIssueResult(issue: () => Promise<IssueResult>): Promise<IssueResult> {
  try {
    return await issue();
  } catch (error) {
    if (error instanceof NoAnswer) return unavailable(`the token endpoint cannot be reached (${messageOf(error)})`);
    // Whoever replaces the file may be about to put it back.
    if (error instanceof SecretMissing) return unavailable(messageOf(error));
    throw error;
  }
}

/** The token in an answer. One of another type, or that cannot stand in a header, is refused: the next would be the same. */
async function readToken(client: OAuthClient, answer: OAuthAnswer): Promise<IssueResult> {
  const { status, body, secrets } = answer;
  if (status !== 200 || body === null || typeof body.error === 'string') return readErrorAnswer(answer, secrets);
  const token = body.access_token;
  if (typeof token !== 'string' || !isBearerToken(token)) {
    return refused(`the token endpoint gave no token that can be used; ${tokenFormat}`);
  }
  if (!(await isBearer(client, body))) return refused('the token endpoint gave a token of another type than Bearer');
  return { kind: 'issued', header: `Bearer ${token}`, lifeMs: lifeMsOf(body.expires_in) };
}

async function isBearer(client: OAuthClient, body: Record<string, unknown>): Promise<boolean> {
  try {
    return (await checkTokenAnswer(client, body)).token_type === 'bearer';
  } catch {
    return false;
  }
}

/**
 * Tokens by a refresh token (RFC 6749 §6). A rotated one is on the disk before the access token that came with it is used: after a crash
 * the next process goes on with it. One process a file: two would rotate it under each other's hands.
 */
export function refreshGrant(client: OAuthClient, file: RefreshTokenFile): Issuer {
  let unstored: string | null = null; // the disk did not take it, and the one in the file is worth nothing any more
  let hasStored = false;

  /** Not ended early by anybody: an answer that is not read is a refresh token that is lost. */
  async function issue(): Promise<IssueResult> {
    const used = unstored ?? (await file.read());
    if (!/^[\x20-\x7e]+$/.test(used))
      return refused(`${file.path}: expected one refresh token, got other text or nothing`);
    const unfit = await makeReady();
    if (unfit !== null) return unfit;
    const answer = await askTokenEndpoint(client, 'refresh_token', { refresh_token: used });
    const rotated = answer.status === 200 ? answer.body?.refresh_token : undefined;
    if (typeof rotated === 'string' && rotated !== '') unstored = rotated;
    const trouble = unstored === null ? null : await store(unstored);
    if (trouble !== null) return trouble;
    const end = await readToken(client, answer);
    return end.kind === 'refused' && answer.body?.error === 'invalid_grant' ? spent(end, used) : end;
  }

  /** A token is spent by asking with it: nobody is asked before the next one could be stored, and one that is not stored yet comes first. */
  async function makeReady(): Promise<IssueResult | null> {
    if (unstored !== null) return store(unstored);
    try {
      await file.checkWritable();
      hasStored = true;
      return null;
    } catch (error) {
      const trouble = `cannot store a refresh token in ${file.path} (${describeFileError(error)})`;
      if (hasStored) return unavailable(`${trouble}; nobody is asked for one before it can`);
      return refused(
        `${trouble}; nobody was asked for a token: it is replaced with each use, so its file must be writable`,
      );
    }
  }

  async function store(refreshToken: string): Promise<IssueResult | null> {
    try {
      await file.store(refreshToken);
      unstored = null;
      return null;
    } catch (error) {
      return unavailable(`cannot store the new refresh token in ${file.path} (${describeFileError(error)})`);
    }
  }

  /** Somebody may have put another one into the file meanwhile: that one is tried before anybody gives up. */
  async function spent(end: IssueResult, used: string): Promise<IssueResult> {
    unstored = null;
    const now = await file.read();
    return now === used ? end : unavailable(`the refresh token was refused, but ${file.path} holds another one now`);
  }

  return { source: oauthSource(client), issue: () => toIssueResult(issue) };
}

/** Where a refresh token is kept. Most servers replace it with each use, and the old one is worth nothing from then on. */
export type RefreshTokenFile = {
  path: string;
  /** Throws SecretMissing. */
  read(): Promise<string>;
  /** Stores what is there already, in the way of `store`: a place that takes no writes is found before the token is spent. Throws if it is one. */
  checkWritable(): Promise<void>;
  /** Returns when it is on the disk, in place of the old one. Throws if it isn't: then the old one still stands. */
  store(refreshToken: string): Promise<void>;
};

export function refreshTokenFile(path: string): RefreshTokenFile {
  return {
    path,
    read: () => readSecret(path),
    checkWritable: async () => replaceContent(path, await readFile(path)),
    store: (refreshToken) => replaceContent(path, Buffer.from(`${refreshToken}\n`)),
  };
}

/** What a rename over the file, or a new file beside it, fails with where the file itself can be written all the same. */
const onlyInPlace = ['EBUSY', 'EXDEV', 'EACCES', 'EPERM', 'EROFS'];

/** By a new file that takes its name, so that a crash leaves the old or the new one; in place where it is a mount or its folder is closed to us. */
async function replaceContent(path: string, content: Buffer): Promise<void> {
  const target = await realpath(path); // a link stays a link
  try {
    await replace(target, content);
  } catch (error) {
    if (!onlyInPlace.includes(systemCode(error))) throw error;
    await overwrite(target, content);
  }
}

async function replace(target: string, content: Buffer): Promise<void> {
  const draft = `${target}.${randomBytes(6).toString('hex')}`;
  try {
    await writeBeside(target, draft, content);
    await rename(draft, target);
  } catch (error) {
    await rm(draft, { force: true }).catch(() => {});
    throw error;
  }
  await syncFolder(dirname(target));
}

/** With the owner and the rights of the other. */
async function writeBeside(target: string, draft: string, content: Buffer): Promise<void> {
  const { uid, gid, mode } = await stat(target);
  await withFile(await open(draft, 'wx', 0o600), async (file) => {
    await file.chown(uid, gid);
    await file.chmod(mode & 0o777);
    await file.writeFile(content);
    await file.sync();
  });
}

/** Cut off behind the new content only: at no time the file is empty. */
async function overwrite(target: string, content: Buffer): Promise<void> {
  await withFile(await open(target, constants.O_WRONLY), async (file) => {
    await file.write(content, 0, content.length, 0);
    await file.truncate(content.length);
    await file.sync();
  });
}

async function withFile(file: FileHandle, work: (file: FileHandle) => Promise<void>): Promise<void> {
  try {
    await work(file);
  } finally {
    await file.close();
  }
}

/** Makes the new name last through a loss of power. Some file systems cannot; then the name is as safe as they make it. */
async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, 'r').catch(() => null);
  await folder?.sync().catch(() => {});
  await folder?.close();
}
