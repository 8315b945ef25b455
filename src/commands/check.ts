import { lookup } from 'node:dns/promises';
import { verdictsWith } from '../delete/verdict.ts';
import { ExpungeError, exitCodes, messageOf, systemCode } from '../errors.ts';
import { readTarget } from '../guard/check-target.ts';
import { haltAnswers, haltWords } from '../guard/halt-words.ts';
import { haltRules } from '../guard/thresholds.ts';
import { isIdle } from '../ledger/list-runs.ts';
import type { RedisAddress } from '../redis/address.ts';
import { connectLedger, ready } from '../redis/connect.ts';
import { type Finding, fine, wrong } from '../redis/finding.ts';
import { leavePrivateRedis } from '../redis/leave-redis.ts';
import { lookAtRedis } from '../redis/look-at-redis.ts';
import { resolveRedis } from '../redis/resolve-redis.ts';
import { duration } from '../terminal/words.ts';
import type { Invocation } from './command.ts';
import { readCredentials } from './service-options.ts';

/**
 * Looks at target, token and Redis, and prints what it finds. Sends nothing to the API: it knows no request but DELETE. A
 * token that has to be asked for is asked for once.
 */
export async function execute(invocation: Invocation): Promise<number> {
  const { options, stdout } = invocation;
  if (options.verdicts) return printVerdicts(invocation);
  const looks: [string, Look][] = [
    ['target', () => once(async () => readTarget(invocation.config, invocation.env).baseUrl)],
    ['host', () => once(() => lookUpHost(invocation))],
    ['token', () => once(() => getToken(invocation))],
    ['redis', () => examineRedis(invocation)],
  ];
  let exit: number = exitCodes.OK.exit;
  for (const [what, look] of looks) {
    for await (const found of findings(look)) {
      stdout.write(options.json ? `${JSON.stringify(jsonOf(what, found))}\n` : textOf(what, found));
      if (found.state === 'wrong' && exit === exitCodes.OK.exit) exit = found.exit;
    }
  }
  return exit;
}

type Look = () => AsyncIterable<Finding>;
type Found = Finding & { exit: number };

/** What a look finds, and what kept it from finding more. */
async function* findings(look: Look): AsyncGenerator<Found> {
  try {
    for await (const found of look()) yield { ...found, exit: exitCodes.UNREACHABLE.exit };
  } catch (error) {
    const { code, next } = error instanceof ExpungeError ? error : ({ code: 'INTERNAL', next: null } as const);
    yield { ...wrong('', messageOf(error), next), exit: exitCodes[code].exit };
  }
}

async function* once(look: () => Promise<string>): AsyncGenerator<Finding> {
  yield fine('', await look());
}

function jsonOf(what: string, { aspect, state, words, next }: Finding) {
  const facts = { v: 1, type: 'check', what, ok: state !== 'wrong', words };
  return aspect === '' ? facts : { ...facts, aspect, state, next };
}

const marks = { ok: 'ok    ', warning: 'warn  ', wrong: 'wrong ' };

function textOf(what: string, { aspect, state, words, next }: Finding): string {
  const line = `${marks[state]} ${what.padEnd(7)} ${aspect && `${aspect}: `}${words}\n`;
  return aspect && next ? `${line}${' '.repeat(15)} → ${next}\n` : line;
}

async function lookUpHost({ config, env }: Invocation): Promise<string> {
  const { hostname } = new URL(readTarget(config, env).baseUrl);
  try {
    return `${hostname} is ${(await lookup(hostname.replace(/^\[|\]$/g, ''))).address}`;
  } catch (error) {
    throw new ExpungeError('UNREACHABLE', `${hostname}: ${systemCode(error)}`, { cause: error });
  }
}

async function getToken(invocation: Invocation): Promise<string> {
  const { token } = readCredentials(invocation);
  try {
    await token.start();
    if (token.waiting !== '') throw new ExpungeError('UNREACHABLE', token.waiting);
    return `from ${token.source}${token.lifeMs === null ? '' : `, lives ${duration(token.lifeMs)}`}`;
  } finally {
    await token.close();
  }
}

/** The lines that name the Redis come first, as with every command. */
async function* examineRedis({ config, env }: Invocation): AsyncGenerator<Finding> {
  const said: string[] = [];
  const address = await resolveRedis(config, env, (line) => said.push(line));
  try {
    yield fine('', said.join(' · '));
    yield* lookAtRedis(address);
  } finally {
    await leavePrivateRedis(address, () => isIdleAt(address));
  }
}

async function isIdleAt(address: RedisAddress): Promise<boolean> {
  const redis = connectLedger(address);
  try {
    await ready(redis, address);
    return await isIdle(redis);
  } finally {
    redis.disconnect();
  }
}

/** The table in force, `*` before what `--treat` changes, and what halts a run whatever its ids mean. */
function printVerdicts({ config, options, stdout }: Invocation): number {
  const table = verdictsWith(config.treat);
  const verdicts = [
    ...table.map(({ answers, means, treated }) => ({ answer: answers, means, treated })),
    { answer: 'no answer', means: 'retried; may have been executed', treated: false },
    { answer: 'not sent', means: 'waits until the API can be reached; not an attempt', treated: false },
  ];
  const halts = haltRules.map((rule) => ({ halt: rule.halt, answer: haltAnswers(rule), when: haltWords(rule) }));
  if (options.json) {
    for (const row of verdicts) stdout.write(`${JSON.stringify({ v: 1, type: 'verdict', ...row })}\n`);
    for (const row of halts) stdout.write(`${JSON.stringify({ v: 1, type: 'halt', ...row })}\n`);
    return 0;
  }
  for (const { answer, means, treated } of verdicts) {
    stdout.write(`${`${treated ? '*' : ' '} ${answer}`.padEnd(20)} ${means}\n`);
  }
  if (config.treat !== '') stdout.write('  * by --treat\n');
  stdout.write('\nA run is halted by\n');
  for (const { answer, when } of halts) stdout.write(`  ${when} answered ${answer}\n`);
  return 0;
}
