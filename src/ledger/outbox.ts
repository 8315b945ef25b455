import type { RedisClient } from '../redis/client.ts';
import { keys } from '../redis/keys.ts';

/*
 * The events of a target that workers with --notify post.
 *
 * An event is in the outbox for a day, among the last 1,000, even if no receiver wants it. Its number grows with time, also after the outbox was
 * empty. Each receiver has a cursor, which is the number of the last event that it took. So no receiver delays another. A new receiver begins at the
 * end.
 */

/** An event for people and programs. The same event always has the same id, however often it is made. */
export type OutboxEvent = {
  id: string;
  type: string;
  timestamp: string; // when it happened, ISO 8601
  data: Record<string, unknown>;
  text: string; // one line, for chat tools
};

const keptMs = 86_400_000;
const keptEvents = 1_000;

/**
 * Lua: puts an event into the outbox of a target, unless it is there already or `body` is ''. Each script that causes an event includes it, if its
 * keys have the hash tag of the target.
 */
export const addEventFunction = `
local function addEvent(outbox, events, id, body)
  if body == '' or redis.call('HEXISTS', events, id) == 1 then return end
  local time = redis.call('TIME')
  local now = time[1] * 1000000 + time[2]
  local last = redis.call('ZREVRANGE', outbox, 0, 0, 'WITHSCORES')
  redis.call('HSET', events, id, body)
  redis.call('ZADD', outbox, string.format('%.0f', math.max(now, tonumber(last[2] or 0) + 1)), id)
  local old = redis.call('ZRANGEBYSCORE', outbox, '-inf', string.format('%.0f', now - ${keptMs * 1_000}))
  for _, one in ipairs(redis.call('ZRANGE', outbox, 0, -${keptEvents + 1})) do old[#old + 1] = one end
  for _, one in ipairs(old) do
    redis.call('ZREM', outbox, one)
    redis.call('HDEL', events, one)
  end
  redis.call('PEXPIRE', outbox, ${keptMs})
  redis.call('PEXPIRE', events, ${keptMs})
end
`;

/** The keys of `addEvent`, and its arguments; null = no event. */
export function outboxKeys(fp: string): [string, string] {
  return [keys.outbox(fp), keys.outboxEvents(fp)];
}

export function eventArguments(event: OutboxEvent | null): [string, string] {
  return event === null ? ['', ''] : [event.id, JSON.stringify(event)];
}

/** Puts an event into the outbox. Repeating it changes nothing. */
export async function addEvent(redis: RedisClient, fp: string, event: OutboxEvent): Promise<void> {
  await redis.eval(addLua, 2, ...outboxKeys(fp), ...eventArguments(event));
}

// KEYS 1 outbox  2 events  ARGV 1 id  2 body
const addLua = `${addEventFunction}
addEvent(KEYS[1], KEYS[2], ARGV[1], ARGV[2])
`;

/** An event and its number in the outbox. */
export type NumberedEvent = { n: number; event: OutboxEvent };

const cursorKeptMs = 30 * 86_400_000;

/** Reads the number of the last event that a receiver took. A new receiver begins with the next event. Keeps the cursor for 30 more days. */
export async function readCursor(redis: RedisClient, fp: string, receiver: string): Promise<number> {
  return Number(await redis.eval(cursorLua, 1, keys.outboxCursor(fp, receiver), cursorKeptMs));
}

// KEYS 1 cursor  ARGV 1 ms; a cursor that was never set starts now, in microseconds, the unit of event numbers
const cursorLua = `
local at = redis.call('GET', KEYS[1])
if not at then
  local time = redis.call('TIME')
  at = string.format('%.0f', time[1] * 1000000 + time[2])
  redis.call('SET', KEYS[1], at)
end
redis.call('PEXPIRE', KEYS[1], ARGV[1])
return at
`;

/** Reads the first events after a number, at most `limit`. */
export async function readEvents(
  redis: RedisClient,
  fp: string,
  after: number,
  limit: number,
): Promise<NumberedEvent[]> {
  const found = await redis.zrangebyscore(keys.outbox(fp), `(${after}`, '+inf', 'WITHSCORES', 'LIMIT', 0, limit);
  const ids = found.filter((_, i) => i % 2 === 0);
  if (ids.length === 0) return [];
  const bodies = await redis.hmget(keys.outboxEvents(fp), ...ids);
  return bodies.flatMap((body, i) => (body === null ? [] : [{ n: Number(found[2 * i + 1]), event: JSON.parse(body) }]));
}

/** Records that a receiver took the event with this number and all events before it. Repeating it changes nothing, nor does a lower number. */
export async function moveCursor(redis: RedisClient, fp: string, receiver: string, n: number): Promise<void> {
  await redis.eval(moveLua, 1, keys.outboxCursor(fp, receiver), String(n), cursorKeptMs);
}

// KEYS 1 cursor  ARGV 1 number  2 ms
const moveLua = `
if tonumber(redis.call('GET', KEYS[1]) or 0) < tonumber(ARGV[1]) then redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2]) end
`;

/** The number of times a receiver has refused the event with this number, and when it is posted again, in ms since 1970. */
export type Refusals = { n: number; count: number; until: number };

/** Reads the refusals of the event that was refused last, whichever worker posted it. */
export async function readRefusals(redis: RedisClient, fp: string, receiver: string): Promise<Refusals> {
  const stored = await redis.get(keys.outboxRefusals(fp, receiver));
  return stored === null ? { n: 0, count: 0, until: 0 } : JSON.parse(stored);
}

/** Stores the refusals. Only the process that posts to the receiver is allowed to do this. Repeating it changes nothing. */
export async function storeRefusals(redis: RedisClient, fp: string, receiver: string, all: Refusals): Promise<void> {
  await redis.set(keys.outboxRefusals(fp, receiver), JSON.stringify(all), 'PX', keptMs);
}

const waitPrefix = 'run ';

/** Since when a target has been in an outage, and since when it has accepted nothing, by the last event about each; ms since 1970, null = it is over. */
export type PublishedTroubles = { outage: number | null; stall: number | null };

/** Reads these times. */
export async function readPublishedTroubles(redis: RedisClient, fp: string): Promise<PublishedTroubles> {
  const [outage = null, stall = null] = await redis.hmget(keys.outages(fp), 'outage', 'stall');
  return { outage: outage === null ? null : Number(outage), stall: stall === null ? null : Number(stall) };
}

/** The facts about a run that waits for a cause, as text. */
export type StoredWait = { run: string; why: string; text: string };

/** Reads the facts about the waiting runs of a target. */
export async function readWaits(redis: RedisClient, fp: string): Promise<StoredWait[]> {
  const found = Object.entries(await redis.hgetall(keys.outages(fp)));
  return found.flatMap(([field, text]) => {
    if (!field.startsWith(waitPrefix)) return [];
    const [run, why] = field.slice(waitPrefix.length).split(' ') as [string, string];
    return [{ run, why, text }];
  });
}

/**
 * Records the latest about a run that waits (`to` null: it no longer waits), with its event (null = none), unless another process has recorded it.
 */
export async function publishWait(
  redis: RedisClient,
  fp: string,
  { run, why, from, to }: { run: string; why: string; from: string | null; to: string | null },
  event: OutboxEvent | null,
): Promise<void> {
  await changePublished(redis, fp, { field: `${waitPrefix}${run} ${why}`, from, to }, event);
}

/** Records that an outage or a stall began, or ended (`to` null), with its event (null = none), unless another process has recorded it. */
export async function publishTrouble(
  redis: RedisClient,
  fp: string,
  field: keyof PublishedTroubles,
  { from, to }: { from: number | null; to: number | null },
  event: OutboxEvent | null,
): Promise<void> {
  await changePublished(redis, fp, { field, from, to }, event);
}

async function changePublished(
  redis: RedisClient,
  fp: string,
  { field, from, to }: { field: string; from: string | number | null; to: string | number | null },
  event: OutboxEvent | null,
): Promise<void> {
  const published = [field, from ?? '', to ?? ''];
  await redis.eval(publishedLua, 3, keys.outages(fp), ...outboxKeys(fp), ...published, ...eventArguments(event));
}

// KEYS 1 outages  2 outbox  3 events  ARGV 1 outage, stall, or run and cause  2 its old value, or ''  3 its new value, or ''  4 id  5 body
const publishedLua = `${addEventFunction}
if (redis.call('HGET', KEYS[1], ARGV[1]) or '') ~= ARGV[2] then return end
if ARGV[3] == '' then redis.call('HDEL', KEYS[1], ARGV[1]) else redis.call('HSET', KEYS[1], ARGV[1], ARGV[3]) end
addEvent(KEYS[2], KEYS[3], ARGV[4], ARGV[5])
`;
