import { readFileSync } from 'node:fs';
import { Redis } from 'ioredis';
import type { OwnRedis } from './harness.ts';
import { makeLogin, refusals } from './login.ts';
import { makeCertificates, startTlsRedis } from './tls.ts';

type AtEnd = (task: () => Promise<void>) => void;

/** A Redis behind TLS and passwords, and the login that the README makes for it. */
export type GuardedRedis = OwnRedis & { refusals(): Promise<string[]> };

export async function openGuardedRedis(atEnd: AtEnd): Promise<GuardedRedis> {
  const made = makeCertificates(atEnd);
  const login = { password: 'of the administrator' };
  const { port, folder } = await startTlsRedis(atEnd, made, { args: ['--requirepass', login.password], login });
  const tls = { ca: readFileSync(made.ca) };
  const admin = new Redis({ host: '127.0.0.1', port, ...login, tls, replyMapping: 'legacy' });
  atEnd(async () => admin.disconnect());
  const { url, env } = await makeLogin([admin], folder, `rediss://127.0.0.1:${port}`);
  return { url, env: { ...env, EXPUNGE_REDIS_CA_FILE: made.ca }, refusals: () => refusals(admin) };
}
