import { ignoredProxyVariable, readTarget } from '../../config/check-target.ts';
import { makeVerdictTable } from '../../delete/verdict.ts';
import { ExpungeError, exitCodes, messageOf } from '../../errors.ts';
import { duration } from '../../format.ts';
import { describeHalts } from '../../ledger/halt-rules.ts';
import { isIdle } from '../../ledger/list-runs.ts';
import { anyResource, definitionOf, describeDefinition, isBuiltIn, resources } from '../../model/resource.ts';
import { adviceText, toTypeAnywhere, unbroken } from '../../model/to-type.ts';
import { visibleLine } from '../../model/visible.ts';
import type { RedisAddress } from '../../redis/address.ts';
import { inspectRedis } from '../../redis/check-redis.ts';
import { connectLedger, ready } from '../../redis/connect.ts';
import { resolveRedis } from '../../redis/private/open.ts';
import { leavePrivateRedis } from '../../redis/private/stop.ts';
import { type Finding, fail, pass, warn } from '../../redis/server.ts';
import { hanging } from '../../terminal/render-markdown.ts';
import { startToken } from '../../token/open-token.ts';
import type { Invocation } from '../command.ts';
import { type Credentials, readCredentials } from '../credentials.ts';
import type { OneObject } from '../one-request.ts';
import { lineWriter } from '../session.ts';
import { lookUpHost, reachApi, readProbe, sendProbe } from './check-api.ts';
import { checkSemantics, readAbsent } from './check-semantics.ts';

/**
 * Checks target, token and Redis, and prints the findings. Connects to the API without a request, since its only request is DELETE; `--probe-id` and
 * `--semantics` send some. Requests a token at most once. Returns the exit code of the first failure.
 */
export async function execute(invocation: Invocation): Promise<number> {
  if (invocation.options.verdicts) return printVerdicts(invocation);
  const asked = { probe: await readProbe(invocation), absent: await readAbsent(invocation) };
  const opened: { credentials: Credentials | null } = { credentials: null };
  try {
    return await checkAll(invocation, asked, opened);
  } finally {
    await opened.credentials?.token.close();
  }
}

async function checkAll(
  invocation: Invocation,
  { probe, absent }: { probe: OneObject | null; absent: readonly OneObject[] },
  opened: { credentials: Credentials | null },
): Promise<number> {
  const { options, stdout } = invocation;
  let exit: number = exitCodes.OK.exit;
  const report = async (what: string, runCheck: () => AsyncIterable<Finding>): Promise<void> => {
    for await (const found of findings(runCheck)) {
      stdout.write(options.json ? `${JSON.stringify(jsonOf(what, found))}\n` : textOf(what, found, invocation));
      if (found.state === 'fail' && exit === exitCodes.OK.exit) exit = found.exit;
    }
  };
  await report('target', () => examineTarget(invocation));
  if (exit === exitCodes.OK.exit) await report('host', () => once(() => lookUpHost(invocation)));
  if (exit === exitCodes.OK.exit)
    await report('api', () => once(() => reachApi(invocation, probe !== null || absent.length > 0)));
  await report('token', () =>
    once(() => {
      opened.credentials = readCredentials(invocation);
      return getToken(invocation, opened.credentials);
    }),
  );
  await report('redis', () => examineRedis(invocation));
  const isFit = exit === exitCodes.OK.exit;
  const { credentials } = opened;
  if (probe !== null) await report('probe', () => (isFit ? sendProbe(invocation, credentials!, probe) : notSent()));
  if (absent.length > 0)
    await report('absent', () => (isFit ? checkSemantics(invocation, credentials!, absent) : notSent()));
  return exit;
}

async function* notSent(): AsyncGenerator<Finding> {
  yield fail('', 'not sent, because another check failed', 'fix that first');
}

type Found = Finding & { exit: number };

/** The findings of a check, followed by the error that ended it early, if any. */
async function* findings(runCheck: () => AsyncIterable<Finding & { exit?: number }>): AsyncGenerator<Found> {
  try {
    for await (const found of runCheck()) yield { exit: exitCodes.UNREACHABLE.exit, ...found };
  } catch (error) {
    const { code, advice } = error instanceof ExpungeError ? error : ({ code: 'INTERNAL', advice: null } as const);
    yield { ...fail('', messageOf(error), advice), exit: exitCodes[code].exit };
  }
}

/** The base URL, and the request for each configured resource. */
async function* examineTarget({ config, env }: Invocation): AsyncGenerator<Finding> {
  const { baseUrl } = readTarget(config, env);
  yield pass('', baseUrl);
  for (const [name, definition] of Object.entries(config.resources))
    yield pass(name, describeDefinition(definition, baseUrl));
  const variable = ignoredProxyVariable(config, { baseUrl }, env);
  if (variable !== null)
    yield warn(
      'proxy',
      `${variable} is set, and expunge does not read it`,
      `to use that proxy, add --proxy "$${variable}"`,
    );
}

async function* once(runCheck: () => Promise<string>): AsyncGenerator<Finding> {
  yield pass('', await runCheck());
}

function jsonOf(what: string, { aspect, state, words, next, facts: more }: Finding) {
  const facts = { v: 1, type: 'check', what, ok: state !== 'fail', words };
  return { ...facts, ...(aspect === '' ? {} : { aspect }), state, next: adviceText(next, toTypeAnywhere), ...more };
}

const marks = { ok: 'ok    ', warn: 'warn  ', fail: 'fail  ' };

function textOf(what: string, { aspect, state, words, next }: Finding, { stdout, toType }: Invocation): string {
  const width = stdout.columns || Number.POSITIVE_INFINITY;
  const before = `${marks[state]} ${what.padEnd(7)} `;
  const line = hanging(`${aspect && `${aspect}: `}${visibleLine(words)}`, before, width);
  if (!next) return `${line}\n`;
  const arrow = `${' '.repeat(before.length)} → `;
  return `${line}\n${unbroken(toType, (solid) => hanging(adviceText(next, solid), arrow, width))}\n`;
}

async function getToken({ stderr }: Invocation, { token }: Credentials): Promise<string> {
  await startToken(token, (waiting) => lineWriter(stderr)(`Waiting: ${visibleLine(waiting)}`));
  if (token.waiting !== '') throw new ExpungeError('UNREACHABLE', token.waiting);
  return `from ${token.source}${token.lifeMs === null ? '' : `, lives ${duration(token.lifeMs)}`}`;
}

/** The first finding names the Redis, as every command does. */
async function* examineRedis({ config, env }: Invocation): AsyncGenerator<Finding> {
  const said: string[] = [];
  const address = await resolveRedis(config, env, (line) => said.push(line.replace(/^Redis: /, '')));
  try {
    yield pass('', said.join(' · '));
    yield* inspectRedis(address);
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

/** Prints the verdict table in force for `--resource`, with `*` before rows that `--on-status` changes, and the rules that halt a run. */
function printVerdicts({ config, options, stdout }: Invocation): number {
  const { resource = anyResource } = config;
  const table = makeVerdictTable(config.onStatus, definitionOf(resource));
  const verdicts = [
    ...table.map(({ name, answers, means }) => ({ answer: answers, means, overridden: name === null })),
    { answer: 'no answer', means: 'retried; may have been executed', overridden: false },
    { answer: 'not sent', means: 'waits until the API can be reached; not an attempt', overridden: false },
  ];
  const halts = describeHalts();
  if (options.json) {
    for (const row of verdicts) stdout.write(`${JSON.stringify({ v: 1, type: 'verdict', ...row })}\n`);
    for (const row of halts) stdout.write(`${JSON.stringify({ v: 1, type: 'halt', ...row })}\n`);
    return 0;
  }
  const width = stdout.columns || Number.POSITIVE_INFINITY;
  for (const { answer, means, overridden } of verdicts) {
    stdout.write(`${hanging(means, `${`${overridden ? '*' : ' '} ${answer}`.padEnd(20)} `, width)}\n`);
  }
  if (config.onStatus !== '') stdout.write('  * by --on-status\n');
  const others = resources.filter((name) => name !== resource && !(isBuiltIn(name) && isBuiltIn(resource)));
  if (others.length > 0)
    stdout.write(
      `\nThis is the table of ${resource}. Others: ${others.map((name) => `--resource ${name}`).join(', ')}\n`,
    );
  stdout.write('\nA run is halted by these answers\n');
  const longest = Math.max(...halts.map(({ answer }) => answer.length));
  for (const { answer, when } of halts)
    stdout.write(`${hanging(`for ${when}`, `  ${answer.padEnd(longest)}  `, width)}\n`);
  return 0;
}
