import { execFile, spawn } from 'node:child_process';
import { accessSync, closeSync, constants, existsSync, openSync, readFileSync, readlinkSync } from 'node:fs';
import { delimiter, isAbsolute, join } from 'node:path';
import { isAlive, withoutOwnSecrets } from '../../child-process.ts';
import { describeProgramError, systemCode } from '../../system-errors.ts';
import { waitUntil } from '../../wait.ts';
import type { PrivatePlace } from '../address.ts';
import { type Answer, probeOwn } from '../probe.ts';
import { isOldVersion, oldestVersion } from '../server.ts';
import { makeFolderId, type ServerProgram, type StartDeps, type StartMethod, type StartResult } from './place.ts';

/** `valkey-server` or `redis-server` as installed on this machine. */
export const serverOnPath: StartMethod = { store: 'folder', start: startFromPath };

async function startFromPath({ place, env }: StartDeps): Promise<StartResult> {
  const reasons: string[] = [];
  for (const name of ['valkey-server', 'redis-server']) {
    const found = await findServer(name, env);
    const closed = 'closed' in found ? found.closed : await startProcess(found, place);
    if (closed === null) return { options: { path: place.socket }, how: describe(found as ServerProgram, place) };
    reasons.push(closed);
  }
  return { closed: reasons.join('; ') };
}

function describe(program: ServerProgram, place: PrivatePlace): string {
  return `started ${program.path} ${program.version} on ${place.folder}`;
}

const loadingMs = 600_000; // a large append-only file takes time to load

/**
 * Starts the server as a process that outlives this one, and waits until it answers; it loads the data in the folder. Returns why it did not start,
 * or null. Call it under the start lock, because two servers on one folder would mix their files.
 */
export async function startProcess(program: ServerProgram, place: PrivatePlace): Promise<string | null> {
  const folderId = makeFolderId(place);
  const output = openSync(place.logFile, 'a', 0o600);
  const child = spawn(program.path, serverArguments(place, folderId), {
    cwd: place.folder,
    env: program.env, // only this: the server outlives this process, whose environment may hold secrets
    detached: true,
    stdio: ['ignore', output, output],
  });
  closeSync(output);
  child.unref();
  let ended: string | null = null;
  child.once('error', (error) => (ended = describeProgramError(error)));
  child.once('exit', () => (ended = lastLine(readLog(place)) || 'ended at once'));
  const poll = () => probeOwn({ path: place.socket }, folderId);
  const up = await waitForAnswer(poll, () => ended !== null);
  if (up) return null;
  child.kill('SIGKILL');
  return `${program.path} did not start: ${ended ?? 'no answer on its socket'} (see ${place.logFile})`;
}

/**
 * Polls until Redis answers, and returns true. Returns false if it ended, did not react in `firstSignMs`, or loads its file for more than ten
 * minutes.
 */
export async function waitForAnswer(
  poll: () => Promise<Answer>,
  hasEnded: () => boolean,
  firstSignMs = 10_000,
): Promise<boolean> {
  let answer = 'none' as Answer;
  const isOver = async () => {
    answer = await poll();
    return answer === 'ready' || hasEnded();
  };
  await waitUntil(async () => (await isOver()) || answer === 'loading', firstSignMs);
  if (answer === 'loading') await waitUntil(isOver, loadingMs);
  return answer === 'ready';
}

function serverArguments(place: PrivatePlace, folderId: string): string[] {
  const files = ['--dir', place.folder, '--pidfile', place.pidFile, '--logfile', place.logFile];
  const socket = ['--port', '0', '--unixsocket', place.socket, '--unixsocketperm', '700'];
  return [...files, ...socket, ...storeArguments(folderId), '--daemonize', 'no'];
}

/** The arguments of every private Redis: an append-only file flushed each second, no eviction, and the folder's id. */
export function storeArguments(folderId: string): string[] {
  const files = ['--appendonly', 'yes', '--appendfsync', 'everysec', '--save', ''];
  return [...files, '--maxmemory-policy', 'noeviction', '--syslog-ident', folderId];
}

/** The pid of the server process of the folder, whether it answers or not; null if there is none. */
export function serverPid(place: PrivatePlace): number | null {
  const pid = Number(readText(place.pidFile));
  return pid > 0 && isServer(pid, place) ? pid : null;
}

/**
 * Whether the process exists and its working folder is this one. If the system does not show the folder, an existing pid counts as the server: it is
 * better to start none than a second one.
 */
export function isServer(pid: number, place: PrivatePlace): boolean {
  return isAlive(pid) && worksIn(pid, place.folder) !== false;
}

/**
 * Whether the folder is the working folder of the process: after a reboot another process may have the pid. Null if the system doesn't show it; then
 * send no signal.
 */
export function worksIn(pid: number, folder: string, processes = '/proc'): boolean | null {
  try {
    return readlinkSync(`${processes}/${pid}/cwd`) === folder;
  } catch (error) {
    // A zombie process has no working folder.
    return systemCode(error) === 'ENOENT' && existsSync(`${processes}/self`) ? false : null;
  }
}

function readLog(place: PrivatePlace): string {
  return readText(place.logFile).slice(-2_000);
}

function readText(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}

/** Finds the server of this name on PATH with its version, or why it cannot be used. Never throws. */
export async function findServer(name: string, env: NodeJS.ProcessEnv): Promise<ServerProgram | { closed: string }> {
  const path = findOnPath(name, env);
  if (!path) return { closed: `${name} is not on PATH` };
  return readServerProgram(path, {});
}

/** Reads the version of the server at this path, or why it cannot be used. `env`: its whole environment. Never throws. */
export async function readServerProgram(
  path: string,
  env: NodeJS.ProcessEnv,
): Promise<ServerProgram | { closed: string }> {
  const ran = await runProgram(path, ['--version'], { env, deadlineMs: 5_000 });
  const version = /\bv=(\d+\.\d+\.\d+)/.exec(ran.stdout)?.[1];
  if (!version) return { closed: `${path} does not run: ${ran.stderr.trim() || 'it prints no version'}` };
  if (isOldVersion(version)) return { closed: `${path} is ${version}, older than ${oldestVersion}` };
  return { path, version, env };
}

/** The first executable of this name in PATH, or null. Relative entries of PATH are not searched. */
export function findOnPath(name: string, env: NodeJS.ProcessEnv): string | null {
  const folders = (env.PATH ?? '').split(delimiter).filter(isAbsolute);
  return folders.map((folder) => join(folder, name)).find(isExecutable) ?? null;
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** The end of a program. `stderr` also says why it could not be started, or that it was killed at the deadline. */
export type ProgramResult = { ok: boolean; stdout: string; stderr: string };

type ProgramOptions = { env: NodeJS.ProcessEnv; deadlineMs: number; cwd?: string };

/** Runs a program to its end, without a shell, input, or secrets of expunge in its environment. Never rejects; kills the program at the deadline. */
export function runProgram(
  program: string,
  args: string[],
  { env, deadlineMs, cwd }: ProgramOptions,
): Promise<ProgramResult> {
  const options = {
    env: withoutOwnSecrets(env),
    cwd,
    timeout: deadlineMs,
    killSignal: 'SIGKILL',
    maxBuffer: 2 ** 24,
  } as const;
  return new Promise((resolve) => {
    const child = execFile(program, args, options, (error, stdout, stderr) => {
      if (!error) return resolve({ ok: true, stdout, stderr });
      const why = error.killed ? `no end after ${deadlineMs / 1000} s` : stderr || startError(program, error.code);
      resolve({ ok: false, stdout, stderr: why });
    });
    child.stdin?.end();
  });
}

function startError(program: string, code: unknown): string {
  if (code === 'ENOENT') return `${program} not found`;
  return typeof code === 'string'
    ? `${program}: ${describeProgramError({ code })}`
    : `${program} ended with ${code ?? 'a signal'}`;
}

/** The last line that isn't empty, where programs usually print their error. */
export function lastLine(text: string): string {
  return text.trim().split('\n').at(-1)?.trim() ?? '';
}
