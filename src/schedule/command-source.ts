import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Child, endChild, exitOf, startChild } from '../child-process.ts';
import type { ListSource } from '../config/list-source.ts';
import { ExpungeError } from '../errors.ts';
import type { InputFile } from '../input/open-inputs.ts';
import { shown } from '../token/secret-text.ts';
import type { Surroundings } from './open-source.ts';

const stderrAtMost = 4_096;
const graceMs = 1_000;

/**
 * The ids that a command prints. It is run as it is, by no shell, without input. Reading them throws USAGE, after whatever it printed, where
 * it ends with anything but 0, cannot be started, takes too long, or leaves something behind that may still print; then what it started is
 * killed. So a list is whole, or none.
 */
export function commandFile(
  name: string,
  { command, timeoutMs }: ListSource & { kind: 'command' },
  { env, stop, log }: Surroundings,
): InputFile {
  const [program = '', ...args] = command;
  const fail = (trouble: string) => new ExpungeError('USAGE', `source ${name}: the command ${program} ${trouble}`);
  return {
    ...{ name: `${name} (command ${program})`, isStdin: true, isPipe: false },
    open: () => readOutput(startChild(program, args, env), { timeoutMs, stop, fail, told: tell(log, name) }),
  };
}

type Watching = {
  timeoutMs: number;
  stop: AbortSignal;
  fail: (trouble: string) => Error;
  told: (stderr: string) => void;
};

async function* readOutput(child: Child, { timeoutMs, stop, fail, told }: Watching): AsyncGenerator<Buffer> {
  let [trouble, stderr] = ['', ''];
  const end = (words: string) => {
    trouble ||= words;
    endChild(child);
  };
  const exited = exitOf(child);
  void exited.then(async (ended) => {
    if (!(await endsSoon(child))) end(ended || leftBehind);
  });
  const timer = setTimeout(() => end(`took longer than ${timeoutMs / 1_000} s`), timeoutMs);
  const stopIt = () => end('was stopped, because this process ends or another one has taken over');
  stop.addEventListener('abort', stopIt, { once: true });
  if (stop.aborted) stopIt();
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr = (stderr + text).slice(0, stderrAtMost);
  });
  try {
    yield* untilEnded(child);
    if (trouble === '') trouble = await exited;
    if (trouble !== '') throw fail(trouble);
  } finally {
    clearTimeout(timer);
    stop.removeEventListener('abort', stopIt);
    if (child.exitCode === null) endChild(child);
    if (stderr !== '') told(stderr);
  }
}

const leftBehind =
  'has ended, but something that it left behind may still print: its output is not known to be whole ' +
  '(have that write to somewhere else, as by >/dev/null)';

/** What it prints, to its end or to ours. */
async function* untilEnded({ stdout }: Child): AsyncGenerator<Buffer> {
  try {
    yield* stdout as AsyncIterable<Buffer>;
  } catch (error) {
    if (!stdout.destroyed) throw error;
  }
}

/** Whether the output of a command that has ended ends, too. It may be long, and be read slowly: only one without a sign for a second does not. */
async function endsSoon({ stdout }: Child): Promise<boolean> {
  const bytesRead = () => (stdout as typeof stdout & { bytesRead: number }).bytesRead;
  for (let seen = -1; !stdout.closed && !stdout.readableEnded; ) {
    if (bytesRead() === seen && stdout.readableLength === 0) return false;
    seen = bytesRead();
    await Promise.race([once(stdout, 'close'), sleep(graceMs)]).catch(() => {});
  }
  return true;
}

/** What it says on stderr stands in the log of this machine only: it may name hosts and users. */
function tell(log: Surroundings['log'], name: string): (stderr: string) => void {
  return (stderr) => log.warn({ source: name, reason: shown(stderr, []) }, 'the command of a source says');
}
