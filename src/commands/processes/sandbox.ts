import { once } from 'node:events';
import { resource } from '../../config/parse-setting.ts';
import { ExpungeError, messageOf } from '../../errors.ts';
import { count } from '../../format.ts';
import { anyResource, perResource, usedResources } from '../../model/resource.ts';
import { throttlingStatus } from '../../model/status.ts';
import type { ToType } from '../../model/to-type.ts';
import { type FaultTable, parseFaults } from '../../sandbox/faults.ts';
import { madeId, readObjects } from '../../sandbox/objects.ts';
import type { RateLimit } from '../../sandbox/rate-limit.ts';
import { journalPath, writeToken } from '../../sandbox/serve.ts';
import { type Sandbox, startSandbox } from '../../sandbox/server.ts';
import { explainListenError, systemCode } from '../../system-errors.ts';
import { type Invocation, type JsonLines, jsonLines } from '../command.ts';
import { listenForInterrupts } from '../interrupts.ts';
import type { Options, SandboxFlags } from '../options.ts';

const usuallyMade = 1_000; // number of objects of each resource without the flag

/** Serves the sandbox until a signal comes. Prints where it listens and, at the end, the requests it got. */
export async function execute(invocation: Invocation): Promise<number> {
  const { options, stdout } = invocation;
  const interrupts = listenForInterrupts(invocation, () => {});
  const { json } = options;
  const flags = sandboxFlagsOf(options);
  refuseOtherResources(flags);
  const out = json ? () => {} : (line: string) => void stdout.write(`${line}\n`);
  return runSandbox(flags, { out, toType: invocation.toType }, interrupts.signal, jsonLines(stdout, json));
}

/** The flags of the sandbox among the options of a command. */
function sandboxFlagsOf({ resource: made, writeToken, rateLimit, rateWindow, ...rest }: Options): SandboxFlags {
  return { ...rest, made, tokenFile: writeToken, rate: rateLimit, rateWindowMs: rateWindow };
}

/**
 * Serves the sandbox until the signal aborts. `out` gets lines for people, `print` the same facts for --json. Returns the exit code. Throws USAGE for
 * flags that cannot be met.
 */
export async function runSandbox(
  flags: SandboxFlags,
  { out, toType }: { out: (line: string) => void; toType: ToType },
  signal: AbortSignal,
  print: JsonLines = () => {},
): Promise<number> {
  const sandbox = await start(flags);
  try {
    if (flags.tokenFile) await writeToken(flags.tokenFile, sandbox.token);
    print('sandbox', factsOf(sandbox, flags));
    for (const line of introduce(sandbox, flags, toType)) out(line);
    if (!signal.aborted) await once(signal, 'abort');
  } finally {
    await sandbox.close();
  }
  print('sandbox_summary', summaryOf(sandbox));
  for (const line of sumUp(sandbox)) out(line);
  return 0;
}

async function start(flags: SandboxFlags): Promise<Sandbox> {
  refuseIdleFlags(flags);
  const faults = readFaults(flags);
  const objects = flags.objects
    ? await readObjects(flags.objects)
    : { ...perResource(() => usuallyMade), ...flags.made };
  try {
    return await startSandbox({ ...flags, objects, faults, record: flags.journal });
  } catch (error) {
    if (systemCode(error) === '') throw error;
    const where = flags.host === undefined ? '--port: cannot listen on ' : `--host: cannot listen on ${flags.host}:`;
    const { words, next } = explainListenError(error);
    throw new ExpungeError('USAGE', `${where}${flags.port ?? 0}: ${words}`, { cause: error, next });
  }
}

/** Throws USAGE for a number of objects of a resource that is not defined. */
function refuseOtherResources({ made = {} }: SandboxFlags): void {
  try {
    for (const name of Object.keys(made)) resource(name);
  } catch (error) {
    throw new ExpungeError('USAGE', `--resource: ${messageOf(error)}`, { cause: error });
  }
}

/** The faults in these flags. Throws USAGE for invalid faults. */
export function readFaults(flags: SandboxFlags): FaultTable {
  const { faults, rate } = flags;
  try {
    return {
      ...(faults === undefined ? {} : parseFaults(faults)),
      ...(rate === undefined ? {} : { rate: limit(rate, flags) }),
    };
  } catch (error) {
    throw new ExpungeError('USAGE', `--faults: ${messageOf(error)}`, { cause: error });
  }
}

function limit(perSecond: number, { rateWindowMs: windowMs, retryAfter }: SandboxFlags): RateLimit {
  return { perSecond, windowMs, retryAfter };
}

/** Throws USAGE for a flag that would do nothing. */
function refuseIdleFlags({ rate, rateWindowMs, retryAfter }: SandboxFlags): void {
  if (rate === undefined && (rateWindowMs !== undefined || retryAfter !== undefined))
    throw new ExpungeError('USAGE', '--rate-window and --retry-after need a --rate-limit');
}

function introduce(sandbox: Sandbox, flags: SandboxFlags, toType: ToType): string[] {
  const { url, tokenUrl, token, client } = sandbox;
  return [
    `sandbox API   ${url}`,
    `objects       ${madeText(sandbox)}`,
    `faults        ${faultsOf(flags).join(', ') || 'nothing'}`,
    `token         ${token}${flags.tokenFile ? `, also in ${flags.tokenFile}` : ''}`,
    `token URL     ${tokenUrl}, client ${client.id}, secret ${client.secret}`,
    ...(flags.journal ? [`journal       ${new URL(journalPath, sandbox.url)}`] : []),
    `try           ${example(sandbox, flags, toType)}`,
    'stop          Ctrl-C',
  ];
}

/** `1,000 annotations, 500 dashboards`. */
function madeText({ remaining }: Sandbox): string {
  const made = perResource(remaining);
  return (
    usedResources(made)
      .map((resource) => `${count(made[resource]!)} ${resource}`)
      .join(', ') || 'none'
  );
}

function factsOf({ url, tokenUrl, token, client, remaining }: Sandbox, flags: SandboxFlags): Record<string, unknown> {
  return {
    url,
    token,
    token_file: flags.tokenFile ?? null,
    token_url: tokenUrl,
    client_id: client.id,
    client_secret: client.secret,
    ...perResource(remaining),
    journal: flags.journal ? new URL(journalPath, url).href : null,
  };
}

function summaryOf({ counts, remaining }: Sandbox): Record<string, unknown> {
  const answers = Object.fromEntries(counts.byStatus);
  return { requests: counts.requests, answers, deleted: counts.executed, remaining: remaining() };
}

/** The faults and limits in words; [] = none. */
function faultsOf({ faults, rate }: SandboxFlags): string[] {
  return [...(faults ? [faults] : []), ...(rate === undefined ? [] : [`${throttlingStatus} above ${count(rate)}/s`])];
}

function example({ url, token, remaining }: Sandbox, { objects, tokenFile }: SandboxFlags, toType: ToType): string {
  const resource = usedResources(perResource(remaining))[0] ?? anyResource;
  const rows = objects ? [objects, '--resource-column', 'resource'] : ['-', '--resource', resource, '--yes'];
  const file = tokenFile ? ['--token-file', tokenFile] : [];
  const ids = objects ? '' : `printf '%s\\n' ${madeId(resource, 1)} ${madeId(resource, 2)} | `;
  return `${ids}${tokenFile ? '' : `EXPUNGE_TOKEN=${token} `}${toType('run', ...rows, '--base-url', url, ...file)}`;
}

function sumUp({ counts, remaining }: Sandbox): string[] {
  const statuses = [...counts.byStatus].sort(([a], [b]) => a - b).map(([status, n]) => `${count(n)} × ${status}`);
  return [
    `requests      ${count(counts.requests)}${statuses.length > 0 ? `: ${statuses.join(', ')}` : ''}`,
    `deleted       ${count(counts.executed)} objects, ${count(remaining())} remain`,
  ];
}
