import { ExpungeError } from '../errors.ts';
import { type Target, targetOf } from '../model/target.ts';
import { matchesTarget } from '../model/target-pattern.ts';
import { isLoopback } from './parse-url.ts';
import type { Config } from './settings.ts';

type Named = Pick<Config, 'baseUrl' | 'account' | 'clientId'>;
type Settings = Named & Pick<Config, 'allowHttp' | 'allowedTargets'>;

/** The target that the settings name. Its account is `--account`, otherwise the OAuth client, otherwise none. Throws USAGE without a base URL. */
export function namedTarget({ baseUrl, account, clientId }: Named): Target {
  if (baseUrl !== undefined) return targetOf(baseUrl, account || (clientId ?? ''));
  throw new ExpungeError('USAGE', 'expected the address of the API, got none', {
    next: 'add --base-url https://api.example.com',
  });
}

/** The settings that name a known target, for an action from which no token is sent: http to another machine is not refused. */
export function settingsOfTarget({ baseUrl, account }: Pick<Target, 'baseUrl' | 'account'>) {
  return { baseUrl, account, allowHttp: new URL(baseUrl).hostname, clientId: undefined };
}

/**
 * The target of a command that sends to it. Throws USAGE without a base URL, for a base URL outside `allowedTargets`, for http to another machine,
 * and if the environment switches certificate checks off.
 */
export function readTarget(settings: Settings, env: NodeJS.ProcessEnv): Target {
  const target = namedTarget(settings);
  requireAllowed(settings, target);
  refusePlainHttp('--base-url', target.baseUrl, settings.allowHttp);
  if (env.NODE_TLS_REJECT_UNAUTHORIZED === '0') {
    throw new ExpungeError('USAGE', 'NODE_TLS_REJECT_UNAUTHORIZED=0 would send the token to any server', {
      next: 'unset it; trust a certificate authority of your own with --ca-file FILE',
    });
  }
  return target;
}

/** Throws USAGE for a base URL outside `allowedTargets`. */
export function requireAllowed(
  { allowedTargets: allowed }: Pick<Config, 'allowedTargets'>,
  { baseUrl }: Pick<Target, 'baseUrl'>,
): void {
  if (allowed === undefined || allowed.some((pattern) => matchesTarget(pattern, baseUrl))) return;
  throw new ExpungeError(
    'USAGE',
    `${baseUrl} is not among the allowed targets (${allowed.join(', ')}); nothing was sent`,
    {
      next: 'check --base-url; to allow it, add it to "allowedTargets" in the configuration file or to EXPUNGE_ALLOWED_TARGETS',
    },
  );
}

/**
 * The variable that names a proxy for this target by the custom of other programs; null if there is none, with `--proxy`, and if `NO_PROXY` excepts the
 * host. expunge does
 * not read it, so that a variable of a shell never decides who sees the token.
 */
export function ignoredProxyVariable(
  { proxy }: Pick<Config, 'proxy'>,
  { baseUrl }: Pick<Target, 'baseUrl'>,
  env: NodeJS.ProcessEnv,
): string | null {
  if (proxy !== undefined) return null;
  const { protocol, hostname } = new URL(baseUrl);
  const excepted = (env.NO_PROXY ?? env.no_proxy ?? '').split(/[\s,]+/).filter(Boolean);
  if (isLoopback(hostname) || excepted.some((end) => end === '*' || hostname.endsWith(end.replace(/^\*?\./, ''))))
    return null;
  const own = protocol === 'https:' ? ['HTTPS_PROXY', 'https_proxy'] : ['HTTP_PROXY', 'http_proxy'];
  return [...own, 'ALL_PROXY', 'all_proxy'].find((name) => env[name]) ?? null;
}

/** The target of an action that another process carries out later. A server has checked its own targets. */
export function targetForAction(settings: Settings & Pick<Config, 'server'>, env: NodeJS.ProcessEnv): Target {
  return settings.server === undefined ? readTarget(settings, env) : namedTarget(settings);
}

/**
 * Throws USAGE for http to another machine, where the network could read the token or the client secret, unless `--allow-http` names that host.
 * `danger`: what else an attacker in the network could do.
 */
export function refusePlainHttp(
  flag: string,
  url: string,
  allowHttp: string | undefined,
  danger = 'read the token',
): void {
  const { protocol, hostname } = new URL(url);
  if (protocol !== 'http:' || isLoopback(hostname) || hostname === allowHttp) return;
  throw new ExpungeError(
    'USAGE',
    `${flag} ${url.split('?')[0]}: over http an attacker in the network could ${danger}`,
    {
      next: `use https, or add --allow-http ${hostname}`,
    },
  );
}
