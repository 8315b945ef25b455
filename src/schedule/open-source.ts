import { once } from 'node:events';
import { glob, stat } from 'node:fs/promises';
import { dirname, isAbsolute, resolve, sep } from 'node:path';
import type { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { awaitExit, type Child, endChild, startChild } from '../child-process.ts';
import { refusePlainHttp } from '../config/check-target.ts';
import type { ListSource } from '../config/list-source.ts';
import { ExpungeError, readCertificates } from '../errors.ts';
import { plural } from '../format.ts';
import { openDispatcher } from '../http/send-once.ts';
import { type InputFile, openInputs } from '../input/open-inputs.ts';
import type { Log } from '../logger.ts';
import { describeConnectionError } from '../system-errors.ts';
import { maskSecrets } from '../token/fixed-token.ts';
import type { ReadFiles } from './schedule.ts';

/** The dependencies of reading a source. */
export type SourceDeps = {
  env: NodeJS.ProcessEnv;
  proxy: string | null;
  allowHttp: string | undefined;
  /** Aborting it ends the reading, which then throws. */
  stop: AbortSignal;
  wait(ms: number, stop: AbortSignal): Promise<void>;
  log: Log;
};

/** A source as input, the files to archive afterwards, and the reason why there is nothing to do; '' if there is something. */
export type OpenSource = { files: InputFile[]; read: ReadFiles['files']; nothing: string };

/** Opens a source. Throws USAGE, here or while it is read, if it does not give a complete list. */
export async function openSource(name: string, source: ListSource, deps: SourceDeps): Promise<OpenSource> {
  switch (source.kind) {
    case 'glob':
      return openGlob(name, source, deps);
    case 'command':
      return { files: [commandFile(name, source, deps)], read: [], nothing: '' };
    case 'url':
      refusePlainHttp(`source ${name}:`, source.url, deps.allowHttp, 'change the list');
      return { files: [urlFile(name, source, deps)], read: [], nothing: '' };
  }
}

const maxStderrLength = 4_096;
const graceMs = 1_000;

/**
 * The ids that a command prints. It runs without a shell and without input. Reading throws USAGE, after the output, if the command cannot start, ends
 * with another code than 0, takes too long, or leaves a process behind that may still print. In the last two cases its process group is killed. So
 * the list is complete, or reading it throws.
 */
function commandFile(
  name: string,
  { command, timeoutMs }: ListSource & { kind: 'command' },
  { env, stop, log }: SourceDeps,
): InputFile {
  const [program = '', ...args] = command;
  const fail = (problem: string) => new ExpungeError('USAGE', `source ${name}: the command ${program} ${problem}`);
  return {
    name: `${name} (command ${program})`,
    isStdin: true,
    isPipe: false,
    isUnattended: true,
    open: () => readOutput(startChild(program, args, env), { timeoutMs, stop, fail, onStderr: logStderr(log, name) }),
  };
}

type ReadOptions = {
  timeoutMs: number;
  stop: AbortSignal;
  fail: (problem: string) => Error;
  onStderr: (stderr: string) => void;
};

async function* readOutput(child: Child, { timeoutMs, stop, fail, onStderr }: ReadOptions): AsyncGenerator<Buffer> {
  let [problem, stderr] = ['', ''];
  const end = (words: string) => {
    problem ||= words;
    endChild(child);
  };
  const exited = awaitExit(child);
  void exited.then(async (ended) => {
    if (!(await endsSoon(child))) end(ended || leftoverReason);
  });
  const timer = setTimeout(() => end(`took longer than ${timeoutMs / 1_000} s`), timeoutMs);
  const stopIt = () => end('was stopped, because this process ends or has lost its lease');
  stop.addEventListener('abort', stopIt, { once: true });
  if (stop.aborted) stopIt();
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr = (stderr + text).slice(0, maxStderrLength);
  });
  try {
    yield* untilEnded(child);
    if (problem === '') problem = await exited;
    if (problem !== '') throw fail(problem);
  } finally {
    clearTimeout(timer);
    stop.removeEventListener('abort', stopIt);
    if (child.exitCode === null) endChild(child);
    await closed(child.stderr);
    child.stderr.destroy(); // a process that was left behind may hold it for ever
    if (stderr !== '') onStderr(stderr);
  }
}

const leftoverReason =
  'has ended, but a process that it left behind may still print: its output may be incomplete ' +
  '(redirect the output of that process, as with >/dev/null)';

/** The output of a command, until it ends or is killed. */
async function* untilEnded({ stdout }: Child): AsyncGenerator<Buffer> {
  try {
    yield* stdout as AsyncIterable<Buffer>;
  } catch (error) {
    if (!stdout.destroyed) throw error;
  }
}

/** Whether the output of an ended command also ends. Long output may be read slowly, so only a second without any data counts as no. */
async function endsSoon({ stdout }: Child): Promise<boolean> {
  const bytesRead = () => (stdout as typeof stdout & { bytesRead: number }).bytesRead;
  for (let seen = -1; !stdout.closed && !stdout.readableEnded; ) {
    if (bytesRead() === seen && stdout.readableLength === 0) return false;
    seen = bytesRead();
    await closed(stdout);
  }
  return true;
}

/** Waits until a stream is closed, for at most a second, as a process that was left behind may hold it. */
async function closed(stream: Readable): Promise<void> {
  if (!stream.closed) await Promise.race([once(stream, 'close'), sleep(graceMs)]).catch(() => {});
}

/** Logs the stderr of a command, on this machine only, because it may name hosts and users. */
function logStderr(log: SourceDeps['log'], name: string): (stderr: string) => void {
  return (stderr) => log.warn({ source: name, reason: maskSecrets(stderr, []) }, 'the command of a source says');
}

type FileSnapshot = Map<string, { size: number; mtimeMs: number; ino: number }>;

/**
 * The files of a pattern that no program is writing to: their size and time are the same before and after the settling time. Other files are left for
 * the next occurrence. Without such a file there is nothing to do if files are archived; otherwise it throws USAGE, as it does for a missing folder.
 */
async function openGlob(
  name: string,
  { glob: pattern, archive, settleMs }: ListSource & { kind: 'glob' },
  { wait, stop }: SourceDeps,
): Promise<OpenSource> {
  const before = await scanFiles(pattern, archive);
  if (before.size > 0) await wait(settleMs, stop);
  const after = await scanFiles(pattern, archive);
  const paths = [...after.keys()].filter((path) => isUnchanged(before, after, path)).sort();
  if (paths.length === 0) return noFile(name, pattern, archive, after.size);
  const files = (await openInputs(paths)).map((file) => ({ ...file, isUnattended: true }) as const);
  if (archive === null) return { files, read: [], nothing: '' };
  const read = paths.map((path) => ({ path, size: after.get(path)!.size, mtimeMs: after.get(path)!.mtimeMs }));
  return { files, read, nothing: '' };
}

/** Finds the files that match now, without archived ones, even if the pattern matches the archive. */
export async function scanFiles(pattern: string, archive: string | null): Promise<FileSnapshot> {
  const found: FileSnapshot = new Map();
  for await (const path of glob(pattern)) {
    if (archive !== null && resolve(path).startsWith(`${resolve(archive)}${sep}`)) continue;
    const facts = await stat(path).catch(() => null); // it may have been removed in the meantime
    if (facts?.isFile()) found.set(path, { size: facts.size, mtimeMs: facts.mtimeMs, ino: facts.ino });
  }
  return found;
}

function isUnchanged(before: FileSnapshot, after: FileSnapshot, path: string): boolean {
  const [was, is] = [before.get(path), after.get(path)!];
  return was !== undefined && was.size === is.size && was.mtimeMs === is.mtimeMs && was.ino === is.ino;
}

async function noFile(name: string, pattern: string, archive: string | null, half: number): Promise<OpenSource> {
  const written = `${plural(half, 'files')} ${half === 1 ? 'is' : 'are'} still being written, no finished one is there`;
  const words = `${half === 0 ? 'no file is there' : written} (${pattern})`;
  if (archive === null) throw new ExpungeError('USAGE', `source ${name}: ${words}`);
  const folder = folderOf(pattern);
  const isThere = await stat(folder).then(
    (found) => found.isDirectory(),
    () => false,
  );
  // A disk that is not mounted looks like a folder without files.
  if (!isThere) throw new ExpungeError('USAGE', `source ${name}: there is no folder ${folder} (${pattern})`);
  return { files: [], read: [], nothing: words };
}

/** The part of a pattern that is one folder, whatever matches. */
function folderOf(pattern: string): string {
  const parts = dirname(pattern).split(sep);
  const first = parts.findIndex((part) => /[*?[{(!+@]/.test(part));
  return parts.slice(0, first === -1 ? undefined : first).join(sep) || (isAbsolute(pattern) ? sep : '.');
}

/**
 * The list at a URL. Reading it throws USAGE for any status but 200, and for an answer that is cut off or takes too long; redirects are not followed.
 * The URL's query is never shown, and no token is sent.
 */
function urlFile(
  name: string,
  { url, caFile, timeoutMs }: ListSource & { kind: 'url' },
  { proxy, stop }: SourceDeps,
): InputFile {
  const { origin, pathname } = new URL(url);
  const fail = (problem: string) => new ExpungeError('USAGE', `source ${name}: ${origin}${pathname} ${problem}`);
  return {
    name: `${origin}${pathname}`,
    isStdin: false,
    isPipe: false,
    isUnattended: true,
    open: () => download(url, { caFile, proxy, timeoutMs, stop, fail }),
  };
}

type Download = {
  caFile: string | null;
  proxy: string | null;
  timeoutMs: number;
  stop: AbortSignal;
  fail: (problem: string) => Error;
};

async function* download(url: string, { caFile, proxy, timeoutMs, stop, fail }: Download): AsyncGenerator<Buffer> {
  const { origin, pathname, search } = new URL(url);
  const ca = caFile === null ? null : readCertificates('caFile', caFile);
  const dispatcher = await openDispatcher(origin, { ca, proxy });
  const late = new AbortController();
  const timer = setTimeout(() => late.abort(), timeoutMs);
  const signal = AbortSignal.any([stop, late.signal]);
  try {
    const timeouts = { headersTimeout: timeoutMs, bodyTimeout: timeoutMs };
    const answer = await dispatcher.request({ origin, path: pathname + search, method: 'GET', signal, ...timeouts });
    if (answer.statusCode !== 200) throw fail(`answered ${answer.statusCode}; only 200 is a list`);
    const { 'content-length': length, 'transfer-encoding': encoding } = answer.headers;
    if (length === undefined && encoding === undefined)
      throw fail('does not give the length of its answer, which may be cut off');
    yield* answer.body as AsyncIterable<Buffer>;
  } catch (error) {
    if (error instanceof ExpungeError) throw error;
    if (late.signal.aborted) throw fail(`took longer than ${timeoutMs / 1_000} s`);
    throw fail(`gave no complete list (${stop.aborted ? 'stopped' : describeConnectionError(error)})`);
  } finally {
    clearTimeout(timer);
    await dispatcher.destroy();
  }
}
