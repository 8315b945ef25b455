import { readFileSync } from 'node:fs';
import { loadavg } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { headers } from './express-target.ts';
import { passed, startRun } from './fleet.ts';
import { type AtEnd, type Harness, openHarness } from './harness.ts';
import { makeIds } from './ids.ts';
import type { NpmLimiter } from './limited-server.ts';
import { startNginx } from './nginx.ts';
import { startNode, until } from './processes.ts';
import { type Arrivals, percent, type Span, sharesOf, takenIn } from './rate-measures.ts';
import { startRedisProcess } from './redis-process.ts';

/** A limiter that people use, at its limit, and the worker processes that meet it. */
export type RealLimit = {
  limiter:
    | `express-rate-limit, ${keyof typeof headers}`
    | `rate-limiter-flexible in ${'memory' | 'Redis'}`
    | `nginx ${'without a burst' | 'with a burst' | 'with a delayed burst'}`;
  perSecond: number;
  /** The window of limiters that count in windows, in seconds. */
  windowS?: number;
  processes: number;
  /** Whether another process computes all the time. */
  isBusy?: boolean;
};

export function nameOf({ limiter, perSecond, windowS = 1, processes, isBusy }: RealLimit): string {
  const limit = windowS === 1 ? `${perSecond}/s` : `${perSecond * windowS} in ${windowS} s`;
  const beside = isBusy ? ', beside a busy loop' : '';
  return `${limiter}, ${limit}, ${processes} process${processes === 1 ? '' : 'es'}${beside}`;
}

/** The part of the limit that was used, the part of the answers that were 429, and both in words. */
export type Shares = { used: number; refused: number; words: string };

/** A run that meets a limiter: what the server answered, in seconds since its first answer. */
export type Meeting = {
  /** Waits until this second. */
  reach(second: number): Promise<void>;
  /** The shares between two seconds. */
  shares(from: number, to: number): Shares;
  /** Accepted and refused requests, second by second: `300 299/1 300`. */
  seconds(): string;
};

/** Starts the server, the workers and a run that lasts for so many seconds; returns after the first answer. */
export async function meetRealLimit(limit: RealLimit, seconds: number, atEnd: AtEnd): Promise<Meeting> {
  const harness = await openHarness(atEnd);
  const logFile = join(harness.folder, 'answers.log');
  const settings = { EXPUNGE_BASE_URL: await startServer(harness, limit, logFile, atEnd) };
  await Promise.all(Array.from({ length: limit.processes }, () => harness.spawnWorker([], settings)));
  if (limit.isBusy) harness.own(startNode(['-e', busyLoop], {}));
  const ids = makeIds('l', limit.perSecond * (seconds + 2 * (limit.windowS ?? 1) + 10));
  await startRun(harness, ids, ['--detach'], settings);
  const startedMs = await until('the first request is answered', () => readAnswers(logFile).atMs[0]);
  const shares = (from: number, to: number) => {
    const span = { fromMs: startedMs + 1_000 * from, toMs: startedMs + 1_000 * to };
    const { used, refused } = sharesOf(takenIn(readAnswers(logFile), span), limit.perSecond);
    const load = loadavg()[0]!.toFixed(1);
    const words = `${nameOf(limit)}: used ${percent(used)}, 429 ${percent(refused)} in seconds ${from.toFixed(0)} to ${to.toFixed(0)}, load ${load}`;
    return { used, refused, words };
  };
  return {
    reach: (second) => passed(startedMs, 1_000 * second),
    shares,
    seconds: () => secondBySecond(readAnswers(logFile), { fromMs: startedMs, toMs: performance.now() }),
  };
}

/** It ends by itself if nobody is left to end it. */
const busyLoop = 'const end = Date.now() + 600_000; while (Date.now() < end);';

const serverProgram = fileURLToPath(new URL('limited-server.ts', import.meta.url));

/** Starts the server and returns its address. */
async function startServer(harness: Harness, limit: RealLimit, logFile: string, atEnd: AtEnd): Promise<string> {
  harness.file('answers.log', '');
  const { limiter, perSecond } = limit;
  if (isOfNginx(limit)) return startNginx(harness, { perSecond, burst: burstOf(limit) }, logFile);
  const redisPort = limiter === 'rate-limiter-flexible in Redis' ? (await startRedisProcess(atEnd)).port : null;
  const server = harness.own(startNode([serverProgram, JSON.stringify(npmLimiter(limit, redisPort)), logFile], {}));
  return until('the server listens', () => {
    if (server.isOver) throw new Error(`the server ended: ${server.stderr}`);
    return /^(\S+)\n/.exec(server.stdout)?.[1];
  });
}

export function isOfNginx({ limiter }: Pick<RealLimit, 'limiter'>): boolean {
  return limiter.startsWith('nginx');
}

function burstOf({ limiter, perSecond }: RealLimit): string {
  const burst = `burst=${Math.max(10, perSecond / 15)}`;
  if (limiter === 'nginx without a burst') return '';
  return limiter === 'nginx with a delayed burst' ? burst : `${burst} nodelay`;
}

function npmLimiter({ limiter, perSecond, windowS = 1 }: RealLimit, redisPort: number | null): NpmLimiter {
  const window = { limit: perSecond * windowS, windowS };
  if (limiter.startsWith('rate-limiter-flexible')) return { package: 'rate-limiter-flexible', redisPort, ...window };
  const kind = limiter.replace('express-rate-limit, ', '') as keyof typeof headers;
  return { package: 'express-rate-limit', ...headers[kind], ...window };
}

/** The log of a server, as far as it is written: requests in the order in which they arrived, by `performance.now()`. */
function readAnswers(logFile: string): Arrivals {
  const lines = readFileSync(logFile, 'utf8').split('\n').slice(0, -1); // what is behind the last line break is not whole
  const answers = lines.map((line) => {
    const [ended, took, status] = line.split(' ').map(Number) as [number, number, number];
    return { atMs: 1_000 * (ended - took) - performance.timeOrigin, status };
  });
  answers.sort((a, b) => a.atMs - b.atMs);
  return { atMs: answers.map(({ atMs }) => atMs), status: answers.map(({ status }) => status) };
}

function secondBySecond(answers: Arrivals, { fromMs, toMs }: Span): string {
  const seconds: string[] = [];
  for (let at = fromMs; at + 1_000 <= toMs; at += 1_000) {
    const { accepted, refused } = takenIn(answers, { fromMs: at, toMs: at + 1_000 });
    seconds.push(refused === 0 ? `${accepted}` : `${accepted}/${refused}`);
  }
  return seconds.join(' ');
}
