import { lookup } from 'node:dns/promises';
import { verdictsWith } from '../delete/verdict.ts';
import { ExpungeError, exitCodes, messageOf, systemCode } from '../errors.ts';
import { readTarget } from '../guard/check-target.ts';
import { haltAnswers, haltWords } from '../guard/halt-words.ts';
import { haltRules } from '../guard/thresholds.ts';
import { duration } from '../terminal/words.ts';
import type { Invocation } from './command.ts';
import { readCredentials } from './service-options.ts';
import { withRedis } from './session.ts';

type Finding = { what: string; ok: boolean; words: string };

/**
 * Looks at target, token and Redis, and prints what it finds. Sends nothing to the API: it knows no request but DELETE. A
 * token that has to be asked for is asked for once.
 */
export async function execute(invocation: Invocation): Promise<number> {
  const { options, stdout } = invocation;
  if (options.verdicts) return printVerdicts(invocation);
  const looks: [string, () => Promise<string>][] = [
    ['target', async () => readTarget(invocation.config, invocation.env).baseUrl],
    ['host', () => lookUpHost(invocation)],
    ['token', () => getToken(invocation)],
    ['redis', () => lookAtRedis(invocation)],
  ];
  let exit: number = exitCodes.OK.exit;
  for (const [what, look] of looks) {
    const found = await finding(what, look);
    stdout.write(options.json ? `${JSON.stringify({ v: 1, type: 'check', ...found })}\n` : `${lineOf(found)}\n`);
    if (!found.ok && exit === 0) exit = found.exit;
  }
  return exit;
}

async function finding(what: string, look: () => Promise<string>): Promise<Finding & { exit: number }> {
  try {
    return { what, ok: true, words: await look(), exit: 0 };
  } catch (error) {
    const code = error instanceof ExpungeError ? error.code : 'INTERNAL';
    return { what, ok: false, words: messageOf(error), exit: exitCodes[code].exit };
  }
}

function lineOf({ what, ok, words }: Finding): string {
  return `${ok ? 'ok    ' : 'wrong '} ${what.padEnd(7)} ${words}`;
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

async function lookAtRedis(invocation: Invocation): Promise<string> {
  const said: string[] = [];
  const facts = await withRedis(
    invocation,
    (line) => said.push(line),
    async ({ facts }) => facts,
  );
  return [`${facts.name} ${facts.version}`, ...said].join(' · ');
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
