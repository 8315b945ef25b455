import * as parse from '../config/parse-setting.ts';
import { retryAfterForms } from '../sandbox/fault-kinds.ts';
import { rateHeaderKinds } from '../sandbox/rate-limit.ts';
import { type Invocation, json, jsonLines, type OwnOption } from './command.ts';
import { listenForInterrupts } from './interrupts.ts';
import { runSandbox } from './sandbox.ts';

/** What the sandbox can be told: what it holds, how fast it is and what goes wrong. */
export const sandboxOptions: readonly OwnOption[] = [
  { flags: '--port <n>', help: 'listen here (default: any free port)', parse: parse.integerFrom(0, 65_535) },
  { flags: '--host <address>', help: 'listen on this address (default: 127.0.0.1)' },
  { flags: '--annotations <n>', help: 'create this many (default: 1000)', parse: parse.integerFrom(0, 10_000_000) },
  { flags: '--views <n>', help: 'create this many (default: 1000)', parse: parse.integerFrom(0, 10_000_000) },
  { flags: '--objects <file>', help: 'a CSV of resource,id instead of made objects' },
  { flags: '--rate-limit <n/s>', help: 'answer 429 above this rate', parse: parse.perSecond },
  {
    flags: '--rate-window <duration>',
    help: 'count the rate in windows of this length instead of evenly: 1s, 1min',
    parse: windowMs,
  },
  {
    flags: '--rate-headers <kind>',
    help: `report the rate in every answer: ${rateHeaderKinds.join(', ')}`,
    parse: parse.oneOf(rateHeaderKinds),
  },
  {
    flags: '--retry-after <form>',
    help: `send Retry-After with those 429: ${retryAfterForms.join(', ')}`,
    parse: parse.oneOf(retryAfterForms),
  },
  { flags: '--faults <list>', help: 'faults and how often: status-503=0.01,reset=0.005' },
  { flags: '--write-token <file>', help: 'write the access token there, for --token-file' },
  { flags: '--token-life <duration>', help: 'of tokens its token endpoint issues: 90s, 1h', parse: parse.duration },
  { flags: '--one-live-token', help: 'each token it issues revokes those before' },
  { flags: '--seed <n>', help: 'repeat the same faults', parse: parse.integerFrom(0, 2 ** 32 - 1) },
  { flags: '--latency-ms <ms>', help: 'answer after this long', parse: parse.integerFrom(0, 600_000) },
  {
    flags: '--capacity <n>',
    help: 'serve this many requests at once, 50 ms each; the others queue',
    parse: parse.integerFrom(1, 1_000_000),
  },
  {
    flags: '--service-ms <ms>',
    help: 'time to serve each request (with --capacity)',
    parse: parse.integerFrom(1, 600_000),
  },
  { flags: '--journal', help: 'keep every request, and show at /journal what came and what was executed' },
  json,
];

function windowMs(text: string): number {
  const ms = parse.duration(text);
  if (ms > 0) return ms;
  throw new Error(`expected a duration above 0, got "${text}"`);
}

export async function execute(invocation: Invocation): Promise<number> {
  const { options, stdout } = invocation;
  const interrupts = listenForInterrupts(invocation, () => {});
  const { writeToken, tokenLife, rateLimit, rateWindow, json, ...rest } = options as Record<string, never>;
  const renamed = { tokenFile: writeToken, rate: rateLimit, rateWindowMs: rateWindow };
  const flags = { ...rest, ...renamed, tokenLifeSeconds: tokenLife && tokenLife / 1_000 };
  const out = json ? () => {} : (line: string) => void stdout.write(`${line}\n`);
  return runSandbox(flags, out, interrupts.signal, jsonLines(stdout, json));
}
