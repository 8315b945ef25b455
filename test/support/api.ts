import { addToken } from '../../src/api/token-store.ts';
import type { Role } from '../../src/model/role.ts';
import type { RedisClient } from '../../src/redis/client.ts';
import { type AtEnd, type Harness, type HarnessOptions, openHarness } from './harness.ts';
import { openOwnRedis } from './own-redis.ts';
import { type Running, until } from './processes.ts';

/** An answer of the API. `body` is its JSON, or null. */
// biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape
export type Answer = { status: number; headers: Headers; text: string; body: any };

export type CallOptions = {
  method?: string;
  body?: unknown;
  headers?: Record<string, string>;
  raw?: RequestInit['body'];
};

/** A dashboard, or a worker with HTTP, on a Redis of the test's own; and tokens for it. */
export type Api = {
  harness: Harness;
  server: Running;
  url: string;
  redis: RedisClient;
  redisPid: number;
  /** A token for a role, made once. */
  token(role: Role): Promise<string>;
  /** A request as this role; null: without a login. The path is below /api/v1, or begins with `//`. */
  call(role: Role | null, path: string, options?: CallOptions): Promise<Answer>;
};

/** `prepare`: called before the server starts; returns more of its environment. */
type ApiOptions = HarnessOptions & {
  args?: readonly string[];
  env?: NodeJS.ProcessEnv;
  prepare?(harness: Harness): NodeJS.ProcessEnv;
};

export async function openApi(
  atEnd: AtEnd,
  { args = ['dashboard', '--port', '0'], env, prepare = () => ({}), ...options }: ApiOptions = {},
): Promise<Api> {
  const own = await openOwnRedis(atEnd);
  const harness = await openHarness(atEnd, options, own);
  const server = harness.start(args, { ...env, ...prepare(harness) });
  const url = await until('it listens', () => /http:\/\/[\d.]+:\d+/.exec(server.stdout + server.stderr)?.[0]);
  const { redis } = harness;
  const tokens = new Map<Role, Promise<string>>();
  const token = (role: Role) => {
    const made =
      tokens.get(role) ??
      addToken(redis, { name: `test-${role}`, role, reach: null, at: Date.now(), who: 'test', expiresAt: 0 });
    tokens.set(role, made);
    return made;
  };
  const call: Api['call'] = async (role, path, { method = 'GET', body, headers = {}, raw } = {}) => {
    const sent = raw ?? (body === undefined ? null : JSON.stringify(body));
    const answer = await fetch(path.startsWith('//') ? url + path.slice(1) : `${url}/api/v1${path}`, {
      method,
      body: sent,
      redirect: 'manual',
      duplex: 'half',
      headers: {
        connection: 'close', // one that has rested may be closed by the server just now
        ...(role !== null && { authorization: `Bearer ${await token(role)}` }),
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...headers,
      },
    } as RequestInit);
    const text = await answer.text();
    const isJson = /json/.test(answer.headers.get('content-type') ?? '');
    return {
      status: answer.status,
      headers: answer.headers,
      text,
      body: isJson && text !== '' ? JSON.parse(text) : null,
    };
  };
  // A worker listens before it has reached Redis.
  if (args[0] === 'worker') await until('it is ready', async () => (await call(null, '//readyz')).status === 200);
  return { harness, server, url, redis, redisPid: own.pid, token, call };
}

/** The environment of a person who knows only the server, not its Redis. */
export async function overServer({ url, token }: Pick<Api, 'url' | 'token'>, role: Role = 'operate') {
  return { EXPUNGE_SERVER: url, EXPUNGE_SERVER_TOKEN: await token(role), REDIS_URL: 'redis://127.0.0.1:1' };
}
