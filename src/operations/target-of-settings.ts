import { readTarget } from '../config/check-target.ts';
import { ExpungeError } from '../errors.ts';
import { type Target, targetFlags } from '../model/target.ts';
import type { ListAction } from './list-action.ts';

/**
 * The target of the settings. Throws USAGE if no setting names it, even if `what`, a run or a plan, does: the token is never sent to an address that
 * only Redis or a file names.
 */
export function targetOfSettings(
  { config, env }: Pick<ListAction, 'config' | 'env'>,
  what: string,
  named: Pick<Target, 'baseUrl' | 'account'>,
): Target {
  if (config.baseUrl === undefined)
    throw new ExpungeError(
      'USAGE',
      `expected the address of the API, got none; the address of ${what} is ${named.baseUrl}`,
      {
        next: `add ${targetFlags(named)}`,
      },
    );
  return readTarget(config, env);
}
