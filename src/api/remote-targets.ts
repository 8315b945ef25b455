import { ExpungeError } from '../errors.ts';
import type { Target } from '../model/target.ts';
import { targetName } from '../terminal/stop-text.ts';
import type { ApiClient } from './client.ts';

/** Throws USAGE for a target that is none of the server. */
export async function refuseUnknownTarget(api: ApiClient, target: Target): Promise<void> {
  const { items } = await api.json<{ items: { fp: string }[] }>({ method: 'GET', path: '/targets' });
  if (!items.some(({ fp }) => fp === target.fp)) throw unknownToServer(api, target);
}

export function unknownToServer({ url }: ApiClient, target: Target): ExpungeError {
  return new ExpungeError('USAGE', `the server ${url} knows no target ${targetName(target)}`, {
    next: 'check --base-url and --account; a server knows a target once a worker of it has started',
  });
}
