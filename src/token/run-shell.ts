import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Child, endChild, exitOf, startChild } from '../child-process.ts';

/** How a command ended: `trouble` says in words what is wrong with it, '' where it ended well. */
export type CommandEnd = { trouble: string; isTimeOut: boolean; stdout: string; stderr: string };

const deadlineMs = 30_000;
const outputAtMost = 65_536;
const graceMs = 500;

/**
 * Runs a line by `sh -c`, without input, to its end: at most 30 s and 64 KiB of output, then it and what it started are killed, and
 * so they are when `closing` aborts. What it leaves behind may go on, and its output counts for another half second. Never rejects.
 */
export function runShell(line: string, env: NodeJS.ProcessEnv, closing: AbortSignal): Promise<CommandEnd> {
  const child = startChild('sh', ['-c', line], env);
  const end: CommandEnd = { trouble: '', isTimeOut: false, stdout: '', stderr: '' };
  return new Promise((resolve) => {
    const settle = (trouble: string) => {
      clearTimeout(timer);
      closing.removeEventListener('abort', close);
      end.trouble ||= trouble;
      resolve(end);
    };
    const stop = (trouble: string) => {
      endChild(child);
      settle(trouble);
    };
    const close = () => stop('was stopped');
    const timer = setTimeout(() => {
      end.isTimeOut = true;
      stop(`gave no token in ${deadlineMs / 1_000} s`);
    }, deadlineMs);
    closing.addEventListener('abort', close, { once: true });
    collect(child, end, () => stop('prints too much'));
    void exitOf(child).then(async (trouble) => {
      await lastWords(child);
      settle(trouble);
    });
  });
}

function collect(child: Child, end: CommandEnd, tooMuch: () => void): void {
  for (const name of ['stdout', 'stderr'] as const) {
    child[name].setEncoding('utf8').on('data', (text: string) => {
      if (end[name].length + text.length > outputAtMost) tooMuch();
      else end[name] += text;
    });
  }
}

/** What it has printed is read to its end; where something that it has left behind holds that open, no longer than the grace. */
async function lastWords({ stdout, stderr }: Child): Promise<void> {
  const ends = [stdout, stderr].map((stream) => (stream.closed ? null : once(stream, 'close')));
  await Promise.race([Promise.all(ends), sleep(graceMs)]).catch(() => {});
  stdout.destroy();
  stderr.destroy();
}
