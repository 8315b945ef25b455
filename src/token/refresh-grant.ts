import { fileWords } from '../system-words.ts';
import { type IssueEnd, type Issuer, refused, unavailable } from './issuer.ts';
import { askTokenEndpoint, type OAuthClient } from './oauth-request.ts';
import { issueEnd, oauthSource, readToken } from './oauth-token.ts';
import type { RefreshTokenFile } from './refresh-token-file.ts';

/**
 * Tokens by a refresh token (RFC 6749 §6). A rotated one is on the disk before the access token that came with it is used: after a crash
 * the next process goes on with it. One process a file: two would rotate it under each other's hands.
 */
export function refreshGrant(client: OAuthClient, file: RefreshTokenFile): Issuer {
  let unstored: string | null = null; // the disk did not take it, and the one in the file is worth nothing any more
  let hasStored = false;

  /** Not ended early by anybody: an answer that is not read is a refresh token that is lost. */
  async function issue(): Promise<IssueEnd> {
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
  async function makeReady(): Promise<IssueEnd | null> {
    if (unstored !== null) return store(unstored);
    try {
      await file.rehearse();
      hasStored = true;
      return null;
    } catch (error) {
      const trouble = `cannot store a refresh token in ${file.path} (${fileWords(error)})`;
      if (hasStored) return unavailable(`${trouble}; nobody is asked for one before it can`);
      return refused(
        `${trouble}; nobody was asked for a token: it is replaced with each use, so its file must be writable`,
      );
    }
  }

  async function store(refreshToken: string): Promise<IssueEnd | null> {
    try {
      await file.store(refreshToken);
      unstored = null;
      return null;
    } catch (error) {
      return unavailable(`cannot store the new refresh token in ${file.path} (${fileWords(error)})`);
    }
  }

  /** Somebody may have put another one into the file meanwhile: that one is tried before anybody gives up. */
  async function spent(end: IssueEnd, used: string): Promise<IssueEnd> {
    unstored = null;
    const now = await file.read();
    return now === used ? end : unavailable(`the refresh token was refused, but ${file.path} holds another one now`);
  }

  return { source: oauthSource(client), issue: () => issueEnd(issue) };
}
