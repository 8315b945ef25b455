import type { RedisAddress } from '../address.ts';
import { probeOwn } from '../probe.ts';
import { readContainer, serverOptions } from './container.ts';
import { folderIdOf, hasData, privatePlace } from './place.ts';

/**
 * The private Redis of a state folder if it runs. Otherwise the reason why it does not answer, '' if there never was one. Starts and
 * creates nothing.
 */
export async function findPrivateRedis(stateDir: string, env: NodeJS.ProcessEnv): Promise<RedisAddress | string> {
  const place = privatePlace(stateDir);
  if (!hasData(place) && !readContainer(place)) return '';
  const options = await serverOptions(place, env);
  const answer = options === null ? 'none' : await probeOwn(options, folderIdOf(place));
  if (options !== null && answer === 'ready') return { kind: 'private', label: `${place.folder} (private)`, options };
  return `the private Redis in ${place.folder} ${answer === 'none' ? 'does not run' : 'does not answer'}`;
}
