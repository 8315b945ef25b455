import { type EarlySession, withRedis } from '../operations/session.ts';
import type { ApiDeps } from './route.ts';

/** Calls `body` with a separate connection, so that a hanging action delays no other request. Throws UNREACHABLE if Redis cannot be used. */
export function withOwnRedis<T>(
  { config, env, session }: ApiDeps,
  body: (session: EarlySession) => Promise<T>,
): Promise<T> {
  return withRedis({ config, env, address: session.address }, () => {}, body);
}
