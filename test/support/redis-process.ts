import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, readlinkSync, rmSync, symlinkSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { RedisOptions } from 'ioredis';
import { isAlive } from '../../src/child-process.ts';
import { privatePlace, type ServerProgram } from '../../src/redis/private/place.ts';
import { findServer, storeArguments, waitForAnswer } from '../../src/redis/private/server-process.ts';
import { unpackServer } from '../../src/redis/private/unpack.ts';
import { probe } from '../../src/redis/probe.ts';

type AtEnd = (task: () => Promise<void>) => void;

/** A Redis server with a port and a folder of its own, for set-ups of several. Goes when the test is over. */
export type RedisProcess = {
  readonly port: number;
  readonly pid: number;
  readonly folder: string;
  readonly log: string;
  signal(signal: NodeJS.Signals): void;
  /** Starts it again, on the same port and with the same folder, after it was killed. */
  restart(): Promise<void>;
};

export type RedisProcessOptions = {
  /** The server; by default what the command would find. */
  program?: ServerProgram;
  /** Its arguments behind those that every one gets; `--sentinel` needs the path of a configuration file before them. */
  args?: (port: number, folder: string) => string[];
  /** All of its arguments instead. */
  allArgs?: (port: number, folder: string) => string[];
  /** How to connect, where a host and the port are not enough. */
  login?: RedisOptions;
};

const host = '127.0.0.1';
const maxTries = 5;

/** Starts one and waits until it answers. Throws with the end of its log where it does not come up. */
export async function startRedisProcess(atEnd: AtEnd, options: RedisProcessOptions = {}): Promise<RedisProcess> {
  const program = options.program ?? (await serverProgram(atEnd));
  const folder = mkdtempSync(join(tmpdir(), 'expunge-redis-'));
  let child: ChildProcess | null = null;
  atEnd(async () => {
    if (child) await kill(child);
    rmSync(folder, { recursive: true, force: true, maxRetries: 20 }); // a child of it may still write its last file
  });
  const logFile = join(folder, 'log');
  const log = () => readFileSync(logFile, { encoding: 'utf8', flag: 'a+' });
  const start = async (port: number) => {
    child = spawn(program.path, argumentsOf(options, port, folder, logFile), {
      cwd: folder,
      env: program.env,
      stdio: 'ignore',
    });
    const isUp = await waitForAnswer(
      () => probe({ host, port, ...options.login }),
      () => hasEnded(child!),
    );
    if (!isUp) await kill(child);
    return isUp;
  };
  const port = await firstPort(start);
  if (port === null) throw new Error(`${program.path} did not come up: ${log().slice(-1_000)}`);
  return {
    port,
    folder,
    get pid() {
      return child!.pid!;
    },
    get log() {
      return log();
    },
    signal: (signal) => void child!.kill(signal),
    restart: async () => {
      await kill(child!);
      if (!(await start(port))) throw new Error(`${program.path} did not come up again: ${log().slice(-1_000)}`);
    },
  };
}

function argumentsOf({ args, allArgs }: RedisProcessOptions, port: number, folder: string, logFile: string): string[] {
  const always = ['--bind', host, '--dir', folder, '--logfile', logFile];
  if (allArgs) return [...allArgs(port, folder), ...always];
  return ['--port', String(port), ...storeArguments('another'), ...always, ...(args?.(port, folder) ?? [])];
}

/** Somebody else may take a port between the look and the start. */
async function firstPort(start: (port: number) => Promise<boolean>): Promise<number | null> {
  for (let tries = 0; tries < maxTries; tries++) {
    const port = await freePort();
    if (await start(port)) return port;
  }
  return null;
}

/**
 * Below those that the system hands out, so that no connection takes it while its server is down; a Cluster adds 10,000 for its bus. No other process
 * of the tests gets it: its server would answer in place of ours.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = 10_000 + Math.floor(Math.random() * 10_000);
    if (hold(join(tmpdir(), `expunge-port-${port}`)) && (await isFree(port))) return port;
  }
}

/** Whether the port is this process's now. That of a process that has ended is let go. */
function hold(link: string): boolean {
  try {
    symlinkSync(String(process.pid), link);
    return true;
  } catch {
    if (!isAlive(holderOf(link))) rmSync(link, { force: true });
    return false;
  }
}

function holderOf(link: string): number {
  try {
    return Number(readlinkSync(link));
  } catch {
    return process.pid; // let go meanwhile: the next round may take it
  }
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer().listen(port, host);
  const [isUp] = await Promise.race([
    once(server, 'listening').then(() => [true]),
    new Promise<boolean[]>((resolve) => server.once('error', () => resolve([false]))),
  ]);
  if (!isUp) return false;
  server.close();
  await once(server, 'close');
  return true;
}

function hasEnded(child: ChildProcess): boolean {
  return child.exitCode !== null || child.signalCode !== null || child.pid === undefined;
}

async function kill(child: ChildProcess): Promise<void> {
  if (hasEnded(child) || !isAlive(child.pid!)) return;
  const ended = once(child, 'exit');
  child.kill('SIGKILL'); // ends a stopped one, too
  await ended;
}

/** The server as the command would find it: on PATH, else unpacked from the packages of the distribution. */
async function serverProgram(atEnd: AtEnd): Promise<ServerProgram> {
  const reasons: string[] = [];
  for (const name of ['redis-server', 'valkey-server']) {
    const found = await findServer(name, process.env);
    if (!('closed' in found)) return found;
    reasons.push(found.closed);
  }
  const folder = mkdtempSync(join(tmpdir(), 'expunge-program-')); // used where there is no cache of the user
  atEnd(async () => rmSync(folder, { recursive: true, force: true }));
  const found = await unpackServer({ place: privatePlace(folder), env: process.env, say: () => {} });
  if (!('closed' in found)) return found;
  throw new Error(`no Redis server to start: ${[...reasons, found.closed].join('; ')}`);
}
