import type { Hono, MiddlewareHandler } from 'hono';
import { isLoopback, type ListenAddress } from '../config/parse-setting.ts';
import type { Config } from '../config/settings.ts';
import { ExpungeError, messageOf } from '../errors.ts';
import { addressFilter, authenticate, requireRole, type TrustedProxy } from './access.ts';
import { openSite } from './app.ts';
import { Login } from './login.ts';
import { problemAnswer, problemOf } from './problem.ts';
import type { ApiDeps } from './route.ts';
import { Streams } from './streams.ts';

type SiteDeps = Omit<ApiDeps, 'streams'>;

/** The API and the pages of a worker, and who may scrape it: on this machine anybody, beyond it whoever has a token, unless --open-metrics. */
export function openWorkerSite({ host }: ListenAddress, deps: SiteDeps): { app: Hono; admit: MiddlewareHandler } {
  const { session, config, log } = deps;
  const proxy = trustedProxyOf(config);
  const login = new Login(session.redis, log);
  const app = openSite({ ...deps, streams: new Streams(log), proxy, login, isLocal: false });
  const isOpen = config.openMetrics || isLoopback(host.includes(':') ? `[${host}]` : host);
  const admit: MiddlewareHandler = async (context, next) => {
    if (isOpen) return next();
    try {
      requireRole(await authenticate(context, session.redis, proxy, Date.now()), 'read');
    } catch (error) {
      return problemAnswer(problemOf(error, log, context.req.path), { 'www-authenticate': 'Bearer' });
    }
    return next();
  };
  return { app, admit };
}

/** The API and the pages of `expunge dashboard`, and how to make a link that logs somebody in until `close`. */
export function openDashboardSite(deps: SiteDeps): {
  app: Hono;
  newLink(name: string): string;
  close(): Promise<void>;
} {
  const login = new Login(deps.session.redis, deps.log);
  const app = openSite({ ...deps, streams: new Streams(deps.log), proxy: null, login, isLocal: true });
  return { app, newLink: (name) => login.newLink(name), close: () => login.endLinked() };
}

/** The proxy that the settings trust. Throws USAGE for one without addresses: everybody could be anybody. */
function trustedProxyOf({ trustProxyUser: header, trustProxyFrom, trustProxyRole }: Config): TrustedProxy | null {
  if (header === undefined) return null;
  if (trustProxyFrom === undefined)
    throw new ExpungeError('USAGE', '--trust-proxy-user needs the address of the proxy, and there is none', {
      next: 'add --trust-proxy-from 10.0.0.7; from elsewhere the header is ignored',
    });
  try {
    return { header, role: trustProxyRole ?? 'read', isTrusted: addressFilter(trustProxyFrom.split(',')) };
  } catch (error) {
    throw new ExpungeError('USAGE', `--trust-proxy-from: ${messageOf(error)}`);
  }
}
