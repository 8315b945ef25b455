import { addToken, type KnownToken, listTokens, type Role, revokeToken } from '../api/token-store.ts';
import { isName, nameRule } from '../config/list-source.ts';
import { ExpungeError } from '../errors.ts';
import { isoTime } from '../format.ts';
import { columns, plainLine } from '../terminal/style.ts';
import { type Invocation, jsonLines } from './command.ts';
import { type Session, sayOf, whoAmI, withRedis } from './session.ts';

/** `token add`, `list` and `revoke`: who may use the API of this Redis. */
export async function execute(invocation: Invocation): Promise<number> {
  const { verb, options } = invocation;
  const act = { 'token add': add, 'token list': list, 'token revoke': revoke }[verb]!;
  const say = options.json ? () => {} : sayOf(invocation);
  return withRedis(invocation, say, (session) => act(invocation, session));
}

async function add({ args, options, env, stdout, stderr }: Invocation, { redis }: Session): Promise<number> {
  const [name = ''] = args;
  if (!isName(name)) throw new ExpungeError('USAGE', `"${name}": expected a name of ${nameRule}`);
  const at = Date.now();
  const { role = 'read', expires = 0 } = options as { role?: Role; expires?: number };
  const token: KnownToken = { name, role, at, who: whoAmI(env), expiresAt: expires > 0 ? at + expires : 0 };
  const secret = await addToken(redis, token);
  if (options.json) jsonLines(stdout, true)('token', { ...tokenFacts(token), token: secret });
  else stdout.write(`${secret}\n`);
  stderr.write(`Made the token ${name} with the role ${role}. It is shown this once.\n`);
  return 0;
}

async function list({ options, stdout }: Invocation, { redis }: Session): Promise<number> {
  const all = await listTokens(redis);
  const print = jsonLines(stdout, options.json);
  for (const token of all) print('token', tokenFacts(token));
  if (options.json) return 0;
  const rows = all.map(({ name, role, who, at, expiresAt }) => [
    ...[name, role, isoTime(at), plainLine(who)],
    expiresAt > 0 ? isoTime(expiresAt) : 'never',
  ]);
  const none = 'No tokens. Make one: expunge token add NAME --role read';
  stdout.write(`${all.length === 0 ? none : columns([['NAME', 'ROLE', 'MADE', 'BY', 'EXPIRES'], ...rows])}\n`);
  return 0;
}

async function revoke({ args, options, stdout, stderr }: Invocation, { redis }: Session): Promise<number> {
  const [name = ''] = args;
  const isRevoked = await revokeToken(redis, name);
  if (!isRevoked)
    throw new ExpungeError('USAGE', `no token is called "${plainLine(name)}"`, {
      next: 'expunge token list shows all',
    });
  stderr.write(`Revoked the token ${name}; what was logged in with it is logged out.\n`);
  jsonLines(stdout, options.json)('token', { name, revoked: true });
  return 0;
}

/** A token for `--json` and the API: never the token itself. */
export function tokenFacts({ name, role, at, who, expiresAt }: KnownToken) {
  return {
    name,
    role,
    created_at: isoTime(at),
    created_by: who,
    expires_at: expiresAt > 0 ? isoTime(expiresAt) : null,
  };
}
