import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Redis } from 'ioredis';
import type { OwnRedis } from './harness.ts';

const topic = readFileSync(new URL('../../src/help/redis.md', import.meta.url), 'utf8');

/** What the topic redis has behind `ACL SETUSER expunge`, with another password. */
export function loginRule(password: string): string[] {
  return wordsIn(/ACL SETUSER expunge ([^`]+)/, topic).map((word) => word.replace('PASSWORD', () => password));
}

/** What it adds to that for a cluster. */
export function clusterRights(): string[] {
  return wordsIn(/and a cluster `([^`]+)`/, topic);
}

/** What a shell would make of it. */
function wordsIn(pattern: RegExp, text: string): string[] {
  const [, found] = pattern.exec(text) ?? [];
  if (found === undefined) throw new Error('the topic has no such rights');
  const words = found.split(/[\s\\]+/).filter((word) => word !== '');
  return words.map((word) => word.replace(/^'(.*)'$/, '$1'));
}

/** Makes that login on these servers, with further rights (or without some: `-hset`), and what a command needs to use it at this URL. */
export async function makeLogin(
  admins: readonly Redis[],
  folder: string,
  url: string,
  ...more: string[]
): Promise<OwnRedis> {
  const password = 'a pass:word/of@its own';
  for (const admin of admins) await admin.acl('SETUSER', 'expunge', ...loginRule(password), ...more);
  const [username, secret] = [join(folder, 'username'), join(folder, 'password')];
  writeFileSync(username, 'expunge\n');
  writeFileSync(secret, `${password}\n`, { mode: 0o600 });
  return { url, env: { EXPUNGE_REDIS_USERNAME_FILE: username, EXPUNGE_REDIS_PASSWORD_FILE: secret } };
}

/** What Redis has refused to the login so far, as `reason object`; CONFIG GET is asked for once, and done without. */
export async function refusals(admin: Redis): Promise<string[]> {
  const log = (await admin.acl('LOG')) as unknown as (string | number)[][];
  const field = (entry: (string | number)[], name: string) => entry[entry.indexOf(name) + 1];
  return log
    .filter((entry) => field(entry, 'username') === 'expunge')
    .map((entry) => `${field(entry, 'reason')} ${field(entry, 'object')}`)
    .filter((refusal) => !/^command config(\|get)?$/.test(refusal));
}
