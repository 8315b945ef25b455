import { createHash, randomBytes } from 'node:crypto';
import { ExpungeError } from '../errors.ts';
import { isoTime } from '../format.ts';
import { type AuditEntry, noteAuditLua, parseEntry, storedEntry } from '../ledger/audit.ts';
import type { Role } from '../model/role.ts';
import type { Reach } from '../model/target.ts';
import type { RedisClient } from '../redis/client.ts';
import { keys } from '../redis/keys.ts';

/** A token as Redis has it: never the token itself. Times are ms since 1970; `expiresAt` 0 = never; `reach`: the targets that it is bound to. */
export type KnownToken = Person & { at: number; who: string; expiresAt: number };

/** A person, their role, and the targets in their reach. */
export type Person = { name: string; role: Role; reach: Reach };

/** The person of a token or a session, without its other facts. */
export function toPerson({ name, role, reach }: Person): Person {
  return { name, role, reach };
}

const tokenPrefix = 'expunge_';
const maxTokens = 1_000;

/** The hash under which a token or a session is stored. Both are random, so that one round of SHA-256 is enough. */
export function hashSecret(secret: string): string {
  return createHash('sha256').update(secret).digest('hex');
}

export function randomSecret(): string {
  return randomBytes(32).toString('base64url');
}

/**
 * Stores a new token under a name with an entry in the audit trail, and returns it: this is the only time that it can be shown. Throws USAGE for a
 * name that has a token already, and for an admin bound to targets: an admin approves the plans of all.
 */
export async function addToken(redis: RedisClient, token: KnownToken): Promise<string> {
  const { at, who, name, role, reach } = token;
  if (role === 'admin' && reach !== null)
    throw new ExpungeError('USAGE', 'an admin approves the plans of all targets, and cannot be bound to some', {
      next: 'use the role operate',
    });
  const secret = tokenPrefix + randomSecret();
  const targets = reach === null ? {} : { targets: reachFacts(reach) };
  const entry: AuditEntry = { at, action: 'add', by: 'operator', who, reason: '', name, role, ...targets };
  const added = await redis.eval(
    ...[addLua, 2, keys.apiTokens, keys.apiTokenAudit],
    ...[hashSecret(secret), name, JSON.stringify(token), maxTokens, storedEntry(entry)],
  );
  if (added === 1) return secret;
  const what =
    added === 0 ? `there is already a token with the name "${token.name}"` : `there are already ${maxTokens} tokens`;
  throw new ExpungeError('USAGE', what, {
    next: (toType) => `revoke it first: ${toType('token revoke', 'NAME')}; ${toType('token list')} shows all`,
  });
}

// KEYS 1 tokens  2 audit  ARGV 1 hash  2 name  3 record  4 how many there may be  5 audit entry; returns 1, or 0 for a name that is taken, or -1
const addLua = `
local all = redis.call('HVALS', KEYS[1])
for _, record in ipairs(all) do
  if cjson.decode(record).name == ARGV[2] then return 0 end
end
if #all >= tonumber(ARGV[4]) then return -1 end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[3])
${noteAuditLua('KEYS[2]', 'ARGV[5]')}
return 1
`;

/** Parses a stored token. A token from before tokens could be bound reaches all targets. */
function parseToken(text: string): KnownToken {
  return { reach: null, ...JSON.parse(text) };
}

/** All tokens, by name. */
export async function listTokens(redis: RedisClient): Promise<KnownToken[]> {
  const all = (await redis.hvals(keys.apiTokens)).map(parseToken);
  return all.sort((a, b) => (a.name < b.name ? -1 : 1));
}

/**
 * Revokes the token of a name with an entry in the audit trail, and with it every session that it began. Returns false if there is none. Repeating it
 * is harmless.
 */
export async function revokeToken(redis: RedisClient, name: string, who: string, at: number): Promise<boolean> {
  const entry: AuditEntry = { at, action: 'revoke', by: 'operator', who, reason: '', name };
  return (await redis.eval(revokeLua, 2, keys.apiTokens, keys.apiTokenAudit, name, storedEntry(entry))) === 1;
}

// KEYS 1 tokens  2 audit  ARGV 1 name  2 audit entry; returns 1, or 0 if no token has the name
const revokeLua = `
local all = redis.call('HGETALL', KEYS[1])
for i = 1, #all, 2 do
  if cjson.decode(all[i + 1]).name == ARGV[1] then
    redis.call('HDEL', KEYS[1], all[i])
    ${noteAuditLua('KEYS[2]', 'ARGV[2]')}
    return 1
  end
end
return 0
`;

/** Who made and revoked tokens, oldest first; the last hundred entries. */
export async function readTokenAudit(redis: RedisClient): Promise<AuditEntry[]> {
  return (await redis.lrange(keys.apiTokenAudit, 0, -1)).map(parseEntry).reverse();
}

/** The token with this hash; null if it is unknown, revoked or expired. */
export async function readToken(redis: RedisClient, hash: string, now: number): Promise<KnownToken | null> {
  const text = await redis.hget(keys.apiTokens, hash);
  const token = text === null ? null : parseToken(text);
  return token === null || (token.expiresAt > 0 && token.expiresAt <= now) ? null : token;
}

/** A person who is logged in. `token`: the hash of the token that began the session. */
export type LoggedIn = Person & { token: string };

export const sessionMs = 12 * 3_600_000;

/** Begins a session, and returns the value of its cookie. */
export async function beginSession(redis: RedisClient, who: LoggedIn): Promise<string> {
  const cookie = randomSecret();
  await redis.set(keys.apiSession(hashSecret(cookie)), JSON.stringify(who), 'PX', sessionMs);
  return cookie;
}

/** The person with this cookie; null once the session or its token has ended. */
export async function readSession(redis: RedisClient, cookie: string, now: number): Promise<LoggedIn | null> {
  const text = await redis.get(keys.apiSession(hashSecret(cookie)));
  if (text === null) return null;
  const who = JSON.parse(text) as LoggedIn;
  const token = await readToken(redis, who.token, now);
  return token === null ? null : { ...who, role: token.role, reach: token.reach };
}

/** Ends a session. Repeating it is harmless. */
export async function endSession(redis: RedisClient, cookie: string): Promise<void> {
  await redis.del(keys.apiSession(hashSecret(cookie)));
}

/** A token for `--json`: never the token itself. */
export function tokenFacts({ name, role, reach, at, who, expiresAt }: KnownToken) {
  return {
    name,
    role,
    targets: reachFacts(reach),
    created_at: isoTime(at),
    created_by: who,
    expires_at: expiresAt > 0 ? isoTime(expiresAt) : null,
  };
}

/** The targets that a person is bound to, for the API; null: all. */
export function reachFacts(reach: Reach) {
  return reach?.map(({ fp, baseUrl, account }) => ({ fp, target: baseUrl, account })) ?? null;
}
