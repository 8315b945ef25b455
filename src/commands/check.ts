import { lookup } from 'node:dns/promises';
import { openToken } from '../delete/token.ts';
import { verdictTable } from '../delete/verdict.ts';
import { ExpungeError, exitCodes, messageOf, systemCode } from '../errors.ts';
import { readTarget } from '../guard/check-target.ts';
import type { Invocation } from './command.ts';
import { withRedis } from './session.ts';

type Finding = { what: string; ok: boolean; words: string };

/** Looks at target, token and Redis, and prints what it finds. Sends nothing to the API: it knows no request but DELETE. */
export async function execute(invocation: Invocation): Promise<number> {
  const { options, stdout } = invocation;
  if (options.verdicts) return printVerdicts(invocation);
  const looks: [string, () => Promise<string>][] = [
    ['target', async () => readTarget(invocation.config, invocation.env).baseUrl],
    ['host', () => lookUpHost(invocation)],
    ['token', async () => `from ${openToken(invocation.config.tokenFile, invocation.env, () => 0).source}`],
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

async function lookAtRedis(invocation: Invocation): Promise<string> {
  const said: string[] = [];
  const facts = await withRedis(
    invocation,
    (line) => said.push(line),
    async ({ facts }) => facts,
  );
  return [`${facts.name} ${facts.version}`, ...said].join(' · ');
}

function printVerdicts({ options, stdout }: Invocation): number {
  const rows = [
    ...verdictTable.map(({ statuses, means }) => ({ answer: statuses, means })),
    { answer: 'no answer', means: 'retried; may have been executed' },
    { answer: 'not sent', means: 'waits until the API can be reached; not an attempt' },
  ];
  for (const row of rows) {
    stdout.write(
      options.json
        ? `${JSON.stringify({ v: 1, type: 'verdict', ...row })}\n`
        : `${row.answer.padEnd(20)} ${row.means}\n`,
    );
  }
  return 0;
}
