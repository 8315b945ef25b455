import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { ExpungeError, systemCode } from '../errors.ts';
import type { InputFile } from '../input/open-inputs.ts';
import { shown } from '../token/secret-text.ts';
import type { ListSource } from './list-source.ts';
import type { Surroundings } from './open-source.ts';

const stderrAtMost = 4_096;

/** What `env` holds for us alone. */
const ownSecrets = ['EXPUNGE_TOKEN', 'EXPUNGE_CLIENT_SECRET'];

/**
 * The ids that a command prints. It is run as it is, by no shell, without input. Reading them throws USAGE, after whatever it printed, where
 * it ends with anything but 0, cannot be started, or takes too long; then it and what it started are killed. So a list is whole, or none.
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
    open: () => readOutput(start(program, args, env), { timeoutMs, stop, fail, told: tell(log, name) }),
  };
}

/** In a process group of its own, so that an end reaches what it started. */
function start(program: string, args: string[], env: NodeJS.ProcessEnv): ChildProcess {
  const own = Object.fromEntries(Object.entries(env).filter(([variable]) => !ownSecrets.includes(variable)));
  return spawn(program, args, { env: own, stdio: ['ignore', 'pipe', 'pipe'], detached: true });
}

type Watching = {
  timeoutMs: number;
  stop: AbortSignal;
  fail: (trouble: string) => Error;
  told: (stderr: string) => void;
};

async function* readOutput(child: ChildProcess, { timeoutMs, stop, fail, told }: Watching): AsyncGenerator<Buffer> {
  let [trouble, stderr] = ['', ''];
  const end = (words: string) => {
    trouble ||= words;
    killGroup(child);
    child.stdout!.destroy(fail(trouble)); // what left the group may keep it open
  };
  const ended = once(child, 'close').catch((error) => {
    trouble ||= `cannot be started (${systemCode(error)})`;
    return [null, null];
  });
  const timer = setTimeout(() => end(`took longer than ${timeoutMs / 1_000} s`), timeoutMs);
  const stopIt = () => end('was stopped, because this process ends or another one has taken over');
  stop.addEventListener('abort', stopIt, { once: true });
  if (stop.aborted) stopIt();
  child.stderr!.setEncoding('utf8').on('data', (text: string) => {
    stderr = (stderr + text).slice(0, stderrAtMost);
  });
  try {
    yield* child.stdout! as AsyncIterable<Buffer>;
    const [code, signal] = await ended;
    if (code !== 0) trouble ||= signal ? `was ended by ${signal}` : `ended with ${code}`;
    if (trouble !== '') throw fail(trouble);
  } finally {
    clearTimeout(timer);
    stop.removeEventListener('abort', stopIt);
    if (child.exitCode === null) killGroup(child);
    if (stderr !== '') told(stderr);
  }
}

/** What it says on stderr stands in the log of this machine only: it may name hosts and users. */
function tell(log: Surroundings['log'], name: string): (stderr: string) => void {
  return (stderr) => log.warn({ source: name, reason: shown(stderr, []) }, 'the command of a source says');
}

function killGroup({ pid }: ChildProcess): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // It has ended meanwhile.
  }
}
