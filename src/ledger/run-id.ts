import { randomInt } from 'node:crypto';
import { ExpungeError } from '../errors.ts';
import type { RedisClient } from '../redis/client.ts';
import { keys } from '../redis/keys.ts';

const letters = 'abcdefghjkmnpqrstuvwxyz23456789'; // none that look alike

/** A run id that people can read out: `20261120-1549-k7qd`. It sorts by time and is legal in a job id. */
export function newRunId(now: number): string {
  const stamp = new Date(now).toISOString().replaceAll('-', '').replace('T', '-').replace(':', '').slice(0, 13);
  const tail = Array.from({ length: 4 }, () => letters[randomInt(letters.length)]).join('');
  return `${stamp}-${tail}`;
}

/** The run a person means: its id, or a beginning or end of it that only one run has. Throws USAGE otherwise. */
export async function findRunId(redis: RedisClient, text: string): Promise<string> {
  const all = await redis.zrevrange(keys.runs, 0, -1);
  if (all.includes(text)) return text;
  const matches = text === '' ? [] : all.filter((id) => id.startsWith(text) || id.endsWith(text));
  if (matches.length === 1) return matches[0]!;
  const next = 'expunge runs lists them';
  if (matches.length === 0) throw new ExpungeError('USAGE', `no run is called "${text}"`, { next });
  throw new ExpungeError(
    'USAGE',
    `"${text}" fits ${matches.length} runs, among them ${matches.slice(0, 3).join(', ')}`,
    { next },
  );
}
