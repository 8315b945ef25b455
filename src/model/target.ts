import { createHash } from 'node:crypto';
import { quoteForShell } from './shell-word.ts';
import type { ToType } from './to-type.ts';

/** The place where deletes go: normalised base URL + account. Never the token, so that a rotated token is still the same target. */
export type Target = { baseUrl: string; account: string; fp: string };

/** `fp`: the target's fingerprint, 16 hex digits, part of its Redis keys. */
export function targetOf(baseUrl: string, account: string): Target {
  const fp = createHash('sha256').update(`${baseUrl}\n${account}`).digest('hex').slice(0, 16);
  return { baseUrl, account, fp };
}

/** The targets that a user is allowed to see and steer; null: all. */
export type Reach = readonly Target[] | null;

/** Whether an object of this target is within reach. */
export function isWithin(reach: Reach, { baseUrl, account }: Pick<Target, 'baseUrl' | 'account'>): boolean {
  return reach === null || reach.some((target) => target.baseUrl === baseUrl && target.account === account);
}

/**
 * The identity of a list for a target: the same rows for the same target are the same run. The rows of a retried run are a different list from the
 * same rows in a file.
 */
export function hashList({ fp }: Target, rowsSha256: string, retryOf = ''): string {
  const of = retryOf === '' ? '' : `retry of ${retryOf}\n`;
  return createHash('sha256').update(`${fp}\n${of}${rowsSha256}`).digest('hex');
}

/** The line to type for a command on this target. */
export function commandFor(toType: ToType, command: string, target: Pick<Target, 'baseUrl' | 'account'>): string {
  return toType(command, ...targetWords(target));
}

/** The flags that name this target. */
export function targetFlags(target: Pick<Target, 'baseUrl' | 'account'>): string {
  return targetWords(target).map(quoteForShell).join(' ');
}

function targetWords({ baseUrl, account }: Pick<Target, 'baseUrl' | 'account'>): string[] {
  return ['--base-url', baseUrl, ...(account ? ['--account', account] : [])];
}
