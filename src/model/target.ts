import { createHash } from 'node:crypto';

/** Where deletes go: normalised base URL + account. Never the token, so that a rotated token is still the same target. */
export type Target = { baseUrl: string; account: string; fp: string };

/** `fp`: the target's fingerprint, 16 hex digits, part of its Redis keys. */
export function targetOf(baseUrl: string, account: string): Target {
  const fp = createHash('sha256').update(`${baseUrl}\n${account}`).digest('hex').slice(0, 16);
  return { baseUrl, account, fp };
}

/** The identity of a list for a target: the same rows for the same target are the same run. */
export function listOf({ fp }: Target, rowsSha256: string): string {
  return createHash('sha256').update(`${fp}\n${rowsSha256}`).digest('hex');
}
