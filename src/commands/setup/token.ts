import {
  addToken,
  type KnownToken,
  listTokens,
  readTokenAudit,
  revokeToken,
  tokenFacts,
} from '../../api/token-store.ts';
import { isName, nameRule } from '../../config/list-source.ts';
import { ExpungeError } from '../../errors.ts';
import { isoTime } from '../../format.ts';
import { auditFacts } from '../../ledger/audit.ts';
import { openRunIndex } from '../../lookup/run-index.ts';
import { type Reach, type Target, targetOf } from '../../model/target.ts';
import { visibleLine } from '../../model/visible.ts';
import { type Session, withRedis } from '../../operations/session.ts';
import { targetName } from '../../terminal/stop-text.ts';
import { columns, tableFit } from '../../terminal/style.ts';
import { auditText } from '../../terminal/target-events.ts';
import { type Invocation, jsonLines } from '../command.ts';
import { sayUnlessJson, whoAmI } from '../session.ts';

const shownActions = 10;

/** `token add`, `list` and `revoke`: steer who may use the API of this Redis. */
export async function execute(invocation: Invocation): Promise<number> {
  const { commandName } = invocation;
  const act = { 'token add': add, 'token list': list, 'token revoke': revoke }[commandName]!;
  const say = sayUnlessJson(invocation);
  return withRedis(invocation, say, (session) => act(invocation, session));
}

async function add(invocation: Invocation, { redis }: Session): Promise<number> {
  const { args, options, env, stdout, stderr } = invocation;
  const [name = ''] = args;
  if (!isName(name)) throw new ExpungeError('USAGE', `"${name}": expected a name of ${nameRule}`);
  const at = Date.now();
  const { role = 'read', expires = 0 } = options;
  const reach = reachOf(invocation);
  const token: KnownToken = { name, role, reach, at, who: whoAmI(env), expiresAt: expires > 0 ? at + expires : 0 };
  const secret = await addToken(redis, token);
  if (options.json) jsonLines(stdout, true)('token', { ...tokenFacts(token), token: secret });
  else stdout.write(`${secret}\n`);
  const bound = reach === null ? '' : `, bound to ${reachText(reach)}`;
  stderr.write(`Made the token ${name} with the role ${role}${bound}. Copy it now: it will not be shown again.\n`);
  for (const target of await unknownOf(redis, reach))
    stderr.write(`warning: Redis knows no target ${targetName(target)} yet: check --target and --account\n`);
  return 0;
}

/** The targets of `--target`, each with the account; null: all. Throws USAGE for an account without a target. */
function reachOf({ options, config, sources }: Invocation): Reach {
  const { target } = options;
  const account = config.account || (config.clientId ?? '');
  if (target !== undefined) return target.split(',').map((url) => targetOf(url, account));
  if (sources.account !== 'flag') return null;
  throw new ExpungeError('USAGE', '--account needs --target: it names an account of that target', {
    next: 'add --target URL; without both, the token is for all targets',
  });
}

/** The targets that Redis does not know, probably mistyped: a token for them would show nothing. */
async function unknownOf(redis: Session['redis'], reach: Reach): Promise<readonly Target[]> {
  if (reach === null) return [];
  const { targets } = await openRunIndex(redis).read(reach);
  return reach.filter((target) => !targets.some(({ fp }) => fp === target.fp));
}

function reachText(reach: Reach): string {
  return reach === null ? 'all' : reach.map((target) => visibleLine(targetName(target))).join(', ');
}

async function list({ options, toType, stdout, env }: Invocation, { redis }: Session): Promise<number> {
  const all = await listTokens(redis);
  const print = jsonLines(stdout, options.json);
  const audit = await readTokenAudit(redis);
  for (const token of all) print('token', tokenFacts(token));
  for (const entry of audit) print('audit', auditFacts(entry));
  if (options.json) return 0;
  const rows = all.map(({ name, role, reach, who, at, expiresAt }) => [
    ...[name, role, reachText(reach), isoTime(at), visibleLine(who)],
    expiresAt > 0 ? isoTime(expiresAt) : 'never',
  ]);
  const fit = tableFit(stdout, env, ['MADE', 'BY']);
  const none = `No tokens. Make one: ${toType('token add', 'NAME', '--role', 'read')}`;
  stdout.write(
    `${all.length === 0 ? none : columns([['NAME', 'ROLE', 'TARGETS', 'MADE', 'BY', 'EXPIRES'], ...rows], fit)}\n`,
  );
  for (const line of auditText(audit.slice(-shownActions))) stdout.write(`${line}\n`);
  return 0;
}

async function revoke({ args, options, env, stdout, stderr }: Invocation, { redis }: Session): Promise<number> {
  const [name = ''] = args;
  const isRevoked = await revokeToken(redis, name, whoAmI(env), Date.now());
  if (!isRevoked)
    throw new ExpungeError('USAGE', `no token is called "${visibleLine(name)}"`, {
      next: (toType) => `${toType('token list')} shows all`,
    });
  stderr.write(`Revoked the token ${name}; its sessions are logged out.\n`);
  jsonLines(stdout, options.json)('token', { name, revoked: true });
  return 0;
}
