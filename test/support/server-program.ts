import { findOnPath, knowServer } from '../../src/redis/find-server.ts';
import { makePlace, privatePlace } from '../../src/redis/private-place.ts';
import type { ServerProgram } from '../../src/redis/route.ts';
import { unpackedProgram } from '../../src/redis/unpack-server.ts';
import { makeStateDir, removeStateDir } from './redis.ts';

/** A server that a test can start in ways of its own: one on PATH, else one unpacked from the distribution's packages. */
export async function findServerProgram(atEnd: (task: () => Promise<void>) => void): Promise<ServerProgram> {
  const closed: string[] = [];
  for (const name of ['redis-server', 'valkey-server']) {
    const path = findOnPath(name, process.env);
    const found = path ? await knowServer(path, {}) : { closed: `${name} is not on PATH` };
    if (!('closed' in found)) return found;
    closed.push(found.closed);
  }
  const stateDir = makeStateDir(); // holds the program where there is no cache to keep it in
  atEnd(() => removeStateDir(stateDir));
  const place = privatePlace(stateDir);
  makePlace(place);
  const found = await unpackedProgram({ place, env: process.env, say: () => {} });
  if (!('closed' in found)) return found;
  throw new Error(`no Redis server for a test of its own: ${[...closed, found.closed].join('; ')}`);
}
