import { messageOf } from '../errors.ts';
import { deniedWords } from './denied.ts';

/**
 * Why Redis answers and does not do what it was asked, though it may later, in words: `its disk is full (MISCONF)`; '' for any other error. They
 * never hold what was asked.
 */
export function refusalWords(error: unknown): string {
  const message = messageOf(error);
  const [, code] = refusal.exec(message) ?? [];
  if (code !== undefined) return `${refusals[code]!(message)} (${code})`;
  const denied = deniedWords(error);
  return denied === null ? '' : `${denied} (NOPERM)`;
}

/** What to do about such words; null for others. */
export function refusalAdvice(words: string): string | null {
  return advice.find(([code]) => words.endsWith(code))?.[1] ?? null;
}

/** What to do about a disk that takes no more. */
export const mendDisk = 'make room on its disk, and see its log';

const advice = [
  ['(OOM)', 'raise its maxmemory, or remove what fills it'],
  ['(MISCONF)', mendDisk],
  ['(NOREPLICAS)', 'bring its replicas back, or lower its min-replicas-to-write'],
  ['(READONLY)', 'name the primary in REDIS_URL, or its sentinels'],
] as const;

// In a script of Redis 6.2 the code stands behind the place in the script: "ERR Error running script …: -OOM command not allowed".
const refusal = /(?:^|-)(MISCONF|OOM|NOREPLICAS|READONLY|LOADING|MASTERDOWN)\b/;

const refusals: Record<string, (message: string) => string> = {
  MISCONF: diskWords,
  OOM: () => 'its memory is full, maxmemory is reached',
  NOREPLICAS: () => 'too few of its replicas are connected',
  READONLY: () => 'it is a read-only replica',
  LOADING: () => 'it is still loading its data',
  MASTERDOWN: () => 'it is a replica that has lost its primary',
};

/** A snapshot that failed says no more than that; what became of the append-only file is told by the system. */
function diskWords(message: string): string {
  const [, why] = /AOF file: (.+?)(?:$|\.? script:)/.exec(message) ?? [];
  if (why === 'No space left on device') return 'its disk is full';
  return why ? `it can't write its append-only file: ${why}` : 'its snapshot failed, the disk may be full';
}
