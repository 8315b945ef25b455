import * as parse from '../config/parse-setting.ts';
import { resources } from '../model/resource.ts';
import { throttlingStatus } from '../model/status.ts';
import { retryAfterForms } from '../sandbox/fault-kinds.ts';
import { rateHeaderKinds } from '../sandbox/rate-limit.ts';
import { type Command, json, type OwnOption } from './command.ts';

/** What the sandbox can be told: what it holds, how fast it is and what goes wrong. */
const options: readonly OwnOption[] = [
  { flags: '--port <n>', help: 'listen here (default: any free port)', parse: parse.integerFrom(0, 65_535) },
  { flags: '--host <address>', help: 'listen on this address (default: 127.0.0.1)' },
  ...resources.map((resource) => ({
    flags: `--${resource} <n>`,
    help: 'create this many (default: 1000)',
    parse: parse.integerFrom(0, 10_000_000),
  })),
  { flags: '--objects <file>', help: 'a CSV of resource,id instead of made objects' },
  { flags: '--rate-limit <n/s>', help: `answer ${throttlingStatus} above this rate`, parse: parse.perSecond },
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
    help: `send Retry-After with those ${throttlingStatus}: ${retryAfterForms.join(', ')}`,
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

export const sandbox: Command = {
  name: 'sandbox',
  summary: 'serve a test API on this machine, with fault injection',
  settings: [],
  options,
  examples: [
    ['expunge sandbox --port 8080', 'with 1,000 annotations and 1,000 views'],
    ['expunge sandbox --rate-limit 300/s --faults status-503=0.02,reset=0.005', 'with faults'],
    ['expunge sandbox --rate-limit 6000/min --rate-window 1min --retry-after seconds', 'with a quota for each minute'],
  ],
  load: () => import('./sandbox.ts'),
};
