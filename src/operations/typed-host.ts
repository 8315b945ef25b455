import type { Config } from '../config/settings.ts';
import { ExpungeError } from '../errors.ts';
import type { Target } from '../model/target.ts';
import { protectedHost } from '../model/target-pattern.ts';

/**
 * Throws USAGE unless a person has typed the host of a protected target. Every operation that makes a run or a schedule asks here, so that no
 * command, route or page can forget it. `typed`: what that person typed; undefined = nothing.
 */
export function requireTypedHost(
  { protectedTargets }: Pick<Config, 'protectedTargets'>,
  { baseUrl }: Pick<Target, 'baseUrl'>,
  typed: string | undefined,
): void {
  const host = protectedHost(protectedTargets, baseUrl);
  if (host !== null) requireHost(host, typed);
}

/** Throws USAGE unless this host was typed. */
export function requireHost(host: string, typed: string | undefined): void {
  if (typed?.trim().toLowerCase() === host) return;
  const got = typed === undefined ? '' : `, got "${typed}"`;
  throw new ExpungeError(
    'USAGE',
    `${host} is a protected target: expected its host name as confirmation${got}; nothing was sent`,
    {
      next: `type the host name; on a command line add --confirm-host ${host}`,
    },
  );
}
