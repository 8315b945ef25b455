import type { RedisOptions } from 'ioredis';
import { listenText } from '../config/parse-setting.ts';
import type { RedisNode } from './address.ts';
import { describeRedisError } from './errors.ts';
import { oneShot, watchFirstError } from './probe.ts';
import { type Finding, fail, pass, warn } from './server.ts';

/** The answer of a sentinel: the primary, its reply to CKQUORUM, and the names it knows if it does not know ours; or its error. */
export type SentinelAnswer = { sentinel: string } & (
  | { primary: RedisNode | null; quorum: string; others: readonly string[] }
  | { error: string }
);

/** Finds why the sentinels name no primary; null if they name one. ioredis reports only that all of them failed. Never throws. */
export async function describeSentinelError(options: RedisOptions): Promise<string | null> {
  const { finding } = evaluateSentinels(options.name ?? '', await askSentinels(options));
  return finding.state === 'fail' ? `its sentinels: ${finding.words}` : null;
}

/** Asks each sentinel of an address. Never throws. */
export function askSentinels(options: RedisOptions): Promise<SentinelAnswer[]> {
  return Promise.all((options.sentinels ?? []).map((node) => ask(node as RedisNode, options)));
}

async function ask(node: RedisNode, options: RedisOptions): Promise<SentinelAnswer> {
  const { name = '', sentinelUsername: username, sentinelPassword: password, sentinelTLS: tls } = options;
  const sentinel = listenText(node);
  const connection = oneShot({ ...node, username, password, tls }, 'check');
  const firstError = watchFirstError(connection);
  const call = (...words: string[]) => connection.call('SENTINEL', words);
  try {
    await connection.connect();
    const address = (await call('GET-MASTER-ADDR-BY-NAME', name)) as [string, string] | null;
    const primary = address && { host: address[0], port: Number(address[1]) };
    const quorum = primary ? await call('CKQUORUM', name).then(String, describeRedisError) : '';
    return { sentinel, primary, quorum, others: primary ? [] : await namesOf(call) };
  } catch (error) {
    return { sentinel, error: describeRedisError(firstError() ?? error) };
  } finally {
    connection.disconnect();
  }
}

async function namesOf(call: (...words: string[]) => Promise<unknown>): Promise<string[]> {
  const primaries = (await call('MASTERS').catch(() => [])) as string[][];
  return primaries.map((flat) => flat[flat.indexOf('name') + 1] ?? '');
}

/** The finding about the answers, and the primary that a majority of the answering sentinels names; null = none. Pure. */
export function evaluateSentinels(
  name: string,
  answers: readonly SentinelAnswer[],
): { finding: Finding; primary: RedisNode | null } {
  const answered = answers.filter((answer) => 'primary' in answer);
  const errors = answers.flatMap((answer) => ('error' in answer ? [`${answer.sentinel}: ${answer.error}`] : []));
  const named = answered.flatMap(({ primary }) => primary ?? []);
  const primary = named.find((node) => votes(named, node) * 2 > answered.length) ?? null;
  return { primary, finding: evaluate() };

  function evaluate(): Finding {
    if (answered.length === 0)
      return fail('sentinels', `none of them answers: ${errors.join('; ')}`, adviceFor(errors));
    if (named.length === 0)
      return fail('sentinels', unknownName(name, answered), 'name it as they do, behind the hosts of REDIS_URL');
    if (primary === null)
      return fail(
        'sentinels',
        `they disagree about the primary: ${named.map(listenText).join(', ')}`,
        'wait until they agree, or look at their logs',
      );
    const words = `${votes(named, primary)} of ${answers.length} name ${listenText(primary)} the primary`;
    if (errors.length > 0) return warn('sentinels', `${words}; ${errors.join('; ')}`, adviceFor(errors));
    const tooFew = answered.find(({ quorum }) => quorum.startsWith('NOQUORUM'));
    if (tooFew)
      return warn('sentinels', `${words}, but too few of them are running to elect another one`, 'start the others');
    return pass('sentinels', `${words}, and enough of them are running to elect another one`);
  }
}

function votes(named: readonly RedisNode[], node: RedisNode): number {
  return named.filter(({ host, port }) => host === node.host && port === node.port).length;
}

function unknownName(name: string, answered: readonly { others: readonly string[] }[]): string {
  const known = [...new Set(answered.flatMap(({ others }) => others))];
  return `they know no primary called "${name}"${known.length > 0 ? `, only ${known.join(', ')}` : ''}`;
}

function adviceFor(errors: readonly string[]): string {
  const isLogin = errors.some((error) => /: (NOAUTH|WRONGPASS)/.test(error));
  return isLogin
    ? 'name the file with their password in EXPUNGE_SENTINEL_PASSWORD_FILE'
    : 'check the hosts of REDIS_URL, and that sentinels run there';
}
