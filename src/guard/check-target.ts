import type { Config } from '../config.ts';
import { ExpungeError } from '../errors.ts';
import { type Target, targetOf } from '../ledger/target.ts';
import { isLoopback } from '../parse-setting.ts';

type Settings = Pick<Config, 'baseUrl' | 'account' | 'allowHttp'>;

/**
 * The target of a command. Throws USAGE without a base URL, for http to another machine (the token would be readable on the way)
 * unless `--allow-http` names that host, and where the surroundings switch certificate checks off.
 */
export function readTarget({ baseUrl, account, allowHttp }: Settings, env: NodeJS.ProcessEnv): Target {
  if (baseUrl === undefined) {
    throw new ExpungeError('USAGE', 'expected the address of the API, got none', {
      next: 'add --base-url https://api.example.com',
    });
  }
  const { protocol, hostname } = new URL(baseUrl);
  if (protocol === 'http:' && !isLoopback(hostname) && hostname !== allowHttp) {
    throw new ExpungeError('USAGE', `--base-url ${baseUrl}: over http anyone on the way could read the token`, {
      next: `use https, or add --allow-http ${hostname}`,
    });
  }
  if (env.NODE_TLS_REJECT_UNAUTHORIZED === '0') {
    throw new ExpungeError('USAGE', 'NODE_TLS_REJECT_UNAUTHORIZED=0 would send the token to anybody', {
      next: 'unset it; trust a certificate authority of your own with --ca-file FILE',
    });
  }
  return targetOf(baseUrl, account);
}
