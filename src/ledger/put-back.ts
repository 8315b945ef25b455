import type { RedisClient } from '../redis/client.ts';
import { keys } from '../redis/keys.ts';

/**
 * Why an answer is not the outcome of its id: it is about the `rate`, or about the `token`; the API refused the token for this id alone (`refused`);
 * many ids were answered the same way (`alike`); another request may be answered otherwise (`retried`); or it halts the run (`halts`).
 */
export type PutBackReason = keyof typeof reasons;

const reasons = {
  rate: 'it is about the rate',
  token: 'it is about the token',
  refused: 'other ids get through with the token, and this one is asked for a few more times',
  alike: 'many ids in a row were answered so',
  retried: 'another request may be answered otherwise',
  halts: 'it halts the run',
} as const;

/** The last answer of an id that has no outcome yet. `answered`: `answered 404`, or `no answer`. `excerpt`: the server's words, or ''. */
export type PutBack = { why: PutBackReason; answered: string; excerpt: string };

/** The same for people: `answered 404; not recorded, because it is about the rate: slow down`. */
export function describePutBack({ why, answered, excerpt }: PutBack): string {
  return `${answered}; not recorded, because ${reasons[why]}${excerpt && `: ${excerpt}`}`;
}

/** One answer and the indexes of the ids that got it. */
type Stored = [why: PutBackReason, answered: string, excerpt: string, indexes: number[]];

const excerptsMax = 20; // in one chunk; further answers are kept without their excerpts

/**
 * Replaces what is known of the answers that were put back in a chunk. `isOpen`: whether an id still has no outcome; the others are left out.
 * `isFirst`: no earlier pass can have stored any. At most a few kB for each chunk, in one field. The ledger does not depend on it. Throws if Redis
 * fails.
 */
export async function storePutBack(
  redis: RedisClient,
  run: string,
  chunk: number,
  { found, isOpen, isFirst }: { found: ReadonlyMap<number, PutBack>; isOpen(index: number): boolean; isFirst: boolean },
): Promise<void> {
  const earlier = isFirst ? new Map<number, PutBack>() : await readPutBack(redis, run, chunk);
  const all = [...new Map([...earlier, ...found])].filter(([index]) => isOpen(index));
  if (all.length > 0) await redis.hset(keys.details(run), fieldOf(chunk), JSON.stringify(grouped(all)));
  else if (earlier.size > 0) await redis.hdel(keys.details(run), fieldOf(chunk));
}

/** Reads, by index, the answers that were put back in a chunk. Ids that have their outcome since may be among them. Throws if Redis fails. */
export async function readPutBack(redis: RedisClient, run: string, chunk: number): Promise<Map<number, PutBack>> {
  const text = await redis.hget(keys.details(run), fieldOf(chunk));
  const stored = text === null ? [] : (JSON.parse(text) as Stored[]);
  return new Map(
    stored.flatMap(([why, answered, excerpt, indexes]) =>
      indexes.map((index) => [index, { why, answered, excerpt }] as const),
    ),
  );
}

function grouped(all: [index: number, answer: PutBack][]): Stored[] {
  const groups = new Map<string, Stored>();
  for (const [index, answer] of all) {
    const hasRoom = groups.size < excerptsMax || groups.has(JSON.stringify(answer));
    const { why, answered, excerpt } = hasRoom ? answer : { ...answer, excerpt: '' };
    const key = JSON.stringify({ why, answered, excerpt });
    const group: Stored = groups.get(key) ?? [why, answered, excerpt, []];
    group[3].push(index);
    groups.set(key, group);
  }
  return [...groups.values()];
}

function fieldOf(chunk: number): string {
  return `open:${chunk}`;
}
