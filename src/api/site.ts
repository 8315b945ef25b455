import type { Hono, MiddlewareHandler } from 'hono';
import type { ListenAddress } from '../config/parse-setting.ts';
import { isLoopback } from '../config/parse-url.ts';
import type { Config } from '../config/settings.ts';
import { ExpungeError, messageOf } from '../errors.ts';
import { type Role, roles } from '../model/role.ts';
import {
  addressFilter,
  type Caller,
  type GroupRoles,
  isOwnName,
  parseHostName,
  requireRole,
  type TrustedProxy,
} from './access.ts';
import { openSite } from './app.ts';
import { Login } from './login.ts';
import { Problem, problemAnswer, toProblem } from './problem.ts';
import { hasTarget } from './reach.ts';
import type { ApiDeps } from './route.ts';
import { Streams } from './streams.ts';

type SiteDeps = Omit<ApiDeps, 'streams'>;

/**
 * The API and the pages of a worker. Its metrics are for anyone on this machine who uses its own name, otherwise for callers with a token, unless
 * EXPUNGE_OPEN_METRICS is set.
 */
export function openWorkerSite({ host }: ListenAddress, deps: SiteDeps): { app: Hono; admit: MiddlewareHandler } {
  const { session, config, log } = deps;
  const login = new Login(session.redis, log, trustedProxyOf(config));
  const app = openSite({ ...deps, streams: new Streams(log), login, isLocal: false });
  const isLocal = isLoopback(host.includes(':') ? `[${host}]` : host);
  const isOpen = (asked: string) => config.openMetrics || (isLocal && isOwnName(asked));
  const admit: MiddlewareHandler = async (context, next) => {
    if (isOpen(context.req.header('host') ?? '')) return next();
    try {
      refuseForeignMetrics(requireRole(context, await login.caller(context), 'read'), deps.workerOf);
    } catch (error) {
      return problemAnswer(toProblem(error, log, context.req.path), { 'www-authenticate': 'Bearer' });
    }
    return next();
  };
  return { app, admit };
}

/** Throws forbidden if the metrics of a worker are about a target beyond the reach of the caller. */
function refuseForeignMetrics({ name, reach }: Caller, workerOf: string | null): void {
  if (workerOf === null || hasTarget(reach, workerOf)) return;
  throw new Problem('forbidden', `this worker is of a target that the token ${name} is not bound to`);
}

/** The API and the pages of `expunge dashboard`, and a function that makes a link to log in. */
export function openDashboardSite(deps: SiteDeps): { app: Hono; newLink(name: string): string } {
  const login = new Login(deps.session.redis, deps.log, null);
  const app = openSite({ ...deps, streams: new Streams(deps.log), login, isLocal: true });
  return { app, newLink: (name) => login.newLink(name) };
}

/** The proxy that the settings trust. Throws USAGE for a proxy without addresses, because then anyone could claim any name. */
function trustedProxyOf(config: Config): TrustedProxy | null {
  const { trustProxyUser: header, trustProxyFrom, trustProxyHost, trustProxyRole: role } = config;
  if (header === undefined) return null;
  if (trustProxyFrom === undefined)
    throw new ExpungeError('USAGE', 'EXPUNGE_TRUST_PROXY_USER needs the address of the proxy, but none is given', {
      next: 'set EXPUNGE_TRUST_PROXY_FROM=10.0.0.7; from elsewhere the header is ignored',
    });
  const isTrusted = readOf('EXPUNGE_TRUST_PROXY_FROM', () => addressFilter(trustProxyFrom.split(',')));
  const hosts = readOf('EXPUNGE_TRUST_PROXY_HOST', () =>
    (trustProxyHost ?? '').split(',').filter(Boolean).map(readName),
  );
  const groups = groupRolesOf(config);
  return { header, role: role ?? (groups === null ? 'read' : null), groups, hosts, isTrusted };
}

/** Throws USAGE if only one of the two settings is there. */
function groupRolesOf({ trustProxyGroups: header, trustProxyGroupRoles: texts }: Config): GroupRoles | null {
  if (header === undefined && texts === undefined) return null;
  if (header !== undefined && texts !== undefined)
    return {
      header,
      roles: readOf('EXPUNGE_TRUST_PROXY_GROUP_ROLES', () => new Map(texts.split(',').map(readGroupRole))),
    };
  throw new ExpungeError('USAGE', 'EXPUNGE_TRUST_PROXY_GROUPS and EXPUNGE_TRUST_PROXY_GROUP_ROLES need each other', {
    next: 'set EXPUNGE_TRUST_PROXY_GROUPS=X-Forwarded-Groups and EXPUNGE_TRUST_PROXY_GROUP_ROLES=admins=admin,sre=operate',
  });
}

function readGroupRole(text: string): [group: string, Role] {
  const [, group = '', word] = /^(.*\S)\s*=\s*(\w+)$/.exec(text.trim()) ?? [];
  const role = roles.find((known) => known === word);
  if (role !== undefined) return [group, role];
  throw new Error(`"${text}": expected a group and a role like sre=operate, and one of ${roles.join(', ')}`);
}

/** Throws USAGE with the name of the variable. */
function readOf<T>(variable: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw new ExpungeError('USAGE', `${variable}: ${messageOf(error)}`);
  }
}

function readName(text: string): string {
  const name = parseHostName(text.trim());
  if (name === null) throw new Error(`"${text}": expected a name like expunge.example.com`);
  return name;
}
