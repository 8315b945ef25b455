import { randomBytes } from 'node:crypto';
import { constants } from 'node:fs';
import { type FileHandle, open, readFile, realpath, rename, rm, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { messageOf } from '../errors.ts';
import { describeFileError, systemCode } from '../system-errors.ts';
import { describeTokenFault, isBearerToken, tokenFormat } from './bearer-token.ts';
import { readSecret, SecretMissing } from './fixed-token.ts';
import { parseLifeMs } from './refusals.ts';
import { type IssueResult, type Issuer, refused, unavailable } from './token.ts';
import {
  askTokenEndpoint,
  checkTokenAnswer,
  NoAnswer,
  type OAuthAnswer,
  type OAuthClient,
  readErrorAnswer,
} from './token-request.ts';

/** An issuer of tokens by client credentials (RFC 6749 §4.4). */
export function clientCredentials(client: OAuthClient): Issuer {
  return {
    source: oauthSource(client),
    issue: (closing) =>
      toIssueResult(async () => readToken(client, await askTokenEndpoint(client, 'client_credentials', {}, closing))),
  };
}

/** The source of a token, `https://auth.example.com/token (client abc)`: without the query of the URL, which may hold a secret. */
export function oauthSource({ tokenUrl, clientId }: Pick<OAuthClient, 'tokenUrl' | 'clientId'>): string {
  const { origin, pathname } = new URL(tokenUrl);
  return `${origin}${pathname} (client ${clientId})`;
}

/**
 * An issuer of tokens by a refresh token (RFC 6749 §6). A rotated refresh token is on disk before its access token is used, so that the next process
 * can continue after a crash. Use one file for each process, because two would invalidate each other's token.
 */
export function refreshGrant(client: OAuthClient, file: RefreshTokenFile): Issuer {
  let unstored: string | null = null; // a token that could not be written, while the one in the file is no longer valid
  let hasStored = false;

  /** Requests a token. Never ended early, because an unread answer would lose its refresh token. */
  async function issue(): Promise<IssueResult> {
    const used = unstored ?? (await file.read());
    if (!/^[\x20-\x7e]+$/.test(used))
      return refused(`${file.path}: expected one refresh token, got ${describeTokenFault(used)}`);
    const unfit = await makeReady();
    if (unfit !== null) return unfit;
    const answer = await askTokenEndpoint(client, 'refresh_token', { refresh_token: used });
    const rotated = answer.status === 200 ? answer.body?.refresh_token : undefined;
    if (typeof rotated === 'string' && rotated !== '') unstored = rotated;
    const problem = unstored === null ? null : await store(unstored);
    if (problem !== null) return problem;
    const end = await readToken(client, answer);
    return end.kind === 'refused' && answer.body?.error === 'invalid_grant' ? spent(end, used) : end;
  }

  /** Prepares for a request, which uses up the token: the file must be writable first, and an unstored token is stored first. */
  async function makeReady(): Promise<IssueResult | null> {
    if (unstored !== null) return store(unstored);
    try {
      await file.checkWritable();
      hasStored = true;
      return null;
    } catch (error) {
      const problem = `cannot store a refresh token in ${file.path} (${describeFileError(error)})`;
      if (hasStored) return unavailable(`${problem}; no token is requested until it can be stored`);
      return refused(
        `${problem}; no token was requested: each use replaces the refresh token, so its file must be writable`,
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

  /** Handles a spent refresh token. If the file now holds another one, that one is tried before giving up. */
  async function spent(end: IssueResult, used: string): Promise<IssueResult> {
    unstored = null;
    const now = await file.read();
    return now === used ? end : unavailable(`the refresh token was refused, but ${file.path} holds another one now`);
  }

  return { source: oauthSource(client), issue: () => toIssueResult(issue) };
}

/** The file of a refresh token. Most servers replace the token with each use, and then reject the old one. */
export type RefreshTokenFile = {
  path: string;
  /** Reads the refresh token. Throws SecretMissing. */
  read(): Promise<string>;
  /** Writes the present content again, like `store`, so that an unwritable file is found before the token is used up. Throws if it is unwritable. */
  checkWritable(): Promise<void>;
  /** Stores a token. Returns when it is on disk in place of the old one. Throws if it is not: then the file still holds the old one. */
  store(refreshToken: string): Promise<void>;
};

/** The refresh token in this file. Each write puts a new file in its place, under the same name. */
export function refreshTokenFile(path: string): RefreshTokenFile {
  return {
    path,
    read: () => readSecret(path),
    checkWritable: async () => replaceContent(path, await readFile(path)),
    store: (refreshToken) => replaceContent(path, Buffer.from(`${refreshToken}\n`)),
  };
}

/** Turns errors of the endpoint and of files into a result. Rethrows bugs. */
async function toIssueResult(issue: () => Promise<IssueResult>): Promise<IssueResult> {
  try {
    return await issue();
  } catch (error) {
    if (error instanceof NoAnswer) return unavailable(`the token endpoint cannot be reached (${messageOf(error)})`);
    // A replacement of the file may be in progress.
    if (error instanceof SecretMissing) return unavailable(messageOf(error));
    throw error;
  }
}

/** Reads the token in an answer. A token that is of another type, or cannot be in a header, is refused, because the next would be the same. */
async function readToken(client: OAuthClient, answer: OAuthAnswer): Promise<IssueResult> {
  const { status, body, secrets } = answer;
  if (status !== 200 || body === null || typeof body.error === 'string') return readErrorAnswer(answer, secrets);
  const token = body.access_token;
  if (typeof token !== 'string' || !isBearerToken(token)) {
    return refused(`the token endpoint gave no token that can be used; ${tokenFormat}`);
  }
  if (!(await isBearer(client, body))) return refused('the token endpoint gave a token of another type than Bearer');
  return { kind: 'issued', header: `Bearer ${token}`, lifeMs: parseLifeMs(body.expires_in) };
}

async function isBearer(client: OAuthClient, body: Record<string, unknown>): Promise<boolean> {
  try {
    return (await checkTokenAnswer(client, body)).token_type === 'bearer';
  } catch {
    return false;
  }
}

/** Codes with which a rename or a new file fails even if the file itself is writable. */
const onlyInPlace = ['EBUSY', 'EXDEV', 'EACCES', 'EPERM', 'EROFS'];

/**
 * Replaces a file with a new file of the same name, so that a crash leaves one or the other. Writes in place if the file is a mount or its folder is
 * read-only.
 */
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
    await writeDraft(target, draft, content);
    await rename(draft, target);
  } catch (error) {
    await rm(draft, { force: true }).catch(() => {});
    throw error;
  }
  await syncFolder(dirname(target));
}

/** Writes the draft with the owner and mode of the target. */
async function writeDraft(target: string, draft: string, content: Buffer): Promise<void> {
  const { uid, gid, mode } = await stat(target);
  await withFile(await open(draft, 'wx', 0o600), async (file) => {
    await file.chown(uid, gid);
    await file.chmod(mode & 0o777);
    await file.writeFile(content);
    await file.sync();
  });
}

/** Truncates after writing, so that the file is never empty. */
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

/** Makes the new name survive a loss of power, if the file system supports it. */
async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, 'r').catch(() => null);
  await folder?.sync().catch(() => {});
  await folder?.close();
}
